"""Long lists of cases: some always, the others where there is time (`make test-all`)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest


def thinned(cases: Iterable[Any], always: Collection[Any]) -> list[Any]:
    """All cases; those that are not among `always` are slow."""
    found = list(cases)
    assert all(case in found for case in always), f"not among the cases: {always}"
    return [case if case in always else pytest.param(case, marks=pytest.mark.slow) for case in found]


def examples(count: int) -> int:
    """How many examples hypothesis draws: all of them where there is time (`make test-all`), else a quarter, and 8 at least."""
    return count if os.environ.get("LMLAB_THOROUGH") else max(8, count // 4)
