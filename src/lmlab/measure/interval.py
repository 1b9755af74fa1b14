"""How far a measured number can be trusted: intervals of bits per byte and of differences, and what they are for.

Bits per byte is a quotient of sums over a text whose neighbouring tokens are alike in difficulty, so tokens must not be
taken for independent. The text is cut into cells that depend on the text alone, none reaching over the end of a document;
a token belongs to the cell in which it begins, with all its bytes. What may be taken for independent is decided in
`units`. Differences are paired: what makes a passage hard for both models cancels out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lmlab.config import Mistake
from lmlab.measure.drift import half_widths
from lmlab.measure.interval_units import SENTENCES, About, Contributions, Units, contributions
from lmlab.measure.student import t_quantile

if TYPE_CHECKING:
    from lmlab.measure.scored import Scored
    from lmlab.measure.spread_sample import Spread

CELLS = 4096  # cells wanted of a text that is measured whole
LEAST_CELL_BYTES = 32  # some words at least, so that where a token is cut matters little
DRIFTS = "difficulty changes so slowly along this text that it tells nothing of the text around it"


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate in bits per byte with its confidence interval, and what it is for.

    low and high are None where the text is too short to tell, and infinite where the estimate is.
    """

    estimate: float
    low: float | None
    high: float | None
    level: float
    about: About
    units: int  # pieces of the text whose variation was looked at
    freedom: int  # degrees of freedom; 0: none, and no interval
    note: str  # what the interval is for, or why there is none

    @property
    def includes_zero(self) -> bool:
        """Whether 0 is among the values that the data leave possible; an unknown interval excludes nothing."""
        return self.low is None or self.high is None or self.low <= 0.0 <= self.high


def interval(scored: Scored, *, level: float = 0.95) -> Interval:
    """Confidence interval of the bits per byte of a text."""
    return own_intervals(units_of([scored]), level=level)[0]


def paired_difference(a: Scored, b: Scored, *, level: float = 0.95) -> Interval:
    """Bits per byte of `a` minus those of `b` on the same text, with a confidence interval. Negative: `a` predicts better."""
    return difference(units_of([a, b]), 0, 1, level=level)


def own_intervals(units: Units, *, about: About | None = None, level: float = 0.95) -> list[Interval]:
    """The interval of each model's bits per byte. about: what it is for; None: as much as the text can tell.

    None begins below 0: no text costs less than nothing, however much the pieces of a short one differ.
    """
    found = intervals(units, np.eye(len(units.nats_KU)), units.bits_K, about, level)
    return [replace(one, low=0.0) if one.low is not None and one.low < 0.0 else one for one in found]


def difference(units: Units, i: int, j: int, *, about: About | None = None, level: float = 0.95) -> Interval:
    """Bits per byte of the i-th model minus those of the j-th, with a confidence interval."""
    pair = replace(units, nats_KU=units.nats_KU[[i, j]], bytes_KU=units.bytes_KU[[i, j]])
    bits = pair.bits_K
    with np.errstate(invalid="ignore"):
        return intervals(pair, np.array([[1.0], [-1.0]]), bits[:1] - bits[1:], about, level)[0]


def intervals(
    units: Units, contrasts_KP: np.ndarray, estimates_P: np.ndarray, about: About | None, level: float
) -> list[Interval]:
    """The intervals of P contrasts: sums of the models' bits per byte with these weights."""
    if not 0.0 < level < 1.0:
        raise Mistake(
            "a confidence level lies between 0 and 1, such as 0.95; got {level}", code="level-not-a-share", level=level
        )
    about = about or units.about
    count = len(units.document_U)
    half_P, freedom = np.zeros(len(estimates_P)), 0
    if not units.too_few:
        found = contributions(_without_infinities(units), about)
        half_P, freedom = margins(found, found.table_nK @ contrasts_KP, level), found.freedom
    results = []
    for estimate, half in zip(estimates_P.tolist(), half_P.tolist(), strict=True):
        if not math.isfinite(estimate):
            edge = None if math.isnan(estimate) else estimate
            results.append(_unknown(estimate, edge, level, about, count, "an infinite number has no interval"))
            continue
        if units.too_few or not math.isfinite(half):
            results.append(_unknown(estimate, None, level, about, count, units.too_few or DRIFTS))
            continue
        results.append(
            Interval(
                estimate=estimate,
                low=estimate - half,
                high=estimate + half,
                level=level,
                about=about,
                units=count,
                freedom=freedom,
                note=SENTENCES[about],
            )
        )
    return results


