"""`lmlab train translator`, `lmlab eval` and `lmlab translate` from pairs to translations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Lmlab, done, refused
from lmlab.text import written_out


@pytest.fixture
def trained(lmlab: Lmlab, tmp_path: Path) -> Path:
    rows = [written_out.LANGUAGES, *written_out.sentences(40)]
    (tmp_path / "pairs.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    code, out, err = lmlab(
        "train", "translator", tmp_path / "pairs.tsv", "--columns", "en,fr,de", "--budget", "3steps", "--device", "cpu",
        "--set", "layers=1", "--set", "width=16", "--set", "heads=2", "--out", tmp_path / "run",
    )  # fmt: skip
    assert code == 0, err
    assert "lmlab eval" in out
    assert "en to fr, de" in err
    return tmp_path / "run"


def test_from_pairs_to_translations_and_scores(lmlab: Lmlab, trained: Path) -> None:
    out = done(lmlab("eval", trained, "--against", trained))
    assert "bits per byte" in out
    assert "certified: all 8 checks hold" in out
    assert "bleu: nrefs:1" in out
    assert "paired over sentences" in out
    out = done(lmlab("translate", trained, "forty-two", "--to", "de,fr", "--beam", "2", "--best", "2", "--json"))
    assert [one["language"] for one in json.loads(out)] == ["de", "de", "fr", "fr"]
    out = done(lmlab("translate", trained, "forty-two", "seven"))
    assert "forty-two\nfr: " in out


@pytest.mark.slow
def test_a_translator_whose_certificate_fails_ends_with_1_as_a_language_model_does(
    lmlab: Lmlab, trained: Path, tmp_path: Path
) -> None:
    code, out, _ = lmlab("eval", trained, tmp_path / "pairs.tsv")  # most of which it was trained on
    assert code == 1
    assert "FAILS held_out" in out
    out = done(lmlab("eval", trained, "--part", "train"))  # who asks for it knows
    assert "FAILS held_out" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give texts to translate"),
        (["one", "--to", "it"], "language-unknown"),
        ([""], "is empty"),
        (["one", "--beam", "2", "--best", "3"], "--beam"),
        (["one", "--beam", "100000"], "--beam is at most 4096"),
        (["one two three " * 90], "translated-text-too-long"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_line(
    arguments: list[str], words: str, lmlab: Lmlab, trained: Path
) -> None:
    refused(lmlab("translate", trained, *arguments), words)


def test_misaligned_pairs_are_named_by_their_line(lmlab: Lmlab, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("en\tde\nyes\tja\nno\n")
    refused(lmlab("train", "translator", tmp_path / "pairs.tsv", "--out", tmp_path / "run"), "line 3: 1 column")
    assert not (tmp_path / "run").exists()
