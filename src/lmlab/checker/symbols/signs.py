"""When a sum of indexed products cannot be negative."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmlab.checker.symbols.terms import Factor, Sum, Term

if TYPE_CHECKING:
    from lmlab.checker.symbols.calculus import Calculus


def at_least_zero(algebra: Calculus, sum_: Sum, strict: bool) -> bool:
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


def _term_sign(algebra: Calculus, term: Term) -> str:
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


def _nonnegative(algebra: Calculus, factor: Factor) -> bool:
    if factor.kind == "d":
        return True
    if factor.kind == "t":
        return bool(algebra.kinds.get(factor.label, set()) & {"onehot", "permutation"})
    if factor.kind == "f":
        return algebra.inside[factor.label][0] == "step"
    if factor.kind == "b":
        inner = algebra.inside[factor.label][1]
        return all(_term_sign(algebra, term) for term in inner.terms)
    return False


def _between(algebra: Calculus, terms: list[Term]) -> bool | None:
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
        if factor.kind == "f" and algebra.inside[factor.label][0] == "sigmoid":
            below = True
        elif factor.kind == "t" and algebra.kinds.get(factor.label, set()) & {
            "fraction",
            "simplex",
            "onehot",
            "permutation",
        }:
            below |= "fraction" in algebra.kinds[factor.label]
        elif factor.kind != "p" and not (factor.kind == "f" and algebra.inside[factor.label][0] == "step"):
            return None
    return below or one.coefficient > 1
