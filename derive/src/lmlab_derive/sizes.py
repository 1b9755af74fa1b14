"""Sizes of axes as symbols: integers, names, their sums (concat) and products (kron). Equal sizes are equal objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lmlab_derive.limits import Refusal

Monomial = tuple[str, ...]


@dataclass(frozen=True)
class Size:
    """A polynomial with integer coefficients in size names, in one canonical order."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(value: int | str) -> Size:
        """The size that is this number, or this name."""
        if isinstance(value, str):
            return Size((((value,), 1),))
        return Size((((), value),)) if value else Size(())

    @staticmethod
    def _collect(terms: Mapping[Monomial, int]) -> Size:
        return Size(tuple(sorted((m, c) for m, c in terms.items() if c)))

    def __add__(self, other: Size) -> Size:
        total = dict(self.terms)
        for monomial, count in other.terms:
            total[monomial] = total.get(monomial, 0) + count
        return Size._collect(total)

    def __neg__(self) -> Size:
        return Size(tuple((m, -c) for m, c in self.terms))

    def __mul__(self, other: Size) -> Size:
        total: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = tuple(sorted(left + right))
                total[monomial] = total.get(monomial, 0) + a * b
        return Size._collect(total)

    @property
    def number(self) -> int | None:
        """The value, when no name occurs in it."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def names(self) -> set[str]:
        """The size names that occur."""
        return {name for monomial, _ in self.terms for name in monomial}

    def renamed(self, old: str, new: str) -> Size:
        """The size with one name replaced."""
        return Size._collect({tuple(sorted(new if n == old else n for n in m)): c for m, c in self.terms})

    def value(self, sizes: Mapping[str, int]) -> int:
        """The number this size is when the names have these values."""
        total = 0
        for monomial, count in self.terms:
            product = count
            for name in monomial:
                product *= sizes[name]
            total += product
        return total

    def __str__(self) -> str:
        parts = []
        for monomial, count in sorted(self.terms, key=lambda term: (not term[0], term[0])):
            names = [name.split("#")[0] for name in monomial]  # a size hidden by a later name carries its line
            factors = ([str(abs(count))] if abs(count) != 1 or not monomial else []) + names
            parts.append(("-" if count < 0 else "+", "*".join(factors)))
        if not parts:
            return "0"
        text = ("-" if parts[0][0] == "-" else "") + parts[0][1]
        return text + "".join(sign + part for sign, part in parts[1:])


class Misfit(Refusal):
    """Two sizes that should be equal. The message is made when it is read: the search for hints meets thousands."""

    def __init__(self, what: str, left: Size, right: Size) -> None:
        ValueError.__init__(self, what, left, right)

    @property
    def template(self) -> str:  # type: ignore[override]
        """The message."""
        return str(self)

    def __str__(self) -> str:
        what, left, right = self.args
        return f"{what} differ ({left} and {right})"


ONE = Size.of(1)
Shape = tuple[Size, ...]


def shape_text(shape: Shape) -> str:
    """A shape as people write it: `(1, Dx)`, `(n)`, and `scalar` for no axes."""
    return "(" + ", ".join(map(str, shape)) + ")" if shape else "scalar"


def size_names(shape: Shape) -> set[str]:
    """The size names that occur in a shape."""
    return {name for axis in shape for name in axis.names}


def aligned(left: Shape, right: Shape) -> tuple[Shape, Shape]:
    """Both shapes with as many axes, counted from the back."""
    rank = max(len(left), len(right))
    return (ONE,) * (rank - len(left)) + left, (ONE,) * (rank - len(right)) + right


def broadcast(left: Shape, right: Shape) -> Shape:
    """NumPy's broadcasting, in symbols. Raises `Refusal` naming the first two sizes that differ."""
    if left == right or not right:
        return left
    out = []
    for a, b in zip(*aligned(left, right), strict=True):
        if a == b or b == ONE:
            out.append(a)
        elif a == ONE:
            out.append(b)
        else:
            raise Misfit("sizes", a, b)
    return tuple(out)
