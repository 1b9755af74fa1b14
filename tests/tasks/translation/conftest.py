"""A translator that has learned a small table a little."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_pairs import TINY, write_table

import lmlab
from lmlab.learn.run import Run


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("pairs") / "written.tsv")


@pytest.fixture(scope="session")
def trained(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("runs") / "translator"
    return lmlab.train("translator", table, out=out, budget="25steps", settings=TINY, device="cpu")
