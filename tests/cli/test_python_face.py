"""What `import lmlab` offers is there, whatever was imported or called before."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from pathlib import Path

import pytest

import lmlab
import lmlab.config
from lmlab.cli import commands


def test_every_call_that_is_offered_can_be_seen_and_called() -> None:
    assert set(lmlab.__all__) <= set(dir(lmlab))
    assert all(callable(getattr(lmlab, name)) for name in lmlab.__all__)
    hidden = [name for name in lmlab.__all__ if importlib.util.find_spec(f"lmlab.{name}")]
    assert not hidden, "a module of the same name takes the place of the function once it is imported"


def test_compare_can_be_called_again_and_after_its_package_was_imported(small_text: Path, tmp_path: Path) -> None:
    importlib.import_module("lmlab.comparison.report")
    for _ in range(2):
        with pytest.raises(ValueError, match="did you mean 'gpt'"):
            lmlab.compare(small_text, models=["gtp"], out=tmp_path / "out")


def test_comparing_in_python_writes_the_page_too(small_text: Path, tmp_path: Path) -> None:
    found = lmlab.compare(str(small_text), models=["bag"], budget="2s", out=str(tmp_path / "out"))
    assert found.report == tmp_path / "out" / "report.html"
    assert "Which model predicts small best?" in found.report.read_text()


def test_every_verb_of_the_command_line_is_a_function_with_the_same_names() -> None:
    """--set is settings and --learn is learning in Python; what only concerns printing is not there."""
    several = {"vectors", "machine"}  # functions for one verb
    functions = {
        {"eval": "evaluate", "import": "import_run"}.get(name, name): importlib.import_module(
            f"lmlab.cli.commands.{name}"
        ).command
        for name in set(commands.names()) - several
    }
    # --resume and --from are functions of their own, resume and fine_tune; --config is recipe, which gives the arguments
    only_there = {
        "json",
        "lines",
        "interactive",
        "prompt_file",
        "latex",
        "svg",
        "full",
        "verbose",
        "watch",
        "resume",
        "from_",
        "config",
        "ctx",
        "grade",
        "key",
        "files",
        "differences",  # of a comparison: its findings have them
        "csv",  # of a comparison: its write_differences
    }
    for verb, command in functions.items():
        here = set(inspect.signature(getattr(lmlab, verb)).parameters)
        if verb == "check":  # --grade is a function of its own; --watch is for people at a terminal
            here |= {*inspect.signature(lmlab.grade).parameters, "watch"}
        besides = {
            "plan": lmlab.plan_steps,
            "generate": lmlab.generate_many,
            "classify": lmlab.mistakes,
            "compare": lmlab.compare_logs,
        }
        here |= set(inspect.signature(besides[verb]).parameters) if verb in besides else set()
        here |= {"errors"} if verb == "classify" else set()  # how many mistakes: their number
        assert set(inspect.signature(command).parameters) - only_there <= here, verb


def test_a_text_a_model_and_a_run_may_be_named_by_strings_or_paths(small_text: Path, tmp_path: Path) -> None:
    run, coded, text = str(tmp_path / "run"), tmp_path / "coded", str(tmp_path / "text.txt")
    lmlab.train("ngram", small_text, out=run)
    assert lmlab.evaluate(run, str(small_text)).bits_per_byte == lmlab.evaluate(Path(run), small_text).bits_per_byte
    line = tmp_path / "line.txt"
    line.write_text(small_text.read_text()[:400])
    small = lmlab.compress(str(line), model=run, out=coded)
    assert small.original_bytes == line.stat().st_size > small.compressed_bytes == coded.stat().st_size
    assert lmlab.decompress(coded, model=lmlab.load(run), out=text).original_bytes == small.original_bytes
    assert Path(text).read_bytes() == line.read_bytes()
    assert lmlab.export(run, out=str(tmp_path / "model.arpa")).ngrams
    pieces: list[str] = []
    (found,) = lmlab.generate(run, "the cat", tokens=10, watch=pieces.append)
    assert "".join(pieces) == found.text
    assert lmlab.data("show", small_text).documents == 1
    assert "sotu" in lmlab.data()


def test_sheets_are_given_as_text_or_as_files(tmp_path: Path) -> None:
    sheet, page = tmp_path / "sheet.derive", tmp_path / "page.html"
    sheet.write_text("given x\nclaim x + x == 2*x")
    assert lmlab.check(sheet, html=str(page)).ok
    assert lmlab.check(sheet.read_text()).ok
    assert "1 of 1 hold" in page.read_text()
    book = lmlab.grade({"ada": "claim x + x == 2*x"}, key=sheet, out=tmp_path / "class")
    assert [paper.points for paper in book.papers] == [1]
    assert (tmp_path / "class" / "ada.html").exists()


def test_what_python_is_told_is_in_the_words_of_python(tmp_path: Path, small_text: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(lmlab.config.Mistake, match="replace it with force=True"):
        lmlab.compress(small_text, model="nowhere", out=tmp_path / "taken")
    with pytest.raises(lmlab.config.Mistake, match="such as budget='300steps'"):
        lmlab.sweep("gpt", small_text, over=["layers=1"], budget="3s", out=tmp_path / "sweep")
