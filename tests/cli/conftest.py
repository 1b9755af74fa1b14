"""Commands that compare draw nothing and compress less as a proof: tests/comparison and tests/compression look closely."""

from __future__ import annotations

import pytest

from lmlab.comparison import close_look
from undrawn import draw_no_comparisons


@pytest.fixture(autouse=True)
def shorter_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(close_look, "PROOF_BYTES", 150)
    draw_no_comparisons(monkeypatch)
