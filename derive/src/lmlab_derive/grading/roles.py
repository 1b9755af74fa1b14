"""The same thing said with other names: an entry for the whole array, and bound names by the part that they play."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lmlab_derive.limits import Refusal
from lmlab_derive.read.sheet import ScopedClaim
from lmlab_derive.shapes.scope import Scope, rename, renamed_scope
from lmlab_derive.shapes.setting import build
from lmlab_derive.sizes import ONE
from lmlab_derive.small_formulas import ZERO
from lmlab_derive.tree import (
    Call,
    Derivative,
    Given,
    Index,
    Letter,
    Name,
    Node,
    Slice,
    Step,
    Table,
    Transpose,
)

_ALL = Slice(None, None)


def of_whole_arrays(steps: Sequence[Step], at: int, scope: Scope) -> tuple[Step, ...] | None:
    """The steps of a claim about all entries of an array, as a claim about that array: dJ/dW == ... for dJ/dW[i, j] == ...

    None where the step at this place is no entry, or not every entry is meant. The axes of all sides come in the order
    of the array's own.
    """
    value = steps[at].value
    inside = value.operand if isinstance(value, Table) else value
    if not isinstance(inside, Index) or inside.operand.free_letters:
        return None
    letters = {letter.name: witness for letter, witness in value.letters} if isinstance(value, Table) else {}
    named = [item.name for item in inside.items if isinstance(item, Letter)]
    if sorted(named) != sorted(letters):
        return None
    shapes = build(scope).shapes
    try:
        shape = shapes.of(inside.operand)
        ranges = {name: shapes.range_of(witness) for name, witness in letters.items()}
    except Refusal:
        return None
    kinds = []  # of each axis: a letter, the single entry of an axis of size 1, or all of it
    for axis, size in enumerate(shape):
        item = inside.items[axis] if axis < len(inside.items) else _ALL
        if isinstance(item, Letter) and ranges[item.name] == size:
            kinds.append("letter")
        elif item == ZERO and size == ONE:
            kinds.append("single")
        elif item == _ALL:
            kinds.append("all")
        else:
            return None
    order = [kind for kind in kinds if kind != "single"]
    if order == ["all", "letter"]:
        turned = True
    elif order == sorted(order, reverse=True):
        turned = False
    else:
        return None
    singles = [axis for axis, kind in enumerate(kinds) if kind == "single"]

    def whole(step: Step) -> Step:
        found = step.value
        if isinstance(found, Table):
            found = replace(found, letters=tuple(sorted(found.letters, key=lambda pair: named.index(pair[0].name))))
        elif letters:
            return step  # a number that bounds all entries
        found = Transpose(found) if turned else found
        for axis in singles:
            found = Call("expand_dims", (found,), axis)
        return replace(step, value=found)

    return tuple(
        replace(step, value=inside.operand) if place == at else whole(step) for place, step in enumerate(steps)
    )


def in_the_keys_names(entry: ScopedClaim, target: Node, key: Scope) -> ScopedClaim | None:
    """The claim with its own names for those of the key that play the same part: KL(P, Q) for the key's KL(f, g).

    They play the same part if one side is then what the key asks for, and if they are of the same shapes and kinds.
    """
    for step in entry.claim.steps:
        roles = _Roles(entry.scope, key)
        if roles.same(step.value, target) and roles.names and roles.fit():
            names = roles.names | roles.sizes
            steps = []
            for own in entry.claim.steps:
                value = own.value
                for old, new in names.items():
                    value = rename(value, old, new)
                steps.append(replace(own, value=value))
            return ScopedClaim(replace(entry.claim, steps=tuple(steps)), renamed_scope(entry.scope, names))
    return None


class _Roles:
    """Which names of a student stand where names of the key do."""

    def __init__(self, own: Scope, key: Scope) -> None:
        self.own, self.key = own, key
        self.names: dict[str, str] = {}
        self.sizes: dict[str, str] = {}
        self.letters: dict[str, str] = {}

    def same(self, mine: Any, wanted: Any) -> bool:
        """Whether two formulas are the same but for names that are the student's own."""
        if isinstance(mine, Name) and isinstance(wanted, Name):
            return self._called(mine.name, wanted.name)
        if isinstance(mine, Letter) and isinstance(wanted, Letter):
            return mine.first == wanted.first and self.letters.setdefault(mine.name, wanted.name) == wanted.name
        if isinstance(mine, Derivative) and isinstance(wanted, Derivative):
            by = len(mine.by) == len(wanted.by) and all(map(self._called, mine.by, wanted.by))
            return by and mine.strict == wanted.strict and self.same(mine.operand, wanted.operand)
        if isinstance(mine, tuple):
            return isinstance(wanted, tuple) and len(mine) == len(wanted) and all(map(self.same, mine, wanted))
        if not dataclasses.is_dataclass(mine) or type(mine) is not type(wanted):
            return bool(mine == wanted)
        compared = [field.name for field in dataclasses.fields(mine) if field.compare]
        return all(self.same(getattr(mine, name), getattr(wanted, name)) for name in compared)

    def _called(self, mine: str, wanted: str) -> bool:
        known = self.names if mine in self.own.definitions else self.sizes
        if mine in self.key.known:
            return mine == wanted
        if mine not in known and wanted in known.values():
            return False
        return known.setdefault(mine, wanted) == wanted

    def fit(self) -> bool:
        """Whether the names are givens of the same shapes and kinds."""
        for mine, wanted in self.names.items():
            pair = self.own.definitions.get(mine), self.key.definitions.get(wanted)
            if not all(isinstance(given, Given) for given in pair):
                return False
            first, second = pair
            assert isinstance(first, Given)
            assert isinstance(second, Given)
            if len(first.shape) != len(second.shape) or not self.same(first.kinds, second.kinds):
                return False
            for axis, other in zip(first.shape, second.shape, strict=True):
                new = sorted(axis.names - self.key.sizes)
                if len(new) == 1 and len(other.names) == 1 and not self._called(new[0], min(other.names)):
                    return False
                renamed = axis
                for old, name in self.sizes.items():
                    renamed = renamed.renamed(old, name)
                if renamed != other:
                    return False
        return True
