"""Finished runs are measured on one text and ranked by paired differences, which a CSV file holds too."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import lmlab as lab
from command_line import Lmlab, done, refused
from lmlab.comparison.differences import difference_rows
from lmlab.comparison.findings import Compared, RankingFound
from some_text import some_lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs with two tokenizers, and a text that none of them has seen."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "text.txt").write_text(some_lines(3000))
    (folder / "other.txt").write_text(some_lines(300, seed=7))
    for name, model, tokenizer in (("good", "ngram", "char"), ("words", "ngram", "words"), ("poor", "uniform", "char")):
        lab.train(model, folder / "text.txt", out=folder / name, tokenizer=tokenizer)
    return folder


def test_runs_are_ranked_with_all_paired_differences(folder: Path, tmp_path: Path) -> None:
    runs = [folder / name for name in ("poor", "good", "words")]
    found = lab.compare_runs(runs, folder / "other.txt")
    bits = [result.bits_per_byte for result in found.results.values()]
    assert bits == sorted(bits)
    assert list(found.results)[-1] == str(folder / "poor")
    assert bits[-1] == pytest.approx(lab.evaluate(folder / "poor", folder / "other.txt").bits_per_byte)
    assert found.ranking is not None
    assert len(found.ranking.pairs) == 3
    written = list(csv.DictReader(found.write_differences(tmp_path / "pairs.csv").read_text().splitlines()))
    for row, pair in zip(written, found.ranking.pairs, strict=True):
        assert (row["a"], row["b"]) == (pair.a, pair.b)
        assert float(row["difference"]) == pair.difference
        assert row["apart"] == str(pair.apart).lower()


def test_a_run_that_has_read_the_text_has_no_rank(folder: Path, lmlab: Lmlab) -> None:
    code, out, _ = lmlab("compare", folder / "good", folder / "words", folder / "text.txt", "--json")
    found = json.loads(out)
    assert code == 1
    assert set(found["refused"]) == {str(folder / "good"), str(folder / "words")}
    assert all(names == ["held_out"] for names in found["refused"].values())


def test_the_command_shows_ranks_and_differences(folder: Path, tmp_path: Path, lmlab: Lmlab) -> None:
    pairs = tmp_path / "pairs.csv"
    out = done(lmlab("compare", folder / "good", folder / "poor", "--differences", "--csv", pairs))
    assert "1 a" in out
    assert "apart" in out
    assert out.count("yes") == 1
    assert len(pairs.read_text().splitlines()) == 2
    refused(lmlab("compare", folder / "good", folder / "poor", "--budget", "5s"), "training-of-finished-runs")
    refused(lmlab("compare", folder / "good", folder / "other.txt"), "runs-to-compare")
    refused(lmlab("compare", folder / "none", folder / "good"), "run-not-found")


def test_a_difference_is_told_from_the_better_model() -> None:
    def row(difference: float | None, low: float | None, high: float | None) -> list[str]:
        pair = Compared(a="a", b="b", difference=difference, low=low, high=high, apart=True)
        return difference_rows(RankingFound(about="", level=0.95, note="", models={}, pairs=(pair,)))[0]

    assert row(0.5, 0.4, 0.6) == ["b", "a", "0.5000", "0.4000–0.6000", "yes"]
    assert row(-0.5, -0.6, -0.4) == ["a", "b", "0.5000", "0.4000–0.6000", "yes"]
    assert row(-0.1, -0.3, 0.1) == ["a", "b", "0.1000", "-0.1000 to 0.3000", "yes"]
    assert row(None, None, None)[2:4] == ["", ""]


def test_a_comparison_prints_differences_on_request(folder: Path, tmp_path: Path, lmlab: Lmlab) -> None:
    words = ("compare", folder / "text.txt", "--models", "uniform,bag", "--out", tmp_path / "out")
    out = done(lmlab(*words, "--budget", "20s", "--differences", "--csv", tmp_path / "pairs.csv"))
    assert "apart" in out
    assert (tmp_path / "pairs.csv").read_text().startswith("a,b,difference,low,high,apart,throughout\nuniform,bag,")


@pytest.mark.parametrize("run", ["good", "words"])
def test_every_token_is_written_with_its_bits_and_its_place(
    run: str, folder: Path, tmp_path: Path, lmlab: Lmlab
) -> None:
    text = "the cat sat\n\nzyxwv ö the mat\n"
    (tmp_path / "mine.txt").write_text(text, encoding="utf-8")
    found = json.loads(
        done(lmlab("eval", folder / run, tmp_path / "mine.txt", "--per-token", tmp_path / "bits.csv", "--json"))
    )
    with (tmp_path / "bits.csv").open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    assert len(rows) == found["tokens"]
    assert sum(float(row["bits"]) for row in rows) == pytest.approx(
        found["bits_per_byte"] * len(text.encode()), rel=1e-5
    )
    at = 0
    for row in rows:
        assert int(row["byte"]) == at
        at += int(row["bytes"])
    assert at == len(text.encode())
    unknown = [row["piece"] for row in rows if row["unknown"] == "1"]
    assert ("zyxwv" in unknown) == (run == "words")
