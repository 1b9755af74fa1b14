"""Expectations of indexed sums: products of normal entries by pairing them up (Isserlis), finite ones outright."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from lmlab_derive.sizes import Shape, broadcast
from lmlab_derive.symbols.algebra import Algebra
from lmlab_derive.symbols.calculus import Tensor, extents
from lmlab_derive.symbols.terms import Factor, NoProof, Sum, Term, make_term, number, shifted
from lmlab_derive.tree import Expectation, Kind, Node

MAX_RANDOM_FACTORS = 8


class Averages:
    """Takes expectations in the normal form of an algebra; `build` turns the parameters of distributions into it."""

    def __init__(self, algebra: Algebra, build: Callable[[Node], Tensor]) -> None:
        self.algebra, self.setting, self.build = algebra, algebra.setting, build

    def of(self, node: Expectation) -> Tensor:
        """E[...] or Var[...]."""
        over = self.setting.random_names(node.operand) - set(node.fixed)
        value = self.build(node.operand)
        mean = self.mean(value.sum, over)
        if node.kind == "E":
            return Tensor(value.shape, mean)
        square = self.mean(self.algebra.times(value.sum, value.sum), over)
        return Tensor(value.shape, self.algebra.minus(square, self.algebra.times(mean, mean)))

    def mean(self, sum_: Sum, over: frozenset[str]) -> Sum:
        """The expectation of a polynomial in normal (and onehot) entries: every way to pair equal names up."""
        return self.algebra.by_terms(sum_, lambda term: self._term_mean(term, over))

    def _term_mean(self, term: Term, over: frozenset[str]) -> Sum:
        random: list[Factor] = []
        rest: dict[Factor, Fraction] = {}
        for factor, exponent in term.factors:
            if factor.kind == "t" and factor.label in over:
                if exponent.denominator != 1 or not 0 < exponent <= MAX_RANDOM_FACTORS:
                    raise NoProof
                random += [factor] * int(exponent)
            elif any(self.algebra.mentions(factor, name) for name in over):
                raise NoProof
            else:
                rest[factor] = exponent
        if len(random) > MAX_RANDOM_FACTORS:
            raise NoProof
        return self.algebra.times(Sum((make_term(term.coefficient, rest, {}),)), self._moment(random))

    def _moment(self, random: list[Factor]) -> Sum:
        """The mean of a product of random entries: names are independent of each other."""
        out = number(1)
        for name in dict.fromkeys(factor.label for factor in random):
            entries = [factor for factor in random if factor.label == name]
            kind = self.setting.distribution(name)
            assert kind is not None
            if any(self.setting.random_names(argument) for argument in kind.arguments):
                raise NoProof
            if kind.name == "normal":
                out = self.algebra.times(out, self._normal_moment(name, entries))
            elif kind.name == "onehot" and len(entries) == 1:
                probability = self.build(kind.arguments[0])
                out = self.algebra.times(out, shifted(probability.sum, {0: entries[0].idx[-1]}))
            elif kind.name == "bernoulli" and not entries[0].idx:
                out = self.algebra.times(out, self.build(kind.arguments[0]).sum)
            elif kind.outcomes and not entries[0].idx:
                out = self.algebra.times(out, self._finite_moment(kind, len(entries)))
            else:
                raise NoProof
        return out

    def _finite_moment(self, kind: Kind, power: int) -> Sum:
        out = number(0)
        for value, weight in kind.outcomes:
            chance = number(Fraction(1, len(kind.outcomes))) if weight is None else self.build(weight).sum
            raised = self.algebra.power(self.build(value).sum, Fraction(power), {})
            out = self.algebra.add(out, self.algebra.times(chance, raised))
        return out

    def _normal_moment(self, name: str, entries: list[Factor]) -> Sum:
        """Isserlis: the first entry is its mean, or is paired with one of the others."""
        if not entries:
            return number(1)
        given = self.setting.givens[name]
        kind = self.setting.distribution(name)
        assert kind is not None
        first, others = entries[0], entries[1:]
        centre = self._parameter(kind.arguments[0], given.shape, first)
        total = self.algebra.times(centre, self._normal_moment(name, others))
        for k, other in enumerate(others):
            deviation = self._parameter(kind.arguments[1], given.shape, first)
            pair = self.algebra.times(deviation, deviation)
            for i, j in zip(first.idx, other.idx, strict=True):
                pair = self.algebra.times(pair, self.algebra.delta(i, j))
            rest = self._normal_moment(name, others[:k] + others[k + 1 :])
            total = self.algebra.add(total, self.algebra.times(pair, rest))
        return total

    def _parameter(self, node: Node, shape: Shape, entry: Factor) -> Sum:
        """A mean or deviation at the indices of an entry."""
        value = self.build(node)
        broadcast(shape, value.shape)
        offset = len(shape) - len(value.shape)
        place = dict(zip(extents(shape), entry.idx, strict=True))
        return shifted(value.sum, {k: place[k + offset] for k in range(len(value.shape)) if k + offset in place})
