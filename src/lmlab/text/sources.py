"""Named corpora (being built)."""

from __future__ import annotations

from pathlib import Path


def available() -> dict[str, str]:
    """The named corpora, with a sentence each."""
    return {}


def get(name: str) -> list[Path]:
    """The documents of a named corpus, fetched if needed."""
    raise ValueError(f"there is no corpus {name!r} yet")
