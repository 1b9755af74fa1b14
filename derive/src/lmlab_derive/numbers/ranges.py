"""Which values the conditions of a claim leave to a given by itself: 0.01 of -0.01 <= x <= 0.01 on either side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmlab_derive.shapes.setting import Setting
from lmlab_derive.tree import Binary, Call, Constant, Name, Negate, Node, Number, walk

Raw = np.ndarray[Any, np.dtype[np.float64]]
_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "abs": abs,
    "tanh": math.tanh,
    "square": lambda x: x * x,
}
_FREE = {"positive", "nonzero", "integer", "fraction"}  # kinds whose raw numbers are the values themselves
INSIDE = 1e-9  # relative: so far from the end of a range that is not part of it
NEAREST = 6.0  # the logarithm of how near to an end of a range numbers are drawn


@dataclass(frozen=True)
class Range:
    """The numbers between two ends; an end that is `open` is not one of them."""

    low: float = -math.inf
    high: float = math.inf

    def both(self, other: Range) -> Range:
        """What lies in two ranges."""
        return Range(max(self.low, other.low), min(self.high, other.high))

    def moved(self, raw: Raw, rng: np.random.Generator, whole: bool) -> Raw:
        """The numbers, those outside put inside: anywhere between two ends or next to one; beyond the only one."""
        outside = (raw < self.low) | (raw > self.high)
        if not outside.any():
            return raw
        new: Raw
        if math.isfinite(self.low) and math.isfinite(self.high):
            share: Raw = np.asarray(rng.random(raw.shape))
            beside: Raw = np.asarray(10.0 ** -(NEAREST * rng.random(raw.shape)))
            share = np.where(rng.random(raw.shape) < 0.7, share, np.where(share < 0.5, beside, 1 - beside))
            new = np.asarray(self.low + (self.high - self.low) * share)
        else:
            new = np.asarray(self.low + np.abs(raw) if math.isfinite(self.low) else self.high - np.abs(raw))
        return np.clip(np.round(new), np.ceil(self.low), np.floor(self.high)) if whole else np.where(outside, new, raw)


def ranges(setting: Setting) -> dict[str, Range]:
    """The range of every given that a condition names beside a number. Other conditions are for whoever draws to obey."""
    found: dict[str, Range] = {}
    for condition in setting.conditions:
        sides = (
            (condition.left, condition.relation, condition.right),
            _turned(condition.left, condition.relation, condition.right),
        )
        for left, sign, right in sides:
            end = value_of(right)
            for name, piece in _pieces(left, sign, end) if end is not None else ():
                if name in setting.givens and setting.distribution(name) is None and setting.kinds(name) <= _FREE:
                    found[name] = found.get(name, Range()).both(piece)
    return {name: piece for name, piece in found.items() if piece.low <= piece.high}


def _turned(left: Node, sign: str, right: Node) -> tuple[Node, str, Node]:
    return right, {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(sign, sign), left


def _pieces(node: Node, sign: str, end: float) -> Iterator[tuple[str, Range]]:
    beside = INSIDE * (abs(end) or 1.0) if sign in ("<", ">") else 0.0
    low = Range(low=end + beside) if sign[0] == ">" else None
    high = Range(high=end - beside) if sign[0] == "<" else None
    match node:
        case Name():
            for piece in (low, high):
                if piece is not None:
                    yield node.name, piece
        case Negate(operand=Name() as name):
            yield from _pieces(name, {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(sign, sign), -end)
        case Call(function="abs" | "max" | "norm", args=(Name() as name,)) if high is not None:
            yield name.name, Range(-high.high if node.function != "max" else -math.inf, high.high)
        case Call(function="min", args=(Name() as name,)) if low is not None:
            yield name.name, low


def value_of(node: Node) -> float | None:
    """The value of a formula of numbers alone, in any spelling: 1e-7, 10**6, 1 - 1/2, sqrt(2), pi/2, log(2). Else None."""
    try:
        return _value(node)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _value(node: Node) -> float | None:
    match node:
        case Number():
            return float(node.value)
        case Constant(name="pi"):
            return math.pi
        case Negate():
            inner = _value(node.operand)
            return None if inner is None else -inner
        case Call() if node.function in _FUNCTIONS and len(node.args) == 1:
            inner = _value(node.args[0])
            return None if inner is None else float(_FUNCTIONS[node.function](inner))
        case Binary(op="+" | "-" | "*" | "/" | "**"):
            left, right = _value(node.left), _value(node.right)
            if left is None or right is None:
                return None
            if node.op == "**":
                return float(left**right) if left > 0 or right == int(right) else None
            return (
                {"+": left + right, "-": left - right, "*": left * right}.get(node.op)
                if node.op != "/"
                else left / right
            )
    return None


def constants(nodes: list[Node]) -> set[float]:
    """The values of the formulas of numbers alone among these, without their signs; of 10**6, that is not 10 and 6."""
    found: set[float] = set()
    inside: set[int] = set()
    for node in nodes:
        value = None if id(node) in inside else value_of(node)
        if value is not None and math.isfinite(value):
            inside |= {id(part) for part in walk(node)}
            found.add(abs(value))
    return found
