"""Comparisons that look less closely than usual: most tests are about something else."""

from __future__ import annotations

import pytest

from lmlab.comparison import close_look


@pytest.fixture(autouse=True)
def shorter_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer bytes are compressed as a proof, and less is written as a sample; fixtures of a module look as usual."""
    monkeypatch.setattr(close_look, "PROOF_BYTES", 300)
    monkeypatch.setattr(close_look, "SAMPLE_CHARACTERS", 80)
