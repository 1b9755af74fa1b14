"""`lmlab count`: what it prints, and one clear line for whatever cannot be counted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from command_line import Lmlab, done, refused
from lmlab.models.registry import KINDS, Way
from lmlab.page.numbers import memory_size


def test_the_numbers_of_a_model_and_where_they_come_from(lmlab: Lmlab) -> None:
    out = done(lmlab("count", "feedforward", "--set", "context=3", "--vocab", 50))
    assert "a real instance has as many" in out
    assert "PyTorch counts the same" in out
    assert "Bengio 2003, all of it: V*(d + d_h) + ((N-1)*d + 1)*d_h = " in out


def test_documents_say_the_same_of_the_parts_they_count_whole(lmlab: Lmlab) -> None:
    _, out, _ = lmlab("count", "attention", "--json")
    said = {(d["source"], d["part"]): d["left_out"] for d in json.loads(out)["documents"]}
    assert said == {("textbook", "attention"): "0", ("textbook", "hidden layer"): "0", ("textbook", "all of it"): "d"}
    _, out, _ = lmlab("count", "gpt", "--json")
    assert [d["left_out"] for d in json.loads(out)["documents"]] == ["D*(D + 1)"]
    assert "N**2" in json.loads(out)["notes"][0]


def test_what_a_document_counts_and_what_it_leaves_out_make_the_whole(lmlab: Lmlab) -> None:
    large = Path(__file__).parents[2] / "examples" / "configs" / "bert-large.json"
    for model in ("feedforward", "attention", large):
        found = json.loads(lmlab("count", model, "--json")[1])
        parts = {part["name"]: part["weights"] for part in found["parts"]} | {"all of it": found["parameters"]}
        assert all(d["number"] + d["left_out_number"] == parts[d["part"]] for d in found["documents"])
    by_part = {d["part"]: d["number"] for d in found["documents"]}
    assert by_part == {
        "embedding": 30_720_000,
        "attention": 4_194_304,
        "feed-forward": 8_393_728,
        "all of it": 30_720_000 + 24 * (4_194_304 + 8_393_728),
    }


def test_json_holds_formulas_numbers_and_whether_they_agree(lmlab: Lmlab) -> None:
    code, out, _ = lmlab("count", "lstm", "--json", "--set", "layers=2", "--length", 9)
    found = json.loads(out)
    assert code == 0
    assert found["agrees"] is True
    assert found["parameters"] == found["instance"] == sum(p["times"] * p["weights"] for p in found["parts"])
    assert found["dispatched"] == [found["forward"], found["backward"]]
    assert found["length"] == 9


def test_formulas_can_be_had_as_latex(lmlab: Lmlab) -> None:
    assert r"D \left(V + 1\right)" in lmlab("count", "gpt", "--latex")[1]


def test_a_run_is_counted_as_it_stands(lmlab: Lmlab, small_text: Path) -> None:
    for model, budget in (("ngram", []), ("bigram", ["--budget", "1steps"])):
        assert lmlab("train", model, small_text, *budget, "--out", model, "--json")[0] == 0
        trained = json.loads((Path(model) / "run.json").read_text())["model"]["parameters"]
        out = done(lmlab("count", f"./{model}", "--json"))
        assert json.loads(out)["parameters"] == trained


def test_a_model_that_counts_is_fitted_to_its_text(lmlab: Lmlab, small_text: Path) -> None:
    out = done(lmlab("count", "ngram", small_text, "--set", "order=2"))
    assert "c_2" in out
    assert "textbook: a whole table" in out
    assert "V**(n-1)*(V-1)" in out
    assert "V**L - 1" in out


def test_what_is_fitted_to_a_text_is_what_training_on_it_makes(lmlab: Lmlab, small_text: Path) -> None:
    done(lmlab("train", "ngram", small_text, "--out", "made"))
    trained = json.loads((Path("made") / "run.json").read_text())["model"]["parameters"]
    assert json.loads(done(lmlab("count", "ngram", small_text, "--json")))["parameters"] == trained


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gtp",), "did you mean 'gpt'"),
        (("gpt", "--set", "width=16", "--set", "heads=5"), "choose heads that divide it"),
        (("gpt", "--set", "layers=-2"), "layers must be 1 or more"),
        (("gpt", "--set", "widht=4"), "did you mean 'width'"),
        (("gpt", "--vocab", "0"), "--vocab"),
        (("gpt", "--length", "0"), "--length"),
        (("gpt", "--set", "context=8", "--length", "9"), "reads at most 8 tokens"),
        (("ngram",), "name one behind it"),
        (("gpt", "text.txt"), "leave the text out"),
        (("lstm", "--set", "tie=true", "--set", "width=8", "--set", "embedding_width=4"), "tie needs"),
    ],
)
def test_what_cannot_be_counted_gets_one_line(lmlab: Lmlab, arguments: tuple[str, ...], words: str) -> None:
    refused(lmlab("count", *arguments), words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("./run", "--vocab", "7"), "option-changes-no-count"),
        (("./run", "--tokenizer", "words"), "leave --tokenizer out"),
        (("./run", "small.txt"), "leave the text out"),
        (
            ("ngram", "small.txt", "--vocab", "99"),
            "option-changes-no-count",
        ),
        (("hf.json", "--vocab", "10"), "given by --set: leave --vocab"),
        (("hf.json", "--tokenizer", "words"), "leave --tokenizer out"),
        (("gru", "--vocab", "100", "--tokenizer", "words"), "option-changes-no-count"),
    ],
)
def test_what_would_change_nothing_is_refused(
    lmlab: Lmlab, small_text: Path, arguments: tuple[str, ...], words: str
) -> None:
    assert lmlab("train", "ngram", small_text, "--out", "run")[0] == 0
    Path("hf.json").write_text('{"model_type": "gpt2"}')
    refused(lmlab("count", *arguments), words)


def test_memory_is_predicted_and_measured(lmlab: Lmlab) -> None:
    sizes = ("--set", "layers=1", "--set", "width=32", "--set", "context=32")
    out = done(lmlab("count", "gpt", *sizes, "--memory", "--json"))
    memory = json.loads(out)["memory"]
    assert memory["peak"] == pytest.approx(memory["measured_peak"], rel=0.1)
    shown = done(lmlab("count", "gpt", *sizes, "--memory"))
    assert f"peak: predicted {memory_size(memory['peak'])}" in shown
    assert " 0 MB" not in shown


def test_memory_of_what_takes_no_steps_is_refused(lmlab: Lmlab, small_text: Path) -> None:
    refused(lmlab("count", "ngram", small_text, "--memory"), "memory-without-learner")


def test_a_picture_is_written_where_it_is_wanted(lmlab: Lmlab, tmp_path: Path) -> None:
    path = tmp_path / "where.svg"
    assert lmlab("count", "bigram", "--svg", path)[0] == 0
    assert path.read_text().startswith("<svg")


def test_every_model_that_learns_has_its_picture_below_its_command() -> None:
    root = Path(__file__).parents[2]
    shown = re.findall(
        r"^    lmlab count (\S+)[^\n]* --svg docs/(costs/\S+)\n\n!\[[^]]*\]\((costs/\S+)\)",
        (root / "docs/costs.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert {name for name, *_ in shown} >= {kind.name for kind in KINDS.values() if kind.way is Way.LEARNS}
    assert all(written == drawn and (root / "docs" / drawn).exists() for _, written, drawn in shown)


def test_sizes_that_would_take_long_to_make_are_refused_and_those_long_to_run_are_counted_by_formula_alone(
    lmlab: Lmlab, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(
        lmlab("count", "gpt", "--set", "layers=100000"),
        "too-many-layers",
    )
    whole = json.loads(lmlab("count", "gru", "--length", "8", "--json")[1])
    assert whole["dispatched"] == [whole["forward"], whole["backward"]]
    monkeypatch.setattr("lmlab.costs.counting.MOST_KERNELS", 20)
    out = done(lmlab("count", "gru", "--length", "8", "--json"))
    found = json.loads(out)
    assert (found["dispatched"], found["forward"]) == (None, whole["forward"])
    assert "given up after 20 kernels" in found["notes"][0]
