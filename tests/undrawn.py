"""Pictures that are empty, in the place of figures: drawing one takes longer than the rest of many a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from lmlab.comparison import figures, report, run_comparison
from lmlab.learn import curve_figures

LOSS_FIGURE = curve_figures.loss_figure  # as it is


def picture(*names: str) -> str:
    """Empty but for the names of what it would show."""
    return f'<svg xmlns="http://www.w3.org/2000/svg"><title>{", ".join(names)}</title></svg>'


def undrawn_loss(_: object, name: str, unit: str, extension_steps: object = ()) -> str:
    """In the place of the curve on the page of a run."""
    return picture(name, unit)


class Undrawn:
    """In the place of the figures on the page of a comparison."""

    Dot, Curve, Cost = figures.Dot, figures.Curve, figures.Cost

    @staticmethod
    def ranking(dots: Iterable[Any], _: float | None) -> str:
        """One figure."""
        return picture(*(dot.name for dot in dots))

    @staticmethod
    def curves(curves: Iterable[Any], level: Iterable[Any]) -> str:
        """One figure."""
        return picture(*(one.name for one in (*curves, *level)))

    @staticmethod
    def costs(found: Iterable[Any]) -> list[str]:
        """As many figures as there are costs."""
        return [picture(*(cost.name for cost in found))] * 3


def draw_no_comparisons(patch: pytest.MonkeyPatch) -> None:
    """Nor see how long drawing takes."""
    patch.setattr(report, "figures", Undrawn)
    patch.setattr(run_comparison, "drawing_s", lambda: (0.02, 0.02))
