"""Sums of products of entries with indices, in a normal form: the algebra in which identities are proved for all sizes.

A term is a fraction times factors with exponents; a factor is an entry such as W[i, j], a Kronecker delta, or a
function of another sum. Indices from 0 are the axes of the whole sum; negative ones are summed over. Two sums
with the same normal form are equal for every size and every value. (The converse does not hold, and need not.)
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from lmlab_derive.sizes import Size

MAX_TERMS = 600
MAX_ORDERINGS = 720


PLACE = 1_000_000  # beyond every index


class NoProof(Exception):
    """This way of proving does not reach the claim."""


class Factor(NamedTuple):
    """One entry or function value.

    kind: "t" an entry of a given, "d" a delta, "f" a function of a sum, "b" a sum in brackets, "p" softmax, "l" the
    log-sum-exp that belongs to it, "i" an inverse, "o" something only compared (a maximum, say), and "c" with label k
    is 1 where its index is k. Indices from PLACE on are places: PLACE + 2 is the third entry.
    """

    kind: str
    label: str
    idx: tuple[int, ...]


@dataclass(frozen=True)
class Term:
    """coefficient * product of factor**exponent, summed over the dummies (negative indices, with their sizes)."""

    coefficient: Fraction
    factors: tuple[tuple[Factor, Fraction], ...]
    dummies: tuple[tuple[int, Size], ...] = ()

    @property
    def powers(self) -> dict[Factor, Fraction]:
        """The factors with their exponents."""
        return dict(self.factors)

    def changed(self, exponents: Mapping[Factor, Fraction | int], summed: int | None = None) -> Term:
        """The term with other exponents of some factors, 0 to leave one out, and without the dummy `summed`."""
        dummies = {i: size for i, size in self.dummies if i != summed}
        return make_term(self.coefficient, self.powers | {f: Fraction(e) for f, e in exponents.items()}, dummies)

    @cached_property
    def shape_key(self) -> str:
        """What the term is apart from its coefficient; canonical once dummies are in order."""
        parts = sorted(f"{f.kind}{f.label}{f.idx}^{e}" for f, e in self.factors)
        return " ".join(parts) + "|" + " ".join(f"{i}:{size}" for i, size in sorted(self.dummies))


@dataclass(frozen=True)
class Sum:
    """A sum of terms in normal form."""

    terms: tuple[Term, ...]

    @cached_property
    def key(self) -> str:
        """A text that is the same for equal normal forms."""
        return " + ".join(f"{t.coefficient}*{t.shape_key}" for t in self.terms) or "0"

    @property
    def free(self) -> set[int]:
        """The free indices that occur."""
        return {i for t in self.terms for f, _ in t.factors for i in f.idx if 0 <= i < PLACE}

    @property
    def constant(self) -> Fraction | None:
        """The number this sum is, when it is one."""
        if not self.terms:
            return Fraction(0)
        first = self.terms[0]
        return None if len(self.terms) > 1 or first.factors or first.dummies else first.coefficient


ZERO = Sum(())


def make_term(coefficient: Fraction, powers: Mapping[Factor, Fraction], dummies: Mapping[int, Size]) -> Term:
    """A term without factors to the power 0."""
    return Term(coefficient, tuple((f, e) for f, e in powers.items() if e), tuple(dummies.items()))


def number(value: Fraction | int) -> Sum:
    """A constant."""
    return Sum((Term(Fraction(value), ()),)) if value else ZERO


def single(factor: Factor, exponent: Fraction = Fraction(1)) -> Sum:
    """One factor."""
    return Sum((Term(Fraction(1), ((factor, exponent),)),))


def size_sum(size: Size) -> Sum:
    """A size as a number."""
    terms = []
    for monomial, count in size.terms:
        powers: dict[Factor, Fraction] = {}
        for name in monomial:
            factor = Factor("t", name, ())
            powers[factor] = powers.get(factor, Fraction(0)) + 1
        terms.append(make_term(Fraction(count), powers, {}))
    return Sum(tuple(terms))


def reindexed(term: Term, mapping: Mapping[int, int]) -> Term:
    """The term with indices renamed."""
    powers: dict[Factor, Fraction] = {}
    for factor, exponent in term.factors:
        idx = tuple(mapping.get(i, i) for i in factor.idx)
        moved = factor._replace(idx=tuple(sorted(idx)) if factor.kind == "d" else idx)
        powers[moved] = powers.get(moved, Fraction(0)) + exponent
    dummies = {mapping.get(i, i): size for i, size in term.dummies}
    return make_term(term.coefficient, powers, {i: size for i, size in dummies.items() if i < 0})


def shifted(sum_: Sum, mapping: Mapping[int, int]) -> Sum:
    """Every term with free indices renamed."""
    return Sum(tuple(reindexed(term, mapping) for term in sum_.terms))


def apart(left: Term, right: Term) -> Term:
    """The right term with its dummies renamed away from those of the left."""
    lowest = min([0, *(i for i, _ in left.dummies), *(i for i, _ in right.dummies)])
    taken = {i for i, _ in left.dummies}
    mapping = {}
    for i, _ in right.dummies:
        if i in taken:
            lowest -= 1
            mapping[i] = lowest
    return reindexed(right, mapping) if mapping else right


def product(left: Term, right: Term) -> Term:
    """left * right."""
    right = apart(left, right)
    powers = left.powers
    for factor, exponent in right.factors:
        powers[factor] = powers.get(factor, Fraction(0)) + exponent
    return make_term(left.coefficient * right.coefficient, powers, dict(left.dummies) | dict(right.dummies))


def canonical(term: Term) -> Term:
    """The term with its dummies renamed -1, -2, ... in an order that does not depend on how they were named."""
    if not term.dummies:
        return term
    colours = _colours(term)
    groups: dict[str, list[int]] = {}
    for i, _ in term.dummies:
        groups.setdefault(colours[i], []).append(i)
    ordered = [groups[colour] for colour in sorted(groups)]
    if math.prod(math.factorial(len(group)) for group in ordered) > MAX_ORDERINGS:
        raise NoProof
    candidates = []
    for choice in itertools.product(*(itertools.permutations(group) for group in ordered)):
        names = itertools.chain.from_iterable(choice)
        candidates.append(reindexed(term, {old: -1 - k for k, old in enumerate(names)}))
    return min(candidates, key=lambda candidate: candidate.shape_key)


def _colours(term: Term) -> dict[int, str]:
    """A colour for each dummy from where it occurs, refined by the colours around it."""
    colours = {i: str(size) for i, size in term.dummies}
    for _ in range(3):
        fresh = {}
        for i in colours:
            uses = []
            for factor, exponent in term.factors:
                places = [k for k, j in enumerate(factor.idx) if j == i]
                if places:
                    around = [colours.get(j, f"free{j}") if j != i else "self" for j in factor.idx]
                    uses.append(f"{factor.kind}{factor.label}{places}{around}{exponent}")
            fresh[i] = f"{colours[i][:40]}#{hash_text(' '.join(sorted(uses)))}"
        colours = fresh
    return colours


def hash_text(text: str) -> str:
    """A short, stable stand-in for a long text."""
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def collect(terms: Iterable[Term]) -> Sum:
    """Like terms together, in canonical order."""
    totals: dict[str, tuple[Fraction, Term]] = {}
    for term in terms:
        term = canonical(term)
        old = totals.get(term.shape_key)
        totals[term.shape_key] = (term.coefficient + (old[0] if old else 0), term)
        if len(totals) > MAX_TERMS:
            raise NoProof
    kept = [Term(c, t.factors, t.dummies) for key, (c, t) in sorted(totals.items()) if c]
    return Sum(tuple(kept))
