"""Derivatives of indexed sums, factor by factor."""

from __future__ import annotations

from lmlab_derive.symbols.calculus import Calculus
from lmlab_derive.symbols.terms import Factor, NoProof, Sum, Term, number, product, single


class Differentiator:
    """Takes derivatives in the normal form of an algebra."""

    def __init__(self, calculus: Calculus) -> None:
        self.calculus, self.algebra = calculus, calculus.algebra

    def of(self, sum_: Sum, name: str, axes: tuple[int, ...]) -> Sum:
        """d sum / d name, whose entries get the indices `axes` (one for each axis of the name that has an index)."""
        return self.algebra.by_terms(sum_, lambda term: self._product_rule(term, name, axes))

    def _product_rule(self, term: Term, name: str, axes: tuple[int, ...]) -> Sum:
        total: list[Term] = []
        for factor, exponent in term.factors:
            if not self.algebra.mentions(factor, name):
                continue
            slope = self._factor_derivative(factor, name, axes)
            rest = term.changed({factor: exponent - 1})
            total += self.algebra.scale(exponent, Sum(tuple(product(rest, t) for t in slope.terms))).terms
        return self.algebra.normal(total)

    def _factor_derivative(self, factor: Factor, name: str, axes: tuple[int, ...]) -> Sum:
        if factor.kind == "t":
            out = number(1)
            for i, j in zip(factor.idx, axes, strict=True):
                out = self.algebra.times(out, self.algebra.delta(i, j))
            return out
        if factor.kind == "o":
            raise NoProof
        if factor.kind in "pl":
            return self._softmax_derivative(factor, name, axes)
        if factor.kind == "i":
            return self._inverse_derivative(factor, name, axes)
        argument = self.algebra.argument(factor)
        inner = self.of(argument, name, axes)
        if factor.kind == "b":
            return inner
        sizes = dict(zip(factor.idx, self.algebra.extents[factor.label], strict=True))
        slope = self.calculus.slope(self.algebra.function(factor), argument, single(factor), sizes)
        return self.algebra.times(slope, inner)

    def _softmax_derivative(self, factor: Factor, name: str, axes: tuple[int, ...]) -> Sum:
        """dP_i = P_i (du_i - sum_j P_j du_j); d logsumexp = sum_j P_j du_j."""
        rows = factor.idx[:-1] if factor.kind == "p" else factor.idx
        size = self.algebra.extents[factor.label][-1]
        _, inner = self.algebra.inside[factor.label]
        other = self.algebra.fresh()
        at_other = Factor("p", factor.label, (*rows, other))
        moved = self.algebra.placed(inner, dict(enumerate((*rows, other))))
        mean = self.algebra.contract(self.algebra.times(single(at_other), self.of(moved, name, axes)), other, size)
        if factor.kind == "l":
            return mean
        here = self.of(self.algebra.argument(factor), name, axes)
        return self.algebra.times(single(factor), self.algebra.minus(here, mean))

    def _inverse_derivative(self, factor: Factor, name: str, axes: tuple[int, ...]) -> Sum:
        """d inv(M) = -inv(M) dM inv(M)."""
        size = self.algebra.extents[factor.label][0]
        _, inner = self.algebra.inside[factor.label]
        a, b = self.algebra.fresh(), self.algebra.fresh()
        middle = self.of(self.algebra.placed(inner, {0: a, 1: b}), name, axes)
        left, right = factor._replace(idx=(factor.idx[0], a)), factor._replace(idx=(b, factor.idx[1]))
        total = self.algebra.times(self.algebra.times(single(left), middle), single(right))
        return self.algebra.scale(-1, self.algebra.contract(self.algebra.contract(total, a, size), b, size))
