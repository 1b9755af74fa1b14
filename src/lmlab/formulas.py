"""What a model is made of, as formulas: the one place where weights and operations are counted.

Every model says once which parts it has (`Learner.parts`), in plain arithmetic on its sizes. Given numbers that arithmetic
gives numbers, at once; given symbols of sympy it gives formulas. Tests hold both to real instances and to what PyTorch's
dispatcher counts. A multiply-add is two operations; only products count: lookups, sums, norms and activations do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Size = Any  # an int, or a sympy expression of such: the same code serves both

EMBEDDING, HEAD = "embedding", "head"  # names of parts that every language model has


@dataclass(frozen=True)
class Shape:
    """What a model reads at once: so many rows of so many tokens, after `past` ones whose states or keys are at hand.

    source: tokens of a second sequence that is attended to.
    """

    rows: Size = 1
    tokens: Size = 1
    past: Size = 0
    source: Size = 0

    @property
    def places(self) -> Size:
        """Tokens of all rows."""
        return self.rows * self.tokens


ONE_TOKEN = Shape()


@dataclass(frozen=True)
class Work:
    """Operations of a forward pass, and of the backward pass that follows it."""

    forward: Size = 0
    backward: Size = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.forward + other.forward, self.backward + other.backward)

    def times(self, count: Size) -> Work:
        """So often."""
        return Work(count * self.forward, count * self.backward)

    @property
    def both(self) -> Size:
        """Of a training step, the update apart."""
        return self.forward + self.backward


def product(rows: Size, inner: Size, columns: Size, wanted: int = 2) -> Work:
    """Of (rows × inner) times (inner × columns): back again once for each factor that a gradient is wanted of."""
    forward = 2 * rows * inner * columns
    return Work(forward, wanted * forward)


@dataclass(frozen=True)
class Part:
    """One part of a model. A weight that two parts share is counted in the first of them.

    multiplied: entries of matrices (or of a memory) that each token is multiplied with; sizes are chosen by it.
    """

    name: str
    weights: Size = 0  # numbers that are learned, in one of it
    multiplied: Size = 0
    work: Work = Work()  # of one of it
    times: Size = 1  # how many of it the model has

    @property
    def all_weights(self) -> Size:
        """In all of them."""
        return self.times * self.weights

    @property
    def all_work(self) -> Work:
        """Of all of them."""
        return self.work.times(self.times)


def weights(parts: Iterable[Part]) -> Size:
    """Numbers that a model of these parts learns."""
    return sum((part.all_weights for part in parts), 0)


def work(parts: Iterable[Part]) -> Work:
    """Operations of a model of these parts."""
    return sum((part.all_work for part in parts), Work())


def linear(places: Size, inputs: Size, outputs: Size, *, bias: bool = False) -> Part:
    """A matrix that every place is multiplied with, and perhaps a bias."""
    matrix = inputs * outputs
    return Part("linear", matrix + (outputs if bias else 0), matrix, product(places, inputs, outputs))


def joined(name: str, *parts: Part, vectors: Size = 0, times: Size = 1) -> Part:
    """Several as one. vectors: weights beside theirs that multiply nothing, such as those of a norm."""
    multiplied = sum((part.times * part.multiplied for part in parts), 0)
    return Part(name, weights(parts) + vectors, multiplied, work(parts), times)


def smaller(a: Size, b: Size) -> Size:
    """Of the two."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    import sympy

    return sympy.Min(a, b)


def divided_up(a: Size, b: Size) -> Size:
    """How many groups of b hold a things."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    import sympy

    return sympy.ceiling(a / b)


def shared_out(a: Size, b: Size) -> Size:
    """a divided by b, which divides it."""
    if isinstance(a, int) and isinstance(b, int):
        assert a % b == 0, f"{b} does not divide {a}"
        return a // b
    return a / b


def powers(base: Size, count: Size) -> Size:
    """base + base² + … + base^count."""
    if isinstance(base, int) and isinstance(count, int):
        return sum(base**i for i in range(1, count + 1))
    import sympy

    i = sympy.Symbol("i", integer=True)
    return sympy.Sum(base**i, (i, 1, count))
