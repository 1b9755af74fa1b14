"""Verbs of Python are held to their signatures."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lmlab import arguments
from lmlab.arguments import Kind
from lmlab.config import Mistake


def test_a_hundred_thousand_texts_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which took three times as long as to score them."""
    seen: list[object] = []

    def counted(value: object) -> bool:
        seen.append(value)
        return isinstance(value, str)

    monkeypatch.setitem(arguments.KINDS, "str", Kind(counted, "text", "texts"))

    def verb(texts: Sequence[str]) -> int:
        return len(texts)

    held = arguments.held_to_its_signature(verb)
    assert held(["a text"] * 100_000) == 100_000
    assert len(seen) < 10
    with pytest.raises(Mistake, match="texts is a list of texts"):
        held(["a text"] * 1000 + [3])  # type: ignore[list-item]
