"""How far a measured number can be trusted: block-bootstrap intervals, paired differences, and ranks.

Bits per byte is a ratio of sums over a text whose neighbouring tokens are alike in difficulty, so tokens must not be
drawn one by one. The text is cut into cells of about equal size in bytes, none reaching over the end of a document.
Cells depend on the text alone, so models with different tokenizers are compared cell by cell; a token that lies across
a cut is shared between the two sides by its bytes. Blocks of neighbouring cells are then drawn with replacement (the
circular block bootstrap of Politis & Romano 1992), at least as long as the correlation between cells asks for (Politis
& White 2004, as corrected by Patton, Politis & White 2009).

Shapes: n cells, b cells a block, k blocks a draw, R draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lmlab.measure.score import Scored

CELLS = 4096  # cells wanted: enough to see correlation at every scale, few enough to draw from thousands of times
LEAST_CELL_BYTES = 32  # some words at least, so that where a token is cut matters little
LEAST_CELLS = 16  # below this no interval is given: so short a text says nothing of its own variation
DRAWS = 2000
MOST_BLOCKS, FEWEST_BLOCKS = 12, 3  # that a text is cut into; see `block_length`
DRAW_ELEMENTS = 1 << 21  # random numbers alive at once


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate in bits per byte with its confidence interval, and the blocks it came from.

    low and high are None where the text is too short to tell, and infinite where the estimate is.
    """

    estimate: float
    low: float | None
    high: float | None
    level: float
    cells: int
    block_bytes: int  # average bytes of a block
    draws: int

    @property
    def includes_zero(self) -> bool:
        """Whether 0 is among the values that the data leave possible; an unknown interval excludes nothing."""
        return self.low is None or self.high is None or self.low <= 0.0 <= self.high


def interval(scored: Scored, *, level: float = 0.95, seed: int = 0) -> Interval:
    """Confidence interval of the bits per byte of a text, for more text like this one.

    It knows the variation inside the text it was given. A stretch of one book says nothing of how books differ.
    """
    bounds = cell_bounds(scored)
    if not math.isfinite(scored.total_nats):
        return _infinite(scored.total_nats, level, len(bounds) - 1)
    return bootstrap(_cell_nats(scored, bounds), np.diff(bounds), level=level, seed=seed)


def paired_difference(a: Scored, b: Scored, *, level: float = 0.95, seed: int = 0) -> Interval:
    """Bits per byte of `a` minus those of `b` on the same text, with a confidence interval.

    Negative: `a` predicts better. Both are cut into the same cells, so what makes a passage hard for both cancels out,
    and the interval is far narrower than those of the two numbers.
    """
    same_documents = [d.size for d in a.part.documents] == [d.size for d in b.part.documents]
    if a.part.sha256 != b.part.sha256 or not same_documents:
        raise ValueError("models can be compared only on the same text; score both on the same part")
    bounds = cell_bounds(a)
    difference = a.total_nats - b.total_nats
    if not math.isfinite(difference):
        return _infinite(difference, level, len(bounds) - 1)
    return bootstrap(_cell_nats(a, bounds) - _cell_nats(b, bounds), np.diff(bounds), level=level, seed=seed)


def widened(found: Interval, margin: float) -> Interval:
    """The interval with one more source of variation, independent of the text, of this half-width: squares add."""
    if found.low is None or found.high is None or not math.isfinite(found.estimate):
        return found
    low, high = (math.hypot(edge - found.estimate, margin) for edge in (found.low, found.high))
    return replace(found, low=found.estimate - low, high=found.estimate + high)


def _infinite(estimate: float, level: float, cells: int) -> Interval:
    """No draw tells anything about an infinite number, or about the difference of two."""
    edge = None if math.isnan(estimate) else estimate
    return Interval(estimate=estimate, low=edge, high=edge, level=level, cells=cells, block_bytes=0, draws=0)


