"""What a comparison is told of training reaches the models, belongs to what they are, and is shown in Python too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

import lmlab as lab
from lmlab.comparison.display import EntryProgress, Lines
from lmlab.comparison.findings import Status

Lmlab = Callable[..., tuple[int, str, str]]
TINY = ["--each", "30steps", "--set", "feedforward.width=8", "--set", "feedforward.embedding_width=4"]


def test_settings_of_training_reach_one_model_or_all_that_learn(lmlab: Lmlab, small_text: Path) -> None:
    models = ["--models", "bag,feedforward", "--out", "c", "--learn", "weight_decay=0", "--learn", "feedforward.rows=4"]
    code, _, err = lmlab("compare", small_text, *models, *TINY, "--json")
    assert code == 0, err
    (run,) = Path("c/models").glob("feedforward*")
    assert lab.load(run).record.training.learning == {"weight_decay": 0.0, "rows": 4}
    again = ["--models", "bag,feedforward", "--out", "c", "--learn", "feedforward.rows=5"]
    code, _, err = lmlab("compare", small_text, *again, *TINY)
    assert code == 2
    assert "trained with" in err
    assert "--out" in err


@pytest.mark.parametrize(
    ("learning", "words"),
    [
        ("feedforward.learning_rate=0", ["above 0"]),
        ("gpt.rows=4", ["--learn names gpt", "not among"]),
        ("bag.rows=4", ["--learn names bag", "counts"]),
        ("rows", ["key=value"]),
    ],
)
def test_what_cannot_be_set_is_one_line(lmlab: Lmlab, small_text: Path, learning: str, words: list[str]) -> None:
    code, out, err = lmlab("compare", small_text, "--models", "bag,feedforward", "--out", "c", "--learn", learning)
    assert (code, out) == (2, "")
    assert all(word in err for word in words), err
    assert not Path("c").exists()


def test_a_comparison_in_python_is_short_and_a_picture_and_tells_its_progress(
    small_text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = lab.compare(small_text, models=["bag", "ngram"], budget="60s", out=tmp_path / "c", progress=True)
    assert "ngram: " in capsys.readouterr().err
    assert repr(found).startswith("Comparison(small: ngram ")
    assert len(repr(found)) < 300
    shown = found._repr_html_()
    ElementTree.fromstring(shown)
    assert "<svg" in shown


def test_a_model_that_is_measured_again_is_told_of_again(capsys: pytest.CaptureFixture[str]) -> None:
    """What counts is measured early, and once more when it is known how many bytes there is time for."""
    told = Lines()
    seen: list[tuple[Status, float | None]] = [("waiting", None), ("ranked", 2.0), ("measuring", None)]
    for status, bits in [*seen, ("ranked", 2.1), ("ranked", 2.1)]:
        told.show([EntryProgress(name="ngram", seconds=1.0, status=status, bits_per_byte=bits)], 0.0, "")
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" bits")[0] for line in lines] == ["ngram: 2.0000", "ngram: 2.1000"]
