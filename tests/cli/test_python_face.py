"""What `import lmlab` offers is there, whatever was imported or called before."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import pytest

import lmlab


def test_every_call_that_is_offered_can_be_seen_and_called() -> None:
    assert set(lmlab.__all__) <= set(dir(lmlab))
    assert all(callable(getattr(lmlab, name)) for name in lmlab.__all__)
    hidden = [name for name in lmlab.__all__ if importlib.util.find_spec(f"lmlab.{name}")]
    assert not hidden, "a module of the same name takes the place of the function once it is imported"


def test_compare_can_be_called_again_and_after_its_package_was_imported(small_text: Path, tmp_path: Path) -> None:
    importlib.import_module("lmlab.comparison.report")
    for _ in range(2):
        with pytest.raises(ValueError, match="did you mean 'gpt'"):
            lmlab.compare(small_text, models=["gtp"], out=tmp_path / "out")
