"""Every language model is opened, with the numbers of `eval`; so are runs that an earlier version wrote."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import lmlab
from lmlab.config import Mistake
from lmlab.models.registry import KINDS, Role, Way, model_class
from mistakes import mistake

TEXT = "the cat sat on the mat and the dog sat on the log\na man and a plan and a canal and a cat\n" * 40
PIECE = "the cat & the naïve dog\n"
FAST = ("ngram", "gpt", "lstm")  # one that counts, one with windows, one that carries a state
NEXT_TOKEN = [kind.name for kind in KINDS.values() if kind.role is Role.LANGUAGE_MODEL]


def trained(name: str, text: Any, folder: Path, budget: str) -> lmlab.Run:
    """A small model of a kind; a mix is one of two that count."""
    if KINDS[name].way is Way.MIXES:
        parts = [lmlab.train(part, text, out=folder.parent / f"{name}-{part}") for part in ("bag", "ngram")]
        return lmlab.mix(parts, out=folder)
    small = {"layers": 1, "width": 8, "heads": 1, "context": 6, "embedding_width": 8}
    has = {field.name for field in dataclasses.fields(model_class(name).Config)}
    settings = {key: value for key, value in small.items() if key in has} if name != "ngram" else {"order": 3}
    return lmlab.train(name, text, out=folder, budget=budget, settings=settings)


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in NEXT_TOKEN]
)
def test_the_total_of_every_language_model_is_that_of_eval(name: str, tmp_path: Path) -> None:
    run = trained(name, TEXT, tmp_path / "run", "1steps")
    (tmp_path / "piece.txt").write_text(PIECE)
    (reading,) = lmlab.explain(run, PIECE).readings
    measured: Any = lmlab.evaluate(run, tmp_path / "piece.txt")
    assert reading.bits_per_byte == measured.bits_per_byte
    assert reading.bytes == len(PIECE.encode())


@pytest.mark.slow
@pytest.mark.parametrize("name", NEXT_TOKEN)
def test_the_same_on_a_real_text_of_four_thousand_tokens(name: str, bench_data: Path, tmp_path: Path) -> None:
    run = trained(name, bench_data / "tinyshakespeare" / "input.txt", tmp_path / "run", "20steps")
    piece = run.corpus.test.text()[:4000]
    (tmp_path / "piece.txt").write_text(piece)
    (reading,) = lmlab.explain(run, piece, html=tmp_path / "page.html").readings
    measured: Any = lmlab.evaluate(run, tmp_path / "piece.txt")
    assert reading.bits_per_byte == measured.bits_per_byte
    assert len(reading.tokens) == 4000
    assert (tmp_path / "page.html").stat().st_size > 4000


def test_a_run_of_the_first_format_is_opened_with_the_same_numbers(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["gpt"], tmp_path / "old")
    path = tmp_path / "old" / "config.json"
    (tmp_path / "old" / "run.json").rename(path)
    new = json.loads(path.read_text())
    result = {key: value for key, value in new["result"].items() if value is not None}
    old = {"format": 1, "lmlab": "0.1.0", "status": result.pop("status"), "model": new["model"]}
    old |= {"tokenizer": new["inputs"]["tokenizer"], "corpus": new["inputs"]["corpus"]}
    path.write_text(json.dumps(old | {"training": new["training"] | result}))
    assert lmlab.explain(tmp_path / "old", PIECE).readings[0].bits == lmlab.explain(runs["gpt"], PIECE).readings[0].bits
    assert lmlab.explain_attention(tmp_path / "old", PIECE).difference < 1e-5


@pytest.mark.parametrize("verb", ["explain", "explain_attention", "explain_heads", "explain_gates", "explain_search"])
def test_a_run_that_this_version_cannot_open_says_so(verb: str, runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["gpt"], tmp_path / "other")
    path = tmp_path / "other" / "run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"format": 9}))
    with mistake("record-of-another-version"):
        getattr(lmlab, verb)(tmp_path / "other", "the cat")
    record["model"]["config"]["width"] = 32  # weights of another shape than the settings say
    path.write_text(json.dumps(record))
    with pytest.raises(Mistake, match="does not fit its record"):
        getattr(lmlab, verb)(tmp_path / "other", "the cat")


@pytest.mark.parametrize("document", ["look-inside.md", "theory-figures.md"])
def test_every_figure_stands_below_the_command_that_makes_it(document: str) -> None:
    lines = (Path(__file__).parents[2] / "docs" / document).read_text(encoding="utf-8").splitlines()
    figures = [
        (number, line.partition("](")[2].rstrip(")")) for number, line in enumerate(lines) if line.startswith("![")
    ]
    assert figures
    for number, figure in figures:
        above = next(line for line in reversed(lines[:number]) if line.strip())
        assert above.startswith("    lmlab explain ")
        assert above.endswith(f"--svg docs/{figure}")
