"""One-dimensional integrals with error bounds: panels are split at kinks, then halved until two rules agree.

Many integrals run side by side, one for each `owner`; so an integral inside an integral is one call for all the points
of the outer one. The same code serves doubles and long decimals (arrays of mpmath numbers).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

Array = Any
# (z_Q, owner_Q) -> values_Q..., kink distances_QK, and, of values that are integrals themselves, sizes_Q
Integrand = Callable[[Array, Array], tuple[Array, Array | None, Array | None]]

HALVINGS = 200  # of a panel; one that cannot be halved any more in doubles is left as it is
MOST_PANELS = 60_000
MOST_KINKS = 40_000
NO_DECAY = 0.995  # panels towards a singularity that shrink no faster than this, halved: the integral has no value
SURELY = 0.9999  # the same in long decimals, which have the last word
NOTHING = 1e-13  # of an integral: what lies beyond the edges may be so much
FURTHER = (4, 16)  # times the outermost edges: how far long decimals go, which do not underflow


@dataclass
class Integral:
    """Integrals, one for each owner along the first axis."""

    value: Array
    error: Array  # a bound for each owner, over all entries
    size: Array  # the integral of the absolute value, its largest entry
    diverges: Array  # for each owner, whether it has no value


@functools.cache
def _rule(count: int, digits: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    if not digits:
        return (nodes + 1) / 2, weights / 2
    with mpmath.workdps(digits + 10):
        fine = []
        for x in map(mpmath.mpf, map(float, nodes)):
            for _ in range(4 if digits < 100 else 6):
                before, here = mpmath.mpf(1), x
                for k in range(2, count + 1):
                    before, here = here, ((2 * k - 1) * x * here - (k - 1) * before) / k
                slope = count * (x * here - before) / (x * x - 1)
                x = x - here / slope
            fine.append(((x + 1) / 2, 1 / ((1 - x * x) * slope**2)))
    return np.array([a for a, _ in fine], dtype=object), np.array([b for _, b in fine], dtype=object)


def integrate(
    integrand: Integrand, edges: tuple[float, ...], owners: int, digits: int = 0, precision: float = 1e-15
) -> Integral:
    """The integral from the first edge to the last, for every owner. `digits`: 0 for doubles, to this `precision`."""
    return _Integrator(integrand, edges, owners, digits, precision).run()


class _Integrator:
    def __init__(
        self, integrand: Integrand, edges: tuple[float, ...], owners: int, digits: int, precision: float
    ) -> None:
        self.integrand, self.owners, self.digits = integrand, owners, digits
        if digits:
            low, high = ([k * end for k in FURTHER if abs(end) > 1] for end in (edges[0], edges[-1]))
            self.edges = np.array([mpmath.mpf(e) for e in (*reversed(low), *edges, *high)], dtype=object)
        else:
            self.edges = np.array(edges)
        self.nodes, self.weights = _rule(16 if not digits else 32, digits)
        self.precision = mpmath.mpf(10) ** (8 - digits) if digits else precision
        self.no_decay, self.nothing = (SURELY, float(self.precision)) if digits else (NO_DECAY, NOTHING)

    def run(self) -> Integral:
        """Split at kinks, then halve."""
        count = len(self.edges) - 1
        owner = np.repeat(np.arange(self.owners), count)
        low, high = np.tile(self.edges[:-1], self.owners), np.tile(self.edges[1:], self.owners)
        values, kinks, sizes = self._values(low, high, owner)
        tail = self._tail(values, low, high, owner)
        if kinks is not None:
            cuts = self._cuts(low, high, kinks)
            if len(cuts[0]):
                low, high, owner = self._split(low, owner, cuts)
                values, _, sizes = self._values(low, high, owner)
        return self._refined(self._sums(values, sizes, low, high), low, high, owner, tail)

    def _values(self, low: Array, high: Array, owner: Array) -> tuple[Array, Array | None, Array]:
        """The integrand at the nodes of every panel, (panels, nodes, ...), its kinks, and its sizes, which have no entries.

        The size of an integral is that of what is integrated: where an inner one cancels, what rounding leaves of it
        is no integrand, and however often its panels are halved it would not settle.
        """
        places = self._places(low, high).reshape(-1)
        values, kinks, sizes = self.integrand(places, np.repeat(owner, len(self.nodes)))
        values = values.reshape(len(low), len(self.nodes), *values.shape[1:])
        return values, kinks, abs(values) if sizes is None else sizes.reshape(len(low), len(self.nodes))

    def _places(self, low: Array, high: Array) -> Array:
        """The nodes of every panel."""
        return low[:, None] + (high - low)[:, None] * self.nodes

    def _sums(self, values: Array, sizes: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """The rule on every panel, and the same of the sizes, the largest entry."""
        sums, totals = (self._rule_on(part, high - low) for part in (values, sizes))
        return sums, totals.reshape(len(low), -1).max(axis=1)

    def _rule_on(self, values: Array, width: Array) -> Array:
        inner = [1] * (values.ndim - 2)
        return (values * self.weights.reshape(1, -1, *inner)).sum(axis=1) * width.reshape(-1, *inner)

    def _tail(self, values: Array, low: Array, high: Array, owner: Array) -> tuple[Array, Array]:
        """What is left beyond the outermost edges, for each owner, and whether the integrand rises towards one."""
        left_out, rises = np.zeros(self.owners), np.zeros(self.owners, dtype=bool)
        for last, at, inner in ((self.edges[-1], -1, 0), (self.edges[0], 0, -1)):
            if abs(last) <= 1:
                continue
            here = (high == last) if at == -1 else (low == last)
            ends = abs(values[here])
            left_out[owner[here]] += 10 * float(abs(high - low)[here][0]) * _largest(ends[:, at])
            rising = np.asarray(ends[:, at] > self.no_decay * ends[:, inner], dtype=bool)
            rises[owner[here]] |= rising.reshape(len(rising), -1).any(axis=1)
        return left_out, rises

    def _cuts(self, low: Array, high: Array, kinks: Array) -> tuple[Array, Array]:
        """Where the distances to kinks change sign: places and their owners."""
        z, owners, kinks = self._with_ends(self._places(low, high).reshape(-1), kinks)
        sign = np.sign(kinks.astype(float))
        changes = (sign[1:] * sign[:-1] < 0) & (owners[1:] == owners[:-1])[:, None]
        place, column = np.nonzero(changes)
        zero, _ = np.nonzero((kinks == 0) & (np.abs(sign).max(axis=0) > 0))
        if len(place) > MOST_KINKS:
            return z[:0], owners[:0]
        a, b, who = z[place], z[place + 1], owners[place]
        once = a, b, who, column, kinks[place, column], kinks[place + 1, column]
        twice = self._twice(z, owners, kinks, sign)
        a, b, who, column, at_a, at_b = (np.concatenate(pair) for pair in zip(once, twice, strict=True))
        pick = np.arange(len(a))
        for step in range(80 if not self.digits else 240):
            if not len(a):
                break
            middle = (a + b) / 2 if step % 3 == 2 else b - at_b * (b - a) / (at_b - at_a)
            found = self.integrand(middle, who)[1]
            assert found is not None
            here = found[pick, column]
            right = (here > 0) == (at_b > 0)
            a, at_a = np.where(right & (here != 0), a, middle), np.where(right & (here != 0), at_a, here)
            b, at_b = np.where(right | (here == 0), middle, b), np.where(right | (here == 0), here, at_b)
            scale = abs(a) + abs(b)
            if bool(((here == 0) | (b - a <= scale * self.precision / 4)).all()):
                break
            stuck = at_b == at_a  # both ends at a root
            at_b = np.where(stuck, at_b + 1, at_b)
        # the nearer end: the other one comes closer by halves alone, and a jump right beside a cut is seen by no node
        nearer = np.where(np.asarray(abs(at_a) < abs(at_b), dtype=bool), a, b)
        return np.concatenate([nearer, z[zero]]), np.concatenate([who, owners[zero]])

    def _with_ends(self, z: Array, kinks: Array) -> tuple[Array, Array, Array]:
        """The nodes of every owner in order, and its first and last edge around them: a kink may lie beyond the nodes."""
        who = np.arange(self.owners)
        first, last = (np.full(self.owners, self.edges[i], dtype=self.edges.dtype) for i in (0, -1))
        rows = [kinks.reshape(self.owners, -1, kinks.shape[1])]
        for end in (first, last):
            found = self.integrand(end, who)[1]
            assert found is not None
            rows.append(found[:, None])
        z = np.concatenate([first[:, None], z.reshape(self.owners, -1), last[:, None]], axis=1)
        kinks = np.concatenate([rows[1], rows[0], rows[2]], axis=1)
        return z.reshape(-1), np.repeat(who, z.shape[1]), kinks.reshape(-1, kinks.shape[2])

    def _twice(self, z: Array, owners: Array, kinks: Array, sign: Array) -> tuple[Array, ...]:
        """Kinks that are passed twice between two nodes: a parabola through three nodes tells where to look for them."""
        near, left, right = abs(kinks[1:-1]), abs(kinks[:-2]), abs(kinks[2:])
        inside = ((owners[2:] == owners[:-2])[:, None]) & (near <= left) & (near <= right)
        place, column = np.nonzero(inside & (sign[2:] * sign[:-2] > 0) & (sign[1:-1] * sign[:-2] > 0))
        if not 0 < len(place) <= MOST_KINKS:
            return tuple(x[:0] for x in (z, z, owners, owners, kinks[:, 0], kinks[:, 0]))
        za, zb, zc = (z[place + k] for k in range(3))
        fa, fb, fc = (kinks[place + k, column] for k in range(3))
        first, second = (fb - fa) / (zb - za), (fc - fb) / (zc - zb)
        bend = (second - first) / (zc - za)
        flat = bend == 0
        lowest = np.where(flat, zb, (za + zb) / 2 - first / (2 * np.where(flat, 1, bend)))
        lowest = np.where((lowest > za) & (lowest < zc), lowest, zb)
        found = self.integrand(lowest, owners[place])[1]
        assert found is not None
        there = found[np.arange(len(place)), column]
        other = np.asarray(np.sign(there.astype(float)) * np.sign(fb.astype(float)) < 0)
        za, zc, who, column, fa, fc, there, lowest = (
            x[other] for x in (za, zc, owners[place], column, fa, fc, there, lowest)
        )
        pairs = ((za, lowest), (lowest, zc), (who, who), (column, column), (fa, there), (there, fc))
        return tuple(np.concatenate(pair) for pair in pairs)

    def _split(self, low: Array, owner: Array, cuts: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        ends = np.full(self.owners, self.edges[-1], dtype=self.edges.dtype)
        points, who = np.concatenate([low, cuts[0], ends]), np.concatenate([owner, cuts[1], np.arange(self.owners)])
        order = sorted(range(len(points)), key=lambda i: (who[i], points[i]))
        points, who = points[order], who[order]
        real = (who[1:] == who[:-1]) & (points[1:] > points[:-1])
        return points[:-1][real], points[1:][real], who[:-1][real]

    def _refined(
        self, coarse: tuple[Array, Array], low: Array, high: Array, owner: Array, tail: tuple[Array, Array]
    ) -> Integral:
        sums, sizes = coarse
        shape = sums.shape[1:]
        total = np.zeros((self.owners, *shape), dtype=sums.dtype)
        error, size = np.zeros(self.owners), np.zeros(self.owners)
        np.add.at(size, owner, sizes.astype(float))
        history: list[Array] = []
        diverges = np.zeros(self.owners, dtype=bool)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            halves_low, halves_high = np.concatenate([low, middle]), np.concatenate([middle, high])
            who = np.concatenate([owner, owner])
            finer_values, _, inner_sizes = self._values(halves_low, halves_high, who)
            finer, finer_sizes = self._sums(finer_values, inner_sizes, halves_low, halves_high)
            count = len(low)
            together = finer[:count] + finer[count:]
            gaps = _largest(together - sums)
            own = (finer_sizes[:count] + finer_sizes[count:]).astype(float)
            floor = float(self.precision)
            stuck = np.asarray((middle <= low) | (middle >= high), dtype=bool)
            gaps = np.where(stuck, own, gaps)
            lost = ~np.isfinite(own) & (len(history) > 30)  # next to a pole, where doubles are too coarse to halve on
            if lost.any():
                last, before = history[-1][owner[lost]], history[-5][owner[lost]]
                diverges[owner[lost]] |= last >= self.no_decay**4 * before
                together[lost], gaps[lost] = 0, 300 * last
            fine = (gaps <= floor * size[owner]) | (gaps <= 40 * floor * own) | ~np.isfinite(own) | stuck | lost
            np.add.at(total, owner[fine], together[fine])
            np.add.at(error, owner[fine], gaps[fine])
            rest = np.concatenate([~fine, ~fine])
            low, high, owner = halves_low[rest], halves_high[rest], who[rest]
            sums, sizes = finer[rest], finer_sizes[rest]
            left = np.zeros(self.owners)
            np.add.at(left, owner, sizes.astype(float))
            history.append(left)
            if not len(low) or len(low) > MOST_PANELS:
                break
        if len(low):  # what never settled: a singularity, whose panels shrink no further or slowly
            np.add.at(total, owner, sums)
            left, before = history[-1], history[-5] if len(history) > 5 else history[0]
            stays = (left > 1e-12 * size) & (left >= self.no_decay**4 * before) & (len(history) > 20)
            diverges |= stays
            error = error + np.where(stays, np.inf, left * 300)
        out = (tail[0] > self.nothing * size) | np.isinf(tail[0])
        diverges |= out & tail[1]
        error = error + np.where(out, np.where(tail[1], np.inf, tail[0]), 0.0) + float(self.precision) * size
        return Integral(total, error, size, diverges)


def largest_finite(values: Array) -> float:
    """The largest of those that are finite, or 0."""
    return float(np.max(values[np.isfinite(values)], initial=0))


def _largest(values: Array) -> Array:
    """The largest entry in size of every row, as doubles."""
    if not len(values):
        return np.zeros(0)
    return np.asarray(abs(values).reshape(len(values), -1).max(axis=1), dtype=float)
