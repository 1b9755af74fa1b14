"""Letters for models: two share a letter exactly if they cannot be told apart (a compact letter display).

A letter stands for a group of models no two of which can be told apart. The largest such groups are found (Bron & Kerbosch
1973), and groups that say nothing new are left out, smallest first (Piepho 2004).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def letters_of(apart_KK: np.ndarray, order: Sequence[int]) -> tuple[str, ...]:
    """The letters of each model. order: the models from the best down, so that the best has an "a"."""
    tied = [{int(j) for j in np.flatnonzero(~row)} - {i} for i, row in enumerate(apart_KK)]
    place = {model: p for p, model in enumerate(order)}
    groups = _needed([sorted(g, key=place.__getitem__) for g in _largest_groups(set(), set(order), set(), tied)])
    groups.sort(key=lambda group: [place[model] for model in group])
    names = [""] * len(order)
    for number, group in enumerate(groups):
        for model in group:
            names[model] += _name(number)
    return tuple(names)


def _largest_groups(
    group: set[int], possible: set[int], done: set[int], tied: Sequence[set[int]]
) -> Iterator[frozenset[int]]:
    """All groups of models tied with each other to which no other can be added."""
    if not possible and not done:
        if group:
            yield frozenset(group)
        return
    pivot = max(possible | done, key=lambda model: len(tied[model] & possible))
    for model in sorted(possible - tied[pivot]):
        yield from _largest_groups(group | {model}, possible & tied[model], done & tied[model], tied)
        possible, done = possible - {model}, done | {model}


def _needed(groups: list[list[int]]) -> list[list[int]]:
    """The groups without those whose every pair is in another one too."""
    kept = sorted(groups, key=len)
    for group in list(kept):
        others = [set(other) for other in kept if other is not group]
        # a group of one has no pairs: it is needed, for its model is in no other
        if len(group) > 1 and all(any({a, b} <= other for other in others) for a, b in combinations(group, 2)):
            kept.remove(group)
    return kept


def _name(number: int) -> str:
    """a to z, then a2 to z2, and so on."""
    round_, letter = divmod(number, len(ALPHABET))
    return ALPHABET[letter] + (str(round_ + 1) if round_ else "")
