"""Python as people use it: texts that are strings, mistakes that say what is right, plain numbers, pictures in notebooks."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import lmlab
from lmlab.comparison.executors.here import Here
from lmlab.comparison.executors.processes import Processes
from lmlab.config import Mistake
from lmlab.learn import loop, onlookers
from mistakes import mistake

POEM = "the cat sat on the mat\nand the dog sat on the log\n" * 40
TINY = {"layers": 1, "width": 16, "context": 16}


def test_a_string_is_a_text_and_a_list_of_strings_is_documents(tmp_path: Path) -> None:
    run = lmlab.train("ngram", POEM, out=tmp_path / "one", split_by="tail")
    assert run.corpus.train.text() + run.corpus.valid.text() + run.corpus.test.text() == POEM
    sentences = [f"the {animal} sat on the mat" for animal in ("cat", "dog", "cow", "hen", "bee", "ant", "fly", "owl")]
    run = lmlab.train("bag", lmlab.strings(sentences), out=tmp_path / "many")
    assert run.corpus.documents == len(sentences)
    assert lmlab.load(tmp_path / "many").corpus.train.text() == run.corpus.train.text()  # found again, as a file is
    assert lmlab.evaluate(run, lmlab.strings("the cat")).scored.bytes == 7
    assert f"bag on the test part of {len(sentences)} strings, " in repr(lmlab.evaluate(run))
    assert "bag on 2 strings, " in repr(lmlab.evaluate(run, lmlab.strings("the cat", "a dog")))
    assert lmlab.read([POEM, POEM[:60]]).documents == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (["the cat sat", "the dog sat"], "lmlab.strings"),
        (5, "a string or a path, or a list"),
        ([5], "a string or a path, or a list"),
        ([], "no text was given"),
        ("a\nb\udcff", "not valid Unicode"),
    ],
)
def test_what_is_no_text_says_what_would_be_one(text: Any, said: str, tmp_path: Path) -> None:
    with mistake(said):
        lmlab.train("bag", text, out=tmp_path / "run")


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("gpt", {"budget": [5]}, "text with a unit, such as"),
        ("gpt", {"settings": {"layers": 2.5}}, "setting-of-another-kind"),
        ("gpt", {"settings": {"layers": True}}, "setting-of-another-kind"),
        ("gpt", {"settings": {"dropout": "much"}}, "setting-of-another-kind"),
        ("gpt", {"settings": {"tie": 1}}, "got 1"),
        ("gpt", {"learning": {"rows": "4"}}, "setting-of-another-kind"),
        ("gpt", {"learning": {"optimizer": 3}}, "optimizer is one of"),
        ("gpt", {"tokenizer": 3}, "argument-of-another-kind"),
        ("gpt", {"timings": "fast"}, "got 'fast'"),
        (5, {}, "'package.module:Class'"),
    ],
)
def test_a_value_of_another_kind_is_a_mistake_that_says_what_would_be_right(
    model: Any, options: dict[str, Any], said: str, small_text: Path, tmp_path: Path
) -> None:
    with mistake(said):
        lmlab.train(model, small_text, out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_whole_numbers_of_other_libraries_are_taken(small_text: Path, tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    run = lmlab.train("ngram", small_text, out=tmp_path / "run", settings={"order": numpy.int64(3)})
    assert type(run.model.config.order) is int


def numbers_in(value: Any) -> Iterator[Any]:
    """Every number that a record holds, however deep."""
    if dataclasses.is_dataclass(value):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        for item in value.values():
            yield from numbers_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from numbers_in(item)
    elif hasattr(value, "__float__") and getattr(value, "ndim", 0) == 0:
        yield value


def test_numbers_are_pythons_own(small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Processes, "run", Here.run)
    run = lmlab.train("gpt", small_text, out=tmp_path / "run", budget="3steps", settings=TINY)
    result = lmlab.evaluate(run)
    (text,) = lmlab.generate(run, "the", tokens=3)
    swept = lmlab.sweep("ngram", small_text, over={"order": [1, 2]}, out=tmp_path / "sweep")
    found = [run.record.result, result.interval, result.perplexity, result.bits_per_byte, text, swept.cells]
    found.append([result.scored.total_nats, result.scored.bytes, result.scored.tokens])
    assert {type(number) for number in numbers_in(found)} <= {int, float, bool}


@pytest.mark.usefixtures("drawn_curves")
def test_things_are_short_in_a_console_and_have_pictures_in_a_notebook(small_text: Path, tmp_path: Path) -> None:
    run = lmlab.train("gpt", small_text, out=tmp_path / "run", budget="3steps", settings=TINY)
    result = lmlab.evaluate(run)
    assert repr(result).startswith(f"Result({result.bits_per_byte:.4f} bits per byte")
    assert repr(result).endswith(", gpt on the test part of small, certified)")
    assert len(repr(run)) < 200
    shown = run._repr_html_()
    ElementTree.fromstring(shown)
    assert "<svg" in shown
    assert "var(--" not in shown  # a notebook knows nothing of our stylesheet
    html = result._repr_html_()
    ElementTree.fromstring(html)
    assert f"{result.bits_per_byte:.4f} bits per byte" in html
    assert "checks passed" in html
    counted = lmlab.train("bag", small_text, out=tmp_path / "bag")._repr_html_()  # which has no curve
    ElementTree.fromstring(counted)
    assert "bag, finished" in counted


def test_progress_is_told_on_stderr_and_nothing_is_without_it(
    small_text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onlookers, "PLAIN_EVERY_S", 0.0)
    monkeypatch.setattr(loop, "SHOW_EVERY_S", 0.0)
    lmlab.train("gpt", small_text, out=tmp_path / "quiet", budget="3steps", settings=TINY)
    assert capsys.readouterr() == ("", "")
    lmlab.train("gpt", small_text, out=tmp_path / "run", budget="3steps", settings=TINY, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "gpt: 67% · " in err
    assert err.endswith("gpt: the budget is used\n")


@pytest.mark.slow  # mypy looks at everything that is imported
def test_types_are_told_to_whoever_imports_it(tmp_path: Path) -> None:
    assert resources.files("lmlab").joinpath("py.typed").is_file()
    pytest.importorskip("mypy")
    script = tmp_path / "use.py"
    script.write_text(
        "import lmlab\n"
        'run = lmlab.train("gpt", "x.txt", out="r", settings={"layers": 2}, progress=True)\n'
        "reveal_type(run.status)\nreveal_type(lmlab.evaluate(run).bits_per_byte)\n"
        'lmlab.generate(run, temprature=0.5)\nlmlab.train("gpt", bugdet="3m", out="r")\n'
    )
    environment = {"MYPYPATH": str(Path(lmlab.__file__).parents[1]), "PATH": ""}
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", str(tmp_path), str(script)]
    said = subprocess.run(command, capture_output=True, text=True, env=environment, check=False).stdout
    assert said.count("Revealed type is") == 2
    assert '"Any"' not in said
    assert 'Unexpected keyword argument "temprature"' in said
    assert 'Unexpected keyword argument "bugdet"' in said


def test_an_interval_that_is_not_known_shows_no_number(tmp_path: Path, small_text: Path) -> None:
    run = lmlab.train("ngram", small_text, out=tmp_path / "run")
    short = lmlab.evaluate(run, lmlab.strings("the cat"))
    assert short.interval.low is None or math.isfinite(short.interval.low)
    assert "nan" not in short._repr_html_()


def test_what_was_scored_or_written_is_short_in_a_console_and_a_table_in_a_notebook(tmp_path: Path) -> None:
    run = lmlab.train("bag", lmlab.strings("the cat sat\non the mat\n" * 50), out=tmp_path / "run")
    scored = lmlab.score(run, "the cat and the dog")
    assert repr(scored) == f"ScoredText('the cat and the dog', {scored.bits:.2f} bits, 5 words)"
    assert scored._repr_html_().count("<tr>") == 5  # "the" stands there twice
    (written,) = lmlab.generate(run, "the", tokens=100)
    assert len(repr(written)) < 120
    assert "100 tokens" in repr(written)


@pytest.mark.slow
def test_where_no_folder_is_named_it_is_the_command_lines(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert lmlab.train("bag", small_text).folder == Path("runs/bag-small")
    assert lmlab.train("bag", "the cat\n" * 200).folder == Path("runs/bag-text")
    assert lmlab.train("bag", small_text).folder == Path("runs/bag-small-2")
    assert lmlab.compare(small_text, models=["bag"], budget="2s").report == Path("runs/compare-small/report.html")
    assert lmlab.sweep("bag", small_text, over={"tokenizer": ["byte"]}, jobs=1).figure.parent == Path(
        "runs/sweep-bag-small"
    )
    with pytest.raises(Mistake, match="gru"):
        lmlab.train("gur", small_text)


def test_an_editor_is_offered_the_verbs_and_nothing_else() -> None:
    assert set(dir(lmlab)) == {*lmlab.__all__, "__version__"}


RIGHT = {
    "run": "nowhere",
    "runs": ["nowhere"],
    "source": "nowhere",
    "model": "gpt",
    "text": "nothing.txt",
    "action": "show",
}
WRONG = (3, 2.5, b"x", ["x", 3], {"gpt": 3}, object(), None, Path("nothing"))
TAKEN: dict[str, tuple[type, ...]] = {"str": (str,), "Path": (Path,), "int": (int,), "None": (type(None),)}
TAKEN |= {"float": (int, float), "bool": (int, float, type(None))}


def calls_with_a_wrong_argument(verb: str) -> Iterator[Callable[[], object]]:
    """The rest names nothing that exists, so that nothing is done where the wrong one is taken after all."""
    function = getattr(lmlab, verb)
    parameters = inspect.signature(function).parameters
    named = {name for name, p in parameters.items() if p.default is p.empty} | ({"text", "action"} & set(parameters))
    needed = {name: RIGHT.get(name, "x") for name in named}
    needed = {
        name: value for name, value in needed.items() if parameters[name].kind is not inspect.Parameter.VAR_POSITIONAL
    }
    for name, parameter in parameters.items():
        hints = parameter.annotation.split(" | ")
        taken = tuple(kind for hint in hints for kind in TAKEN.get(hint, ()))
        for wrong in WRONG if parameter.kind is not parameter.VAR_KEYWORD else ():
            if isinstance(wrong, taken):
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                yield functools.partial(function, wrong, **needed)
            else:
                yield functools.partial(function, **{**needed, name: wrong})


@pytest.mark.parametrize("verb", sorted(set(lmlab.__all__) - {"Mistake"}))
def test_an_argument_of_another_kind_is_a_mistake_whatever_the_verb(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    calls = list(calls_with_a_wrong_argument(verb))
    assert calls
    for call in calls:
        with pytest.raises(Mistake):
            call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: lmlab.load(None), "argument-of-another-kind"),
        (lambda: lmlab.generate("nowhere", prompt=3), "prompt is text; got 3"),
        (lambda: lmlab.train("gpt", "x.txt", settings="x"), "argument-of-another-kind"),
        (lambda: lmlab.compare("x.txt", seeds="a"), "argument-of-another-kind"),
        (lambda: lmlab.compare("x.txt", settings={"gpt": 3}), "argument-of-another-kind"),
        (lambda: lmlab.compare("x.txt", models=3), "argument-of-another-kind"),
        (lambda: lmlab.compare("x.txt", split="80,10,10"), "argument-of-another-kind"),
        (lambda: lmlab.compare("x.txt", budget=[5]), "budget-not-text"),
        (lambda: lmlab.score("nowhere", [1, 2]), "argument-of-another-kind"),
        (lambda: lmlab.evaluate("nowhere", level="high"), "level is a number; got 'high'"),
        (lambda: lmlab.evaluate(3), "run-not-a-name"),
        (lambda: lmlab.explain(3), "run-not-a-name"),
        (lambda: lmlab.check(5), "text is text or a path; got 5"),
        (
            lambda: lmlab.train("gpt", "x.txt", watch=print),
            "got <built",
        ),
        (lambda: lmlab.train("gpt", "x.txt", valid=3), "argument-of-another-kind"),
        (lambda: lmlab.train(3), "model-not-a-name"),
        (
            lambda: lmlab.sweep("bag", "some\ntext", over={"tokenizer": ["byte"]}, out=""),
            "out is empty; name a file or",
        ),
        (lambda: lmlab.curves("nowhere", tensorboard=""), "argument-empty"),
        (lambda: lmlab.sweep("bag", "x.txt", over=3), "argument-of-another-kind"),
    ],
)
def test_the_mistake_names_the_argument_and_what_would_be_right(call: Callable[[], object], said: str) -> None:
    with mistake(said):
        call()


def test_a_verb_is_the_same_object_everywhere_and_can_be_sent_to_another_process() -> None:
    assert lmlab.score is lmlab.score
    assert pickle.loads(pickle.dumps(lmlab.score)) is lmlab.score
    with pytest.raises(TypeError, match="keyword argument 'bugdet'"):
        lmlab.train("gpt", "x.txt", bugdet="3m")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"beam": 8}, "beam is for method='beam'"),
        ({"tokens": 0}, "option-below-one"),
        ({"method": "beam", "best": 9}, "set beam=9 or more"),
        ({"best": 3}, "best is for method='beam'"),
    ],
)
def test_a_mistake_in_decoding_names_the_argument_that_was_given(
    small_text: Path, tmp_path: Path, asked: dict[str, Any], said: str
) -> None:
    run = lmlab.train("ngram", small_text, out=tmp_path / "run", tokenizer="char")
    for verb, prompt in ((lmlab.generate, "a"), (lmlab.generate_many, ["a", "b"])):
        with mistake(said):
            verb(run, prompt, **asked)
