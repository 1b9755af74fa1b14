"""The conditions on the indices of a claim: at which sizes they leave any entry to look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lmlab_derive.limits import MAX_EXPONENT
from lmlab_derive.numbers.evaluate import COMPARISONS, OPERATORS
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.tree import Binary, Call, Compare, Condition, Letter, Name, Negate, Node, Number, Table


def leaves_entries(setting: Setting, side: Node, sizes: dict[str, int]) -> bool:
    """Whether some values of the letters obey what is said of indices and sizes alone: i > 10 needs more than 10 entries."""
    if not isinstance(side, Table):
        return True
    masks = list(_masks(side.operand))
    if not masks:
        return True
    axes = [letter.first + np.arange(setting.shapes.range_of(w).value(sizes)) for letter, w in side.letters]
    grid = np.meshgrid(*axes, indexing="ij", sparse=True)
    places = {letter.name: values for (letter, _), values in zip(side.letters, grid, strict=True)}
    kept: Any = np.ones([len(axis) for axis in axes], dtype=bool)
    for mask in masks:
        try:
            kept = kept & COMPARISONS[mask.op](_whole(mask.left, places, sizes), _whole(mask.right, places, sizes))
        except KeyError:
            continue  # it speaks of values too, which points have
    return bool(kept.any())


def obeyed(condition: Condition, sizes: dict[str, int]) -> bool:
    """Whether sizes obey a condition that is about them alone; one that speaks of values too forbids none."""
    try:
        left, right = (_whole(side, {}, sizes) for side in (condition.left, condition.right))
    except KeyError:
        return True
    return bool(COMPARISONS[condition.relation](left, right))


def _masks(node: Node) -> Iterator[Compare]:
    """The conditions under which a side is looked at: those of the where calls that hold all of it."""
    while isinstance(node, Call) and node.function == "where":
        condition, node, _ = node.args
        if isinstance(condition, Compare):
            yield condition


def _whole(node: Node, places: dict[str, Any], sizes: dict[str, int]) -> Any:
    """The values of an expression in letters, sizes and numbers; a KeyError for any other."""
    match node:
        case Letter():
            return places[node.name]
        case Name():
            return sizes[node.name]
        case Number():
            return float(node.value)
        case Negate():
            return -_whole(node.operand, places, sizes)
        case Binary(op="+" | "-" | "*"):
            return OPERATORS[node.op](_whole(node.left, places, sizes), _whole(node.right, places, sizes))
        case Binary(op="**", right=Number(value=power)) if power.denominator == 1 and 0 <= power <= MAX_EXPONENT:
            return _whole(node.left, places, sizes) ** int(power)
        case Binary(op="/"):
            with np.errstate(all="ignore"):
                return np.true_divide(_whole(node.left, places, sizes), _whole(node.right, places, sizes))
    raise KeyError(node)
