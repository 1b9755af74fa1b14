"""Expectations of indexed sums: products of normal entries by pairing them up (Isserlis), finite ones outright."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from lmlab.checker.numbers.expectations import random_names
from lmlab.checker.shapes.setting import distribution
from lmlab.checker.sizes import ONE, Shape, broadcast
from lmlab.checker.symbols.calculus import Tensor
from lmlab.checker.symbols.terms import Factor, NoProof, Sum, Term, make_term, number, shifted
from lmlab.checker.tree import Expectation, Kind, Node

if TYPE_CHECKING:
    from lmlab.checker.symbols.build import Builder

MAX_RANDOM_FACTORS = 8


class Averages:
    """Takes expectations in the normal form of `builder`."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def of(self, node: Expectation) -> Tensor:
        """E[...] or Var[...]."""
        over = random_names(node.operand, self.builder.setting) - set(node.fixed)
        value = self.builder.build(node.operand)
        mean = self.mean(value.sum, over)
        if node.kind == "E":
            return Tensor(value.shape, mean)
        square = self.mean(self.builder.times(value.sum, value.sum), over)
        return Tensor(value.shape, self.builder.add(square, self.builder.scale(-1, self.builder.times(mean, mean))))

    def mean(self, sum_: Sum, over: frozenset[str]) -> Sum:
        """The expectation of a polynomial in normal (and onehot) entries: every way to pair equal names up."""
        total: list[Term] = []
        for term in sum_.terms:
            self.builder.deadline.check()
            open_, indices = self.builder.opened(term)
            random: list[Factor] = []
            rest: dict[Factor, Fraction] = {}
            for factor, exponent in open_.terms[0].factors:
                if factor.kind == "t" and factor.label in over:
                    if exponent.denominator != 1 or not 0 < exponent <= MAX_RANDOM_FACTORS:
                        raise NoProof
                    random += [factor] * int(exponent)
                elif any(self.builder.mentions(factor, name) for name in over):
                    raise NoProof
                else:
                    rest[factor] = exponent
            if len(random) > MAX_RANDOM_FACTORS:
                raise NoProof
            out = self.builder.times(Sum((make_term(term.coefficient, rest, {}),)), self._moment(random))
            total += self.builder.closed(out, indices).terms
        return self.builder.normal(total)

    def _moment(self, random: list[Factor]) -> Sum:
        """The mean of a product of random entries: names are independent of each other."""
        out = number(1)
        for name in dict.fromkeys(factor.label for factor in random):
            entries = [factor for factor in random if factor.label == name]
            kind = distribution(self.builder.setting.givens[name])
            assert kind is not None
            if any(random_names(argument, self.builder.setting) for argument in kind.arguments):
                raise NoProof
            if kind.name == "normal":
                out = self.builder.times(out, self._normal_moment(name, entries))
            elif kind.name == "onehot" and len(entries) == 1:
                probability = self.builder.build(kind.arguments[0])
                out = self.builder.times(out, shifted(probability.sum, {0: entries[0].idx[-1]}))
            elif kind.name == "bernoulli" and not entries[0].idx:
                out = self.builder.times(out, self.builder.build(kind.arguments[0]).sum)
            elif kind.outcomes and not entries[0].idx:
                out = self.builder.times(out, self._finite_moment(kind, len(entries)))
            else:
                raise NoProof
        return out

    def _finite_moment(self, kind: Kind, power: int) -> Sum:
        out = number(0)
        for value, weight in kind.outcomes:
            chance = number(Fraction(1, len(kind.outcomes))) if weight is None else self.builder.build(weight).sum
            out = self.builder.add(
                out, self.builder.times(chance, self.builder.power(self.builder.build(value).sum, Fraction(power), {}))
            )
        return out

    def _normal_moment(self, name: str, entries: list[Factor]) -> Sum:
        """Isserlis: the first entry is its mean, or is paired with one of the others."""
        if not entries:
            return number(1)
        given = self.builder.setting.givens[name]
        kind = distribution(given)
        assert kind is not None
        first, others = entries[0], entries[1:]
        centre = self._parameter(kind.arguments[0], given.shape, first)
        total = self.builder.times(centre, self._normal_moment(name, others))
        for k, other in enumerate(others):
            deviation = self._parameter(kind.arguments[1], given.shape, first)
            pair = self.builder.times(deviation, deviation)
            for i, j in zip(first.idx, other.idx, strict=True):
                pair = self.builder.times(pair, self.builder.delta(i, j))
            total = self.builder.add(
                total, self.builder.times(pair, self._normal_moment(name, others[:k] + others[k + 1 :]))
            )
        return total

    def _parameter(self, node: Node, shape: Shape, entry: Factor) -> Sum:
        """A mean or deviation at the indices of an entry."""
        value = self.builder.build(node)
        broadcast(shape, value.shape)
        offset = len(shape) - len(value.shape)
        long = [k for k, size in enumerate(shape) if size != ONE]
        place = dict(zip(long, entry.idx, strict=True))
        return shifted(value.sum, {k: place[k + offset] for k in range(len(value.shape)) if k + offset in place})