def margins(found: Contributions, table_nP: np.ndarray, level: float) -> np.ndarray:
    """Half the width of the interval of each contrast, whose contributions are the columns of the table."""
    if found.slow:
        return half_widths(table_nP * math.sqrt(len(table_nP)), level)
    return t_quantile(found.freedom, level) * np.sqrt((table_nP**2).sum(axis=0))


def _without_infinities(units: Units) -> Units:
    finite = np.isfinite(units.nats_KU)
    return units if finite.all() else replace(units, nats_KU=np.where(finite, units.nats_KU, 0.0))


def _unknown(estimate: float, edge: float | None, level: float, about: About, units: int, note: str) -> Interval:
    return Interval(estimate=estimate, low=edge, high=edge, level=level, about=about, units=units, freedom=0, note=note)


def units_of(scored: Sequence[Scored], chosen: Spread | None = None) -> Units:
    """The pieces of a text that several models were measured on: its stretches, or cells where all of it was measured.

    chosen: what was measured, if `scored` are of its readings; None: as `scored` say.
    """
    if chosen is None and scored[0].counted is not None:
        chosen = scored[0].counted.chosen
    first = scored[0].part
    sizes = [d.size for d in first.documents]
    for other in scored[1:]:
        if other.part.sha256 != first.sha256 or [d.size for d in other.part.documents] != sizes:
            raise Mistake(
                "models can be compared only on the same text; score both on the same part",
                code="scores-of-different-texts",
            )
    if chosen is None or chosen.everything:
        starts_U, stops_U, document_U = cells(np.array(sizes, dtype=np.int64))
    else:
        starts_U, stops_U, document_U = chosen.bounds()
    sums = [sums_within(s.byte_ends, s.nats_per_token, starts_U, stops_U) for s in scored]
    return Units(
        nats_KU=np.array([nats for nats, _ in sums]),
        bytes_KU=np.array([size for _, size in sums]),
        document_U=document_U,
        share=1.0 if chosen is None else chosen.share,
        block_share=(first if chosen is None else chosen.whole).block_share,
    )


def cells(sizes_D: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(starts, stops, documents) of the cells that a text of documents of these sizes is cut into, in bytes (int64)."""
    target = max(LEAST_CELL_BYTES, float(sizes_D.sum()) / CELLS)
    counts_D = np.where(sizes_D > 0, np.maximum(1, np.round(sizes_D / target)), 0).astype(np.int64)
    document_U = np.repeat(np.arange(len(sizes_D)), counts_D)
    within_U = np.arange(len(document_U)) - np.repeat(np.cumsum(counts_D) - counts_D, counts_D)
    offset_U = (np.cumsum(sizes_D) - sizes_D)[document_U]
    sizes_U, counts_U = sizes_D[document_U], counts_D[document_U]
    return (
        offset_U + within_U * sizes_U // counts_U,
        offset_U + (within_U + 1) * sizes_U // counts_U,
        document_U,
    )


def sums_within(
    byte_ends_T: np.ndarray, nats_T: np.ndarray, starts_U: np.ndarray, stops_U: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(nats, bytes) of the tokens in each of some stretches of a text (float64), in order and without overlap.

    A token belongs to the stretch in which it begins. It must also end there or, where the next stretch follows at
    once, in that; otherwise it reaches over the edge of what is measured, and belongs to none.
    """
    token_T, unit_T = tokens_within(byte_ends_T, starts_U, stops_U)
    token_bytes = np.diff(byte_ends_T, prepend=0)[token_T]
    count = len(starts_U)
    return (
        np.bincount(unit_T, weights=np.asarray(nats_T, dtype=np.float64)[token_T], minlength=count),
        np.bincount(unit_T, weights=token_bytes, minlength=count),
    )


def tokens_within(byte_ends_T: np.ndarray, starts_U: np.ndarray, stops_U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(places of the tokens that count, the stretch each belongs to); see `sums_within`."""
    begins_T = np.concatenate([[0], byte_ends_T[:-1]])
    unit_T = np.searchsorted(starts_U, begins_T, side="right") - 1
    gap = np.append(starts_U[1:] != stops_U[:-1], True)
    run_of = np.searchsorted(np.flatnonzero(gap), np.arange(len(starts_U)))
    run_stops_U = stops_U[np.flatnonzero(gap)][run_of]
    inside = (unit_T >= 0) & (byte_ends_T <= run_stops_U[unit_T])
    # a token of no bytes at the end of a run begins beyond it
    inside &= (begins_T < run_stops_U[unit_T]) | (run_stops_U[unit_T] == byte_ends_T[-1])
    token_T = np.flatnonzero(inside)
    return token_T, unit_T[token_T]
