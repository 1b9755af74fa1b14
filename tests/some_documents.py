"""A list of invented names, sorted, for tests of texts that consist of many documents."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FIRST, MIDDLE, LAST = list("bdfghklmnprstv"), list("aeiou"), ["n", "ra", "s", "lo", "ndo"]


def invented_names(count: int) -> list[str]:
    """Different names of two or three syllables, in the order of the alphabet."""
    random = np.random.default_rng(0)
    found: set[str] = set()
    while len(found) < count:
        syllables = [f"{random.choice(FIRST)}{random.choice(MIDDLE)}" for _ in range(random.integers(1, 3))]
        found.add("".join(syllables) + random.choice(LAST))
    return sorted(found)


def list_of_names(folder: Path, count: int = 400) -> Path:
    """A file with one name on each line."""
    path = folder / "names.txt"
    path.write_text("\n".join(invented_names(count)) + "\n")
    return path
