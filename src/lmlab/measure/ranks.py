"""Who is better than whom: intervals of all differences that hold together, and ranks and letters that say just that.

Of many models that are all equal, some two will differ "significantly" by chance if every pair is looked at by itself. So
the intervals of all pairs are widened together, until in 95 of 100 comparisons not one of them misses. How far is found
by drawing: errors of all models that go together as theirs do over the units of the text, and standard errors estimated
from as many units as there are; every difference is divided by its own, and the largest over all pairs counts.

Differences add up: (a to c) is (a to b) and (b to c). So bounds of two pairs bound the third, and the intervals are
tightened by that; they hold together as before. What remains is a strict order: a better than b, and b than c, makes a
better than c.

Being tied is no such order (a and b may be tied, b and c too, while a is better than c), so no single number can say
who is tied with whom. Letters can: two models share a letter exactly if they cannot be told apart.

Shapes: K models, P pairs, n contributions, R draws, r columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmlab.measure.interval import margins, units_of
from lmlab.measure.interval_units import SENTENCES, About, Contributions, Units, contributions
from lmlab.measure.letters import letters_of
from lmlab.measure.luck import NO_LUCK, Luck
from lmlab.measure.student import t_within

if TYPE_CHECKING:
    from lmlab.measure.scored import Scored

DRAWS = 2000
PIECES = 20  # of a text: equal models are in one order in all of them once in half a million texts
BELOW_ZERO = -1e-12  # the bound of a difference that is known to be negative and no more


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranking:
    """All pairs of K models, told apart or not.

    low and high bound the bits per byte of the row's model minus those of the column's, for all pairs together.
    throughout says whether the row's model needs fewer bits in each of PIECES pieces of this very text.
    """

    bits_K: np.ndarray
    low_KK: np.ndarray
    high_KK: np.ndarray
    throughout_KK: np.ndarray
    about: About
    level: float
    letters: tuple[str, ...]  # two models share a letter exactly if they cannot be told apart
    note: str  # what the intervals are for, or why nothing can be told apart

    @property
    def better_KK(self) -> np.ndarray:
        """Whether the row's model predicts better than the column's, told apart from chance."""
        return self.high_KK < 0.0

    @property
    def apart_KK(self) -> np.ndarray:
        """Whether the two can be told apart."""
        return self.better_KK | self.better_KK.T

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The best and the worst rank that each model may have."""
        ahead, behind = self.better_KK.sum(axis=0), self.better_KK.sum(axis=1)
        return [(1 + int(a), len(ahead) - int(b)) for a, b in zip(ahead, behind, strict=True)]

    @property
    def ranks(self) -> list[int]:
        """The best rank each may have. Models with one rank cannot be told apart; tied models may have different ones."""
        return [best for best, _ in self.ranges]

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        return {
            "about": self.about,
            "level": self.level,
            "note": self.note,
            "models": {
                name: {"letters": letters, "ranks": list(span)}
                for name, letters, span in zip(names, self.letters, self.ranges, strict=True)
            },
            "pairs": [
                {
                    "a": names[i],
                    "b": names[j],
                    "difference": _finite(self.bits_K[i] - self.bits_K[j]),
                    "low": _finite(self.low_KK[i, j]),
                    "high": _finite(self.high_KK[i, j]),
                    "apart": bool(self.apart_KK[i, j]),
                    "throughout": bool(self.throughout_KK[i, j] or self.throughout_KK[j, i]),
                }
                for i in range(len(names))
                for j in range(i + 1, len(names))
            ],
        }


def rank(scored: Sequence[Scored], *, luck: Luck = NO_LUCK, level: float = 0.95, seed: int = 0) -> list[int]:
    """The best rank that each model may have on a text they were all measured on; see `Ranking.ranks`."""
    return ranking(units_of(scored), luck=luck, level=level, seed=seed).ranks if scored else []


def ranking(
    units: Units, *, luck: Luck = NO_LUCK, about: About | None = None, level: float = 0.95, seed: int = 0
) -> Ranking:
    """Tell models apart, all pairs together. Infinite models are behind all finite ones, and tied with each other."""
    about = about or units.about
    bits_K = units.bits_K
    finite_K = np.isfinite(bits_K)
    K = len(bits_K)
    low_KK, high_KK = np.full((K, K), -np.inf), np.full((K, K), np.inf)
    # what is known without statistics: a finite number is below an infinite one
    high_KK[np.ix_(finite_K, ~finite_K)] = -np.inf
    low_KK[np.ix_(~finite_K, finite_K)] = np.inf
    index = np.flatnonzero(finite_K)
    if len(index) and not units.too_few:
        some = replace(units, nats_KU=units.nats_KU[index], bytes_KU=units.bytes_KU[index])
        gap_KK = bits_K[index][:, None] - bits_K[index][None, :]
        high = _upper_bounds(gap_KK, contributions(some, about), luck.of(index.tolist()), level, seed)
        high_KK[np.ix_(index, index)], low_KK[np.ix_(index, index)] = high, -high.T
    better = high_KK < 0.0
    order = np.argsort(np.where(finite_K, bits_K, np.inf), kind="stable").tolist()
    return Ranking(
        bits_K=bits_K,
        low_KK=low_KK,
        high_KK=high_KK,
        throughout_KK=_throughout(units),
        about=about,
        level=level,
        letters=letters_of(better | better.T, order),
        note=units.too_few or SENTENCES[about],
    )


