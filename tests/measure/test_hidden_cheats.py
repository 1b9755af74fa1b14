from __future__ import annotations

from pathlib import Path

import cheats
import hidden_cheats as hidden
import measure_models as planted
import pytest

from lmlab.measure import Result, evaluate
from lmlab.text.parts import Part

CHARS = planted.tokenizer_for("char")
TIMES, CAUGHT = 20, 19


def text_of(folder: Path, seed: int) -> Part:
    """A document that is long enough to have a middle, and many short ones."""
    shorter = [planted.some_text(40, seed=100 * seed + i) for i in range(40)]
    return planted.part_of(folder, planted.some_text(500, seed=seed), *shorter, name=f"test{seed}")


def measured(cls: type[cheats.Chain], folder: Path, seed: int) -> Result:
    """What one that may keep something from trial to trial gets, when it has scored the text before."""
    model, text = cls.random(CHARS, seed), text_of(folder, seed)
    if issubclass(cls, hidden.RemembersWhatItScored):
        cls.forget()
    if cls is hidden.RemembersWhatItScored:
        evaluate(model, CHARS, text)
    if issubclass(cls, cheats.HonestWhereAsked):
        cls.asked.clear()
    return evaluate(model, CHARS, text)


HIDDEN = [
    (hidden.PeeksBehindItsChunk, "score_is_probability"),
    (hidden.LooksAtItsCaller, "score_is_probability"),
    (hidden.RemembersWhatItScored, "score_is_probability"),
    (hidden.RemembersWhereItWasAskedToo, "causal"),
    (hidden.HonestWhereAskedOfShortDocuments, "score_is_probability"),
]


@pytest.mark.parametrize(("cls", "check"), HIDDEN)
def test_who_hides_what_it_knows_gets_no_certificate(cls: type[cheats.Chain], check: str, tmp_path: Path) -> None:
    result, honest = measured(cls, tmp_path, 1), evaluate(cheats.Chain.random(CHARS, 1), CHARS, text_of(tmp_path, 1))
    assert result.bits_per_byte < 0.8 * honest.bits_per_byte  # or there would be nothing to see
    assert check in result.certificate.failures


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "check"), HIDDEN)
def test_who_hides_is_seen_19_times_in_20(cls: type[cheats.Chain], check: str, tmp_path: Path) -> None:
    assert sum(check in measured(cls, tmp_path, seed).certificate.failures for seed in range(TIMES)) >= CAUGHT


def test_tokens_drawn_by_chance_that_cost_too_little_are_told_of(tmp_path: Path) -> None:
    result = measured(hidden.RemembersWhereItWasAskedToo, tmp_path, 2)
    (causal,) = [check for check in result.certificate.checks if check.name == "causal"]
    assert "tokens drawn by chance cost" in causal.detail
