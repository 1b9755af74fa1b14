"""When a sum of indexed products cannot be negative."""

from __future__ import annotations

from lmlab_derive.symbols.algebra import Algebra
from lmlab_derive.symbols.terms import Factor, Sum, Term


def at_least_zero(algebra: Algebra, sum_: Sum, strict: bool) -> bool:
    """Whether a sum is >= 0 (or > 0) whatever the values: term by term, with 1 - f for an f between 0 and 1."""
    terms = list(sum_.terms)
    if not terms:
        return not strict
    paired = _between(algebra, terms)
    if paired is not None:
        return paired or not strict
    if not all(_term_sign(algebra, term) for term in terms):
        return False
    return not strict or any(_term_sign(algebra, term) == "positive" for term in terms)


def _term_sign(algebra: Algebra, term: Term) -> str:
    """ "positive", "nonnegative" or "" for not known."""
    if term.coefficient <= 0:
        return ""
    sure = True
    for factor, exponent in term.factors:
        if algebra.positive(factor):
            continue
        even = exponent.denominator == 1 and exponent % 2 == 0
        if not even and not _nonnegative(algebra, factor):
            return ""
        sure = False
    return "positive" if sure else "nonnegative"


def _nonnegative(algebra: Algebra, factor: Factor) -> bool:
    if factor.kind == "b":
        return all(_term_sign(algebra, term) for term in algebra.inside[factor.label][1].terms)
    zero_or_one = algebra.kinds_of(factor) & {"onehot", "permutation"} or algebra.function(factor) == "step"
    return factor.kind == "d" or bool(zero_or_one)


def _between(algebra: Algebra, terms: list[Term]) -> bool | None:
    """1 - f, with f in [0, 1]: True when f stays below 1, False when it may reach it, None for anything else."""
    if len(terms) != 2:
        return None
    one, other = sorted(terms, key=lambda term: len(term.factors))
    if one.factors or one.dummies or one.coefficient < 1 or other.coefficient != -1 or other.dummies:
        return None
    below = False
    for factor, exponent in other.factors:
        if exponent < 1:
            return None
        kinds = algebra.kinds_of(factor) & {"fraction", "simplex", "onehot", "permutation"}
        if not kinds and factor.kind != "p" and algebra.function(factor) not in ("sigmoid", "step"):
            return None
        below |= "fraction" in kinds or algebra.function(factor) == "sigmoid"
    return below or one.coefficient > 1
