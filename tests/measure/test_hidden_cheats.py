from __future__ import annotations

from pathlib import Path

import cheats
import hidden_cheats as hidden
import measure_models as planted
import pytest

from lmlab.measure import evaluate
from lmlab.text.parts import Part

CHARS = planted.tokenizer_for("char")
TIMES, CAUGHT = 20, 19


def text_of(folder: Path, seed: int) -> Part:
    """A document that is long enough to have a middle, and many short ones."""
    shorter = [planted.some_text(40, seed=100 * seed + i) for i in range(40)]
    return planted.part_of(folder, planted.some_text(500, seed=seed), *shorter, name=f"test{seed}")


HIDDEN = [hidden.PeeksBehindItsChunk]


@pytest.mark.parametrize("cls", HIDDEN)
def test_who_hides_what_it_knows_gets_no_certificate(cls: type[cheats.Chain], tmp_path: Path) -> None:
    text = text_of(tmp_path, 1)
    result, honest = (evaluate(kind.random(CHARS, 1), CHARS, text) for kind in (cls, cheats.Chain))
    assert result.bits_per_byte < 0.8 * honest.bits_per_byte  # or there would be nothing to see
    assert "score_is_probability" in result.certificate.failures


@pytest.mark.slow
@pytest.mark.parametrize("cls", HIDDEN)
def test_who_hides_is_seen_19_times_in_20(cls: type[cheats.Chain], tmp_path: Path) -> None:
    results = [evaluate(cls.random(CHARS, seed), CHARS, text_of(tmp_path, seed)) for seed in range(TIMES)]
    assert sum("score_is_probability" in result.certificate.failures for result in results) >= CAUGHT