def _throughout(units: Units) -> np.ndarray:
    """Whether the row's model needs fewer bits than the column's in each of PIECES pieces of the text (K×K)."""
    U = len(units.document_U)
    if U < PIECES:
        return np.zeros((len(units.nats_KU),) * 2, dtype=bool)
    edges = np.linspace(0, U, PIECES + 1).astype(int)[:-1]
    bits = np.add.reduceat(units.nats_KU, edges, axis=1) / np.add.reduceat(units.bytes_KU, edges, axis=1)
    return np.asarray((bits[:, None] < bits[None, :]).all(axis=2))


def _upper_bounds(gap_KK: np.ndarray, found: Contributions, luck: Luck, level: float, seed: int) -> np.ndarray:
    """Bounds of every difference from above (K×K), so that all of them hold together.

    Bounds of all pairs come first. Pairs that they tell apart are left out, and the others are looked at again with the smaller
    factor that fewer pairs need, until no more are told apart (Romano & Wolf 2005). A pair that is told apart only then has
    no bound but zero.
    """
    K = len(gap_KK)
    first, second = np.triu_indices(K, 1)
    if not len(first):
        return gap_KK.copy()
    ratio_RP = _largest_ratios(found, luck, np.random.Generator(np.random.PCG64(seed)))
    table_nP = found.table_nK[:, first] - found.table_nK[:, second]
    luck_P = luck.variance(first, second)
    gap_P = gap_KK[first, second]
    tied_P = np.ones(len(first), dtype=bool)
    half_P = None
    while tied_P.any():
        factor = float(np.quantile(ratio_RP[:, tied_P].max(axis=1), level))
        text_P = margins(found, table_nP, float(t_within(np.array(factor), found.freedom)))
        now_P = np.sqrt(text_P**2 + factor**2 * luck_P)
        half_P = now_P if half_P is None else half_P
        told_P = tied_P & (np.abs(gap_P) > now_P)
        if not told_P.any():
            break
        tied_P &= ~told_P
    assert half_P is not None
    half_KK = np.zeros((K, K))
    half_KK[first, second] = half_P
    high_KK = _tightened(gap_KK + half_KK + half_KK.T)
    told_KK = np.zeros((K, K), dtype=bool)
    told_KK[first, second] = ~tied_P
    return np.where((told_KK | told_KK.T) & (gap_KK < 0.0), np.minimum(high_KK, BELOW_ZERO), high_KK)


def _largest_ratios(found: Contributions, luck: Luck, generator: np.random.Generator) -> np.ndarray:
    """Draws of each pair's error divided by its estimated standard error (R×P), errors of all models going together."""
    covariance_KK = _covariance(found)
    K, freedom = len(covariance_KK), found.freedom
    root_KK = np.linalg.cholesky(covariance_KK)
    first, second = np.triu_indices(K, 1)
    errors_RK = generator.standard_normal((DRAWS, K)) @ root_KK.T
    seen_RKr = root_KK @ _wishart_root(K, freedom, generator) / math.sqrt(freedom)
    estimated_RKK = seen_RKr @ seen_RKr.transpose(0, 2, 1)
    variance_RK = np.diagonal(estimated_RKK, axis1=1, axis2=2)
    spread_RP = variance_RK[:, first] + variance_RK[:, second] - 2.0 * estimated_RKK[:, first, second]
    variance_P = luck.variance(first, second)
    if variance_P.any():
        errors_RK = errors_RK + luck.draws(DRAWS, K, generator)
        spread_RP = spread_RP + variance_P * luck.variance_draws(DRAWS, generator)[:, None]
    return np.abs(errors_RK[:, first] - errors_RK[:, second]) / np.sqrt(spread_RP)


def _covariance(found: Contributions) -> np.ndarray:
    """Of the models' errors, as far as they matter for differences (K×K).

    Few contributions cannot show in how many ways many models differ, and errors that seem to go together would make
    the largest too small. So what was seen is mixed with errors that are independent, the more the fewer there are.
    """
    K = found.table_nK.shape[1]
    # what is common to all models cancels in every difference
    own_nK = found.table_nK - found.table_nK.mean(axis=1, keepdims=True)
    seen_KK = own_nK.T @ own_nK
    independent = K / (K + found.freedom)
    average = float(np.trace(seen_KK)) / K
    if average <= 0.0:  # all models cost the same everywhere
        return np.eye(K)
    return (1.0 - independent) * seen_KK + independent * average * np.eye(K)


def _wishart_root(K: int, freedom: int, generator: np.random.Generator) -> np.ndarray:
    """R matrices A for which A Aᵀ is what `freedom` independent rows of K standard normals would give (Bartlett 1933)."""
    if freedom < K:
        return generator.standard_normal((DRAWS, K, freedom))
    root_RKK = np.zeros((DRAWS, K, K))
    row, column = np.tril_indices(K, -1)
    root_RKK[:, row, column] = generator.standard_normal((DRAWS, len(row)))
    diagonal = np.arange(K)
    root_RKK[:, diagonal, diagonal] = np.sqrt(generator.chisquare(freedom - diagonal, (DRAWS, K)))
    return root_RKK


def _tightened(high_KK: np.ndarray) -> np.ndarray:
    """Upper bounds of differences, each no larger than the sum of the bounds of any way through other models."""
    high_KK = high_KK.copy()
    for k in range(len(high_KK)):
        high_KK = np.minimum(high_KK, high_KK[:, k : k + 1] + high_KK[k : k + 1, :])
    return high_KK


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
