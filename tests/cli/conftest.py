"""Commands that compare draw nothing: tests/comparison draws the figures."""

from __future__ import annotations

import pytest

from undrawn import draw_no_comparisons


@pytest.fixture(autouse=True)
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    draw_no_comparisons(monkeypatch)