def rank(
    scored: Sequence[Scored], *, margin: Callable[[int, int], float] | None = None, level: float = 0.95, seed: int = 0
) -> list[int]:
    """The rank of each model on one text, 1 for the best; models that cannot be told apart share a rank.

    margin: what else than the text could change the difference of the i-th and the j-th, such as another seed in
        training, as a half-width at `level` in bits per byte; None: nothing.

    From the best down: a model shares the rank of the best of the group before it if the interval of their paired
    difference includes zero. Otherwise it is the best of a new group, and its rank is one more than the number of
    models before it. So ranks never contradict the bits per byte, and the best of a group is worse, for real, than the
    best of the group above. Models with infinite bits per byte come last and share a rank.
    """
    order = sorted(range(len(scored)), key=lambda i: _sortable(scored[i].bits_per_byte))
    ranks = [0] * len(scored)
    leader = -1
    for place, i in enumerate(order, start=1):
        extra = margin(i, leader) if margin is not None and leader >= 0 else 0.0
        if leader >= 0 and _tied(scored[i], scored[leader], extra, level, seed):
            ranks[i] = ranks[leader]
        else:
            leader, ranks[i] = i, place
    return ranks


def _sortable(bits: float) -> float:
    return math.inf if math.isnan(bits) else bits


def _tied(worse: Scored, better: Scored, margin: float, level: float, seed: int) -> bool:
    infinite = [not math.isfinite(s.total_nats) for s in (worse, better)]
    if any(infinite):
        return all(infinite)
    return widened(paired_difference(worse, better, level=level, seed=seed), margin).includes_zero


def cell_bounds(scored: Scored) -> np.ndarray:
    """Where the cells of a text begin and end, in bytes (int64); they depend on the text alone."""
    sizes = np.array([document.size for document in scored.part.documents if document.size], dtype=np.int64)
    target = max(LEAST_CELL_BYTES, sizes.sum() / CELLS)
    counts = np.maximum(1, np.round(sizes / target)).astype(np.int64)
    document = np.repeat(np.arange(len(sizes)), counts)
    within = np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.cumsum(sizes) - sizes
    begins = starts[document] + within * sizes[document] // counts[document]
    return np.append(begins, sizes.sum())


def _cell_nats(scored: Scored, bounds: np.ndarray) -> np.ndarray:
    """Nats of each cell (float64); a token across a cut is shared by its bytes. They sum to the nats of the text."""
    ends, nats = scored.byte_ends, scored.nats_per_token
    at = np.searchsorted(ends, bounds[1:-1], side="left")  # the first token that ends at the cut or after it
    whole = np.add.reduceat(nats, np.minimum(np.append(0, at), len(nats) - 1), dtype=np.float64)
    whole[np.diff(np.append(np.append(0, at), len(nats))) == 0] = 0.0  # reduceat gives an empty slice its first element
    before = np.where(at > 0, ends[at - 1], 0)
    share = (bounds[1:-1] - before) / np.maximum(ends[at] - before, 1)
    moved = share * nats[at]
    whole[:-1] += moved
    whole[1:] -= moved
    return whole


def bootstrap(nats_n: np.ndarray, bytes_n: np.ndarray, *, level: float = 0.95, seed: int = 0) -> Interval:
    """Interval of sum(nats) / (ln 2 × sum(bytes)) over cells in the order of the text.

    The percentiles are those of the draws, taken a little further out than `level` says, as far as Student's t goes
    beyond the normal distribution for this number of blocks (Hesterberg 2015): few blocks know little of their spread.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a confidence level lies between 0 and 1, such as 0.95; got {level}")
    n = len(nats_n)
    to_bits = 1.0 / math.log(2.0)
    estimate = float(nats_n.sum() / bytes_n.sum()) * to_bits
    if n < LEAST_CELLS:
        return Interval(estimate=estimate, low=None, high=None, level=level, cells=n, block_bytes=0, draws=0)
    b = block_length(nats_n - bytes_n * (nats_n.sum() / bytes_n.sum()))
    sums = _circular_sums(nats_n, b), _circular_sums(bytes_n.astype(np.float64), b)
    draws_R = _draw(*sums, math.ceil(n / b), seed) * to_bits
    tail = _expanded_tail((1.0 - level) / 2.0, n / b)
    low, high = np.quantile(draws_R, [tail, 1.0 - tail])
    block_bytes = round(b * int(bytes_n.sum()) / n)
    return Interval(
        estimate=estimate, low=float(low), high=float(high), level=level, cells=n, block_bytes=block_bytes, draws=DRAWS
    )


def _circular_sums(x_n: np.ndarray, b: int) -> np.ndarray:
    """The sum of b neighbouring cells from each cell on; the text goes round."""
    cumulative = np.concatenate([[0.0], np.cumsum(np.concatenate([x_n, x_n[: b - 1]]))])
    return cumulative[b:] - cumulative[:-b]


def _draw(nats_n: np.ndarray, bytes_n: np.ndarray, k: int, seed: int) -> np.ndarray:
    """R ratios of sums, each over k blocks drawn with replacement."""
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = max(1, DRAW_ELEMENTS // k)
    ratios = []
    for first in range(0, DRAWS, rows):
        starts_Rk = generator.integers(len(nats_n), size=(min(rows, DRAWS - first), k))
        ratios.append(nats_n[starts_Rk].sum(axis=1) / bytes_n[starts_Rk].sum(axis=1))
    return np.concatenate(ratios)


def _expanded_tail(tail: float, blocks: float) -> float:
    """The share to cut off each side of the draws, so that the interval is as wide as Student's t would have it."""
    degrees = max(blocks - 1.0, 2.0)
    z = NormalDist().inv_cdf(tail)
    # Student's quantile by its expansion around the normal one (Fisher & Cornish 1960)
    t = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    return NormalDist().cdf(t * math.sqrt((degrees + 1.0) / degrees))


