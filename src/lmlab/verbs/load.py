"""`lmlab.load`: loads a trained run."""

from __future__ import annotations

from pathlib import Path

from lmlab.learn.run import Run, load_run


def load(folder: str | Path) -> Run:
    """Load the run in a folder."""
    return load_run(folder)
