"""Comparisons that look less closely than usual and draw nothing: most tests are about something else."""

from __future__ import annotations

import pytest

from lmlab.comparison import close_look
from undrawn import draw_no_comparisons


@pytest.fixture(autouse=True)
def shorter_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer bytes are compressed as a proof, less is written as a sample, and no figure is drawn.

    Fixtures of a module look and draw as usual, and test_figures.py draws every figure.
    """
    monkeypatch.setattr(close_look, "PROOF_BYTES", 150)
    monkeypatch.setattr(close_look, "SAMPLE_CHARACTERS", 80)
    draw_no_comparisons(monkeypatch)