def block_length(x_n: np.ndarray) -> int:
    """Cells a block should have: as many as the correlation between cells asks for, and never few.

    Texts differ from place to place at every scale, more weakly the larger the scale, and a test for correlation between
    cells does not see what is weak. So a block is at least 1 / `MOST_BLOCKS` of the text: Student's t makes up for the
    small number of blocks, at the price of a slightly wider interval. Where the correlation is plain to see and asks
    for more, twice the length of the rule is taken, which is the best in simulations: the rule makes the error of the
    variance smallest but leaves it a little too small.
    """
    n = len(x_n)
    least, most = math.ceil(n / MOST_BLOCKS), math.ceil(n / FEWEST_BLOCKS)
    return max(least, min(math.ceil(2.0 * correlation_length(x_n)), most))


def correlation_length(x_n: np.ndarray) -> float:
    """The block length, in cells, that makes the error of the bootstrap variance smallest (Politis & White 2004).

    Their rule for the circular bootstrap: b = (2 G² / D)^⅓ n^⅓, with G = Σ λ(k/M) |k| R(k) and
    D = 4/3 (Σ λ(k/M) R(k))², where R(k) is the autocovariance at lag k, λ the flat-top window, and M twice the lag
    beyond which R is noise.
    """
    n = len(x_n)
    x_n = x_n - x_n.mean()
    variance = float(x_n @ x_n) / n
    if variance <= 0.0:
        return 1.0
    quiet = max(5, math.ceil(math.sqrt(math.log10(n))))
    reach = min(math.ceil(math.sqrt(n)) + quiet, n - 1)
    autocovariance = _autocovariance(x_n, reach)
    noise = 2.0 * math.sqrt(math.log10(n) / n)
    m = _first_quiet(np.abs(autocovariance[1:] / variance) > noise, quiet)
    M = min(2 * max(m, 1), reach)
    lag = np.arange(-M, M + 1)
    weight = np.minimum(1.0, 2.0 * (1.0 - np.abs(lag) / M)) * autocovariance[np.abs(lag)]
    g, spectrum = float((weight * np.abs(lag)).sum()), float(weight.sum())
    if spectrum <= 0.0:  # neighbours that balance each other: no block is too short
        return 1.0
    return float((1.5 * (g / spectrum) ** 2 * n) ** (1.0 / 3.0))


def _autocovariance(x_n: np.ndarray, reach: int) -> np.ndarray:
    """Of a centred series, at lags 0 to `reach`, by the Fourier transform."""
    n = len(x_n)
    spectrum = np.fft.rfft(x_n, 2 * n)
    return np.fft.irfft(spectrum * spectrum.conj(), 2 * n)[: reach + 1] / n


def _first_quiet(loud: np.ndarray, quiet: int) -> int:
    """The lags before the first `quiet` in a row that are all noise; where there are none, up to the last loud one."""
    run = 0
    for lag, is_loud in enumerate(loud):
        run = 0 if is_loud else run + 1
        if run == quiet:
            return lag + 1 - quiet
    return int(np.flatnonzero(loud)[-1]) + 1 if loud.any() else 0
