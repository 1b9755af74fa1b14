"""Comparisons that look less closely than usual and draw nothing: most tests are about something else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from lmlab.comparison import close_look, figures, job, report


class Undrawn:
    """In the place of the figures of a page: a picture that is empty but for the names of what it would show."""

    Dot, Curve, Cost = figures.Dot, figures.Curve, figures.Cost

    @staticmethod
    def ranking(dots: Iterable[Any], _: float | None) -> str:
        """One figure."""
        return f'<svg xmlns="http://www.w3.org/2000/svg"><title>{", ".join(dot.name for dot in dots)}</title></svg>'

    @staticmethod
    def curves(curves: Iterable[Any], level: Iterable[Any]) -> str:
        """One figure."""
        return Undrawn.ranking([*curves, *level], None)

    @staticmethod
    def costs(found: Iterable[Any]) -> list[str]:
        """As many figures as there are costs."""
        return [Undrawn.ranking(found, None)] * 3


@pytest.fixture(autouse=True)
def shorter_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer bytes are compressed as a proof, less is written as a sample, and no figure is drawn.

    Fixtures of a module look and draw as usual, and test_figures.py draws every figure.
    """
    monkeypatch.setattr(close_look, "PROOF_BYTES", 150)
    monkeypatch.setattr(close_look, "SAMPLE_CHARACTERS", 80)
    monkeypatch.setattr(report, "figures", Undrawn)
    monkeypatch.setattr(job, "drawing_s", lambda: 0.02)
