"""`lmlab train bert`, `lmlab eval` and `lmlab fill` from a text to filled blanks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Lmlab, done, refused


@pytest.fixture
def trained(lmlab: Lmlab, tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("The cat sat on the mat, and the dog sat on the cat. " * 300)
    code, out, err = lmlab(
        "train", "bert", tmp_path / "text.txt", "--budget", "3steps", "--tokenizer", "words", "--set", "layers=1",
        "--set", "width=8", "--set", "heads=1", "--set", "context=12", "--out", tmp_path / "run",
    )  # fmt: skip
    assert code == 0, err
    assert "lmlab eval" in out
    return tmp_path / "run"


def test_from_a_text_to_scores_and_filled_blanks(lmlab: Lmlab, trained: Path) -> None:
    out = done(lmlab("eval", trained))
    assert "unigram" in out
    assert "pseudo bits per byte" in out
    assert "no probability of the text" in " ".join(out.split())
    out = done(lmlab("eval", trained, "--json"))
    assert {"masked", "unigram", "saved", "pseudo_bits_per_byte"} <= set(json.loads(out))
    out = done(lmlab("fill", trained, "The [MASK] sat", "--top", "2"))
    assert out.count("%") == 2
    out = done(lmlab("fill", trained, "The [MASK] sat on [MASK] mat,", "--json"))
    (found,) = json.loads(out)
    assert len(found["blanks"]) == 2
    assert "[MASK]" not in found["filled"]
    assert found["wholes"][0]["text"] == found["filled"]
    out = done(lmlab("fill", trained, "The [MASK] sat on [MASK] mat,", "--top", "3"))
    assert [line for line in out.splitlines() if not line.startswith("  ")] == [
        f"{whole['text']}  {whole['p']:.1%}" for whole in found["wholes"][:3]
    ]
    assert out.count("by itself: ") == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give texts with blanks"),
        (["The cat"], "write [MASK]"),
        (["[MASK] " * 30], "longer than the encoder reads"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_line(
    arguments: list[str], words: str, lmlab: Lmlab, trained: Path
) -> None:
    refused(lmlab("fill", trained, *arguments), words)


@pytest.mark.parametrize(
    "arguments", [["sweep", "bert", "--over", "width=2,3"], ["contract", "bert"], ["compare", "--models", "bert,ngram"]]
)
def test_where_language_models_are_ranked_an_encoder_is_refused(arguments: list[str], lmlab: Lmlab) -> None:
    refused(lmlab(*arguments), "no language model")
