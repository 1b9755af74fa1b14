"""A let written out in indexed sums, wherever it stood for itself while one differentiated by it."""

from __future__ import annotations

from fractions import Fraction

from lmlab_derive.symbols.calculus import Calculus, Tensor
from lmlab_derive.symbols.terms import Factor, NoProof, Sum, Term, number, single


class Substitution:
    """Puts `inner` in the place of a name."""

    def __init__(self, calculus: Calculus, name: str, inner: Tensor) -> None:
        self.calculus, self.algebra, self.name, self.inner = calculus, calculus.algebra, name, inner

    def of(self, sum_: Sum) -> Sum:
        """The sum with the name written out."""
        return self.algebra.by_terms(sum_, self._term)

    def _term(self, term: Term) -> Sum:
        out = number(term.coefficient)
        for factor, exponent in term.factors:
            out = self.algebra.times(out, self._factor(factor, exponent))
        return out

    def _factor(self, factor: Factor, exponent: Fraction) -> Sum:
        if not self.algebra.mentions(factor, self.name):
            return single(factor, exponent)
        if factor.kind == "t":
            there = self.algebra.placed(self.inner.sum, dict(zip(self.inner.sizes, factor.idx, strict=True)))
            places = dict(zip(factor.idx, self.inner.sizes.values(), strict=True))
            return self.algebra.power(self.algebra.normal(there.terms), exponent, places)
        function, argument = self.algebra.inside[factor.label]
        sizes = dict(enumerate(self.algebra.extents[factor.label]))
        written = self.of(argument)
        match factor.kind:
            case "b":
                fresh = written
            case "f" if function == "step":
                fresh = self.calculus.step(written, sizes)
            case "f":
                fresh = self.calculus.apply(function, written, sizes)
            case "p" | "l":
                along = self.calculus.softmax if factor.kind == "p" else self.calculus.logsumexp
                fresh = along(Tensor(tuple(sizes.values()), written), len(sizes) - 1)
            case _:
                raise NoProof
        splits = exponent.denominator == 1 and exponent >= 0
        if factor.kind != "b" and not splits and len(fresh.terms) != 1:
            raise NoProof
        placed = self.algebra.normal(self.algebra.placed(fresh, dict(enumerate(factor.idx))).terms)
        return self.algebra.power(placed, exponent, dict(zip(factor.idx, sizes.values(), strict=False)))
