r"""Fractions of LaTeX: quotients, and derivatives that are written as fractions.

\frac{a}{b}   is read as   ((a)/(b))
\frac{\partial}{\partial x_j}   as   d/dx_j       \frac{\partial (x_i x_k)}{\partial x_j}   as   (d/dx_j (x_i x_k))
∂²f/∂x∂y   as   (d2/dxdy (f))
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_D = r"(?:\\partial|d|∂)"
_TWO = r"(?:\^|\*\*)\s*(?:2|\{\s*2\s*\})"
_PLACED = (
    r"(\\?[^\W\d_]\w*'*(?:_?\[[^\[\]]*\]|_\{[^{}]*\}|\{[^{}]*\})?)"  # x, x_j, W_{ij} and W_[i,j], which was W_{i,j}
)
_ABOVE = re.compile(rf"\s*({_D})\s*({_TWO})?\s*(.*?)\s*")
_BELOW = re.compile(rf"\s*{_D}\s*{_PLACED}\s*(?:({_TWO})|{_D}\s*{_PLACED})?\s*")
_SIZED = r"(?:\\(?:left|right|[bB]ig[lr]?)\s*)?"
_SQUARE = re.compile(rf"{_SIZED}\[(.*?){_SIZED}\]")
_NAME = re.compile(r"\\?[^\W\d_]\w*'*")
_FUNCTION = re.compile(r"\\(?:log|ln|exp|sqrt|det|(?:sin|cos|tan)h?)(?![a-z])")
_CALLED = re.compile(r"^\\[a-z]+\s*(?=\(|\\left\s*\()")  # \sigma before its bracket
_INLINE = re.compile(
    rf"{_D}\s*{_TWO}\s*({_NAME.pattern})?\s*/\s*(\(\s*)?({_D}\s*{_PLACED}\s*(?:{_TWO}|{_D}\s*{_PLACED}))(?(2)\s*\))"
)
_PARTIAL = re.compile(r"\\partial|∂")


@dataclass(frozen=True)
class _Above:
    """The upper half of a derivative."""

    twice: bool
    operand: str  # nothing for an operator, which differentiates what follows it


def fraction(above: str, below: str) -> str:
    """A fraction whose halves hold no braces any more, in the signs of the language."""
    upper, names = _upper(above), _names(below)
    if upper is None or len(names) != 1 + upper.twice:
        return f"(({above})/({below}))"
    operator = _operator(names)
    return f" ({operator}({upper.operand})) " if upper.operand else operator


def inline_seconds(row: str) -> str:
    """Second derivatives on one line, ∂²f/∂x∂y and d²/dt² f, in the signs of the language."""
    spelt = row.replace("²", "^2")
    return _INLINE.sub(lambda m: fraction(f"d^2 {m[1] or ''}", m[3]), spelt) if _INLINE.search(spelt) else row


def _upper(above: str) -> _Above | None:
    """What a derivative is of; None for the numerator of a quotient.

    A d may be a name, as that of a size: what it stands before is differentiated only where brackets surround it.
    """
    found = _ABOVE.fullmatch(above)
    if found is None:
        return None
    sign, twice, operand = found[1], bool(found[2]), found[3]
    if sign == "d" and above.lstrip()[1:2].isalpha():  # dim
        return None
    square = _SQUARE.fullmatch(operand)
    if square and _is_whole(square[1]):
        return _Above(twice, square[1])
    whole = not operand or _is_bracket(_CALLED.sub("", operand)) or (twice and bool(_NAME.fullmatch(operand)))
    by_name = sign == "d" and not _FUNCTION.match(operand)
    if not whole and (by_name or _PARTIAL.search(operand) or not _is_whole(operand, alone=True)):
        return None
    return _Above(twice, operand)


def _names(below: str) -> list[str]:
    """The names that are differentiated by, with their places; nothing for the denominator of a quotient."""
    found = _BELOW.fullmatch(below)
    if found is None:
        return []
    return [found[1], *([found[1]] if found[2] else []), *([found[3]] if found[3] else [])]


def _operator(names: list[str]) -> str:
    """d/dx for one name; d2/dx2 and d2/dxdy for two, or one after the other where they are entries."""
    if len(names) == 1:
        return f"d/d{names[0]} "
    if any("_" in name or "[" in name for name in names):
        return "".join(f"d/d{name} " for name in names)
    return f"d2/d{names[0]}2 " if names[0] == names[1] else f"d2/d{names[0]}d{names[1]} "


def _is_bracket(text: str) -> bool:
    """Whether one pair of round brackets surrounds all, but for a subscript: (W x)_i."""
    found = re.fullmatch(rf"{_SIZED}\((.*){_SIZED}\)(?:_\w+|_?\[[^\[\]]*\])?", text)
    return found is not None and _is_whole(found[1])


def _is_whole(text: str, alone: bool = False) -> bool:
    """Whether all brackets close inside, and no sum or relation stands outside them where it is `alone`."""
    depth = 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        if depth < 0 or (alone and depth == 0 and char in "+-−=<>"):
            return False
    return depth == 0
