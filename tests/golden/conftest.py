"""Golden values are measured in one thread and without our functions in C, which then need not be made."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_places import Place, brought

from lmlab.hardware.c_kernels import SWITCH


@pytest.fixture(scope="session")
def kernels() -> list[Path]:
    """None."""
    return []


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the kept runs that is only read."""
    return brought(tmp_path_factory.mktemp("kept") / "golden")


@pytest.fixture(autouse=True)
def plain_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "off")


@pytest.fixture
def place(kept: Path, tmp_path: Path) -> Place:
    """Where a case is measured."""
    return Place(kept=kept, new=tmp_path)
