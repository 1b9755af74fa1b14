"""Looking hard for a point that breaks an inequality: wild values, and ascent along the gradient of the gap."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from lmlab_derive.limits import MAX_TERMS, Refusal
from lmlab_derive.numbers.points import Point, corner_point, with_corners
from lmlab_derive.numbers.sides import Sides
from lmlab_derive.numbers.size_draws import Sizes
from lmlab_derive.sheets.climbs import ATTAINED, broken, climb, continuous, height
from lmlab_derive.sheets.extreme_points import at_larger_sizes, magnitudes, patterned
from lmlab_derive.sheets.kink_points import kinks
from lmlab_derive.sheets.relation import Relation
from lmlab_derive.sheets.special_points import allows, entries_written, jumps, written

WILD = 36
SPECIAL = ("zero", "equal")  # where bounds are often attained
FAR = (1e3, 1e5)  # how far values reach
EXACT = (0.25, 0.5, 0.75, 2.0, 3.0, 4.0)  # values of one scalar at which bounds are attained, beside 1
WRITTEN = 8  # numbers of the claim at which a scalar is tried: (x - 7.3)**2 is small at one of them alone
SWEEP = tuple(10.0**e for e in np.linspace(-3, 2, 21))  # values of one scalar, from small to large, both signs
FAR_SWEEP = (*(10.0**e for e in np.linspace(-6, -3.25, 12)), *SWEEP, *(10.0**e for e in np.linspace(2.25, 8, 24)))
COUNTED = np.arange(1.0, 66.0)  # whole numbers, one by one,
# and many at a time, while that is quick: the last one is as many terms as a sum may have
FAR_COUNTED = (*(round(10.0**e) for e in np.linspace(2, 6.5, 10)), MAX_TERMS)
BETWEEN = np.arange(66.0, 1001.0)  # and those between,
COUNTING_S = 0.3  # for so much processor time
NEXT_TO = (
    1e-2,
    1e-4,
    1e-8,
    1e-30,
    1e-300,
)  # what is left of the weight of a row next to a corner, for each of the other entries
MANY = (8.0, 30.0, 100.0, 1000.0)  # whole numbers beside a scalar of any magnitude,
SHARES = (*(10.0**e for e in np.linspace(-4, -0.25, 12)), 0.75, 0.9, 0.97, 0.99, 0.999)  # or a fraction
QUICK_S = 0.02  # of processor time: so many values beside a whole number, one by one, are not tried with a larger one
LONGEST_S = 0.1  # of processor time: a sum that takes so long is not made longer
STARTS = 5
MOST_NUMBERS = 130  # of a point to climb from
FRESH = (2, 3, 4, 5)  # sizes of other points to climb from
LARGER_S = 1.0  # of processor time for larger sizes
CLIMBS_S = 1.0  # of processor time: after so long no other is begun


def search_extremes(relation: Relation) -> Point | None:
    """A point where the inequality fails, confirmed, or None. Keeps the tally of points looked at."""
    best: list[tuple[float, Point]] = []
    whole = relation.whole
    for drawn in _candidates(relation):
        if drawn is None or not drawn[1].defined:
            continue
        point, sides = drawn
        relation.tally.points += not relation.vague(sides)
        relation.tally.reaches(point, whole)
        if broken(relation, point, sides):
            return point
        best.append((height(relation, sides), point))
    for start in [*_starts(relation, best), *_fresh(relation)]:
        found = climb(relation, start)
        if found is not None:
            return found
    return None


def _starts(relation: Relation, looked_at: list[tuple[float, Point]]) -> list[Point]:
    """The best points to climb from, each another, with other whole numbers if there are any: these stay what they are.

    Not those where the sides are equal: mostly both are 0 there, or one number by itself, and no way leads up.
    """
    best = [pair for pair in looked_at if sum(raw.size for raw in pair[1].raw.values()) < MOST_NUMBERS]
    best.sort(key=lambda pair: (abs(pair[0]) <= ATTAINED, -pair[0]))
    found: dict[tuple[bytes, ...], Point] = {}
    for _, point in best:
        found.setdefault(tuple(point.raw[name].tobytes() for name in relation.whole or point.raw), point)
    return list(found.values())[:STARTS]


def _fresh(relation: Relation) -> Iterator[Point]:
    """Ordinary points at small sizes to climb from: few numbers are to be moved there, and most bounds are attained.

    The best points seen are often next to each other, or where one number outweighs all others and no way leads up.
    """
    started = time.thread_time()
    several = [name for name in relation.sizes.givens if relation.setting.givens[name].shape]
    for top in FRESH if several and relation.varies and not relation.averages else ():
        sizes = dict.fromkeys(relation.sizes.names, top)
        drawn = relation.draw(sizes if relation.sizes.allowed(sizes) else relation.sizes.distinct(relation.rng, top))
        if drawn is not None and drawn[1].defined:
            yield drawn[0]
        if time.thread_time() - started > CLIMBS_S:
            return


def _candidates(relation: Relation) -> Iterator[tuple[Point, Sides] | None]:
    small = [relation.sizes.distinct(relation.rng, top) for top in (3, 3, 5)]
    draws = small + relation.sizes.with_ones(relation.rng)[:1]
    if not relation.varies:
        for sizes in draws:
            yield relation.draw(sizes, "plain")
    else:
        for sizes in (small[0], small[2]):
            for style in SPECIAL:
                yield relation.draw(sizes, style)
        for i in range(WILD):
            yield relation.draw(draws[i % len(draws)], ("plain", "readable", "wild", "wild")[i % 4])
        for reach in FAR if not relation.averages else ():
            yield relation.draw(small[0], "broad", reach=reach)
        for sizes in (small[0], small[2]):
            yield from _corners(relation, sizes)
        yield from _sweeps(relation, small[0])
        yield from _counts(relation, small[0])
        yield from _pairs(relation, small[0])
        for point in jumps(relation, small[0]):
            yield relation.looked_at(point)
        for point in entries_written(relation, small[0]) if not relation.averages else ():
            yield relation.looked_at(point, beside=True)
        for point in kinks(relation, small[0]):
            yield relation.looked_at(point, beside=True)
    if relation.varies and not relation.averages:
        for sizes in (*small, *relation.sizes.with_ones(relation.rng)[:1]):
            for point in patterned(relation, sizes):
                yield relation.looked_at(point, beside=True)
        for point in magnitudes(relation, small[0]):
            yield relation.looked_at(point, beside=True)
    yield from at_larger_sizes(relation, small[0], patterns=not relation.averages, seconds=LARGER_S)


def _corners(relation: Relation, sizes: Sizes) -> Iterator[tuple[Point, Sides] | None]:
    """Rows of a simplex next to its corners and its edges, for all names at once: on the same entry, on others, on some."""
    if not with_corners(relation.setting, relation.sizes.givens):
        return
    for rest in NEXT_TO:
        for apart, many in ((0, False), (1, False), (0, True), (1, True)):
            point = corner_point(relation.setting, relation.at_random(sizes), relation.rng, rest, apart, many)
            yield relation.looked_at(point, beside=True)


def _sweeps(relation: Relation, sizes: Sizes) -> Iterator[tuple[Point, Sides] | None]:
    """One scalar after the other over many magnitudes, the rest as it comes; then all of them at once."""
    setting, own = relation.setting, sorted(written(relation, whole=False) - {0.0})[:WRITTEN]
    for name in [n for n in relation.scalars if not setting.kinds(n) & {"integer", "binary"}][:3]:
        kinds = setting.kinds(name)
        values = np.array(SWEEP if relation.averages else FAR_SWEEP)
        if "fraction" in kinds:
            values = np.concatenate(
                [
                    10.0 ** np.linspace(-20, -8, 7),
                    10.0 ** np.linspace(-6, -1, 8),
                    np.linspace(0.15, 0.85, 8),
                    1 - 10.0 ** np.linspace(-1, -6, 8),
                ]
            )
            values = np.concatenate([EXACT[:3], [number for number in own if number < 1], values])
        else:
            values = np.concatenate([EXACT, own, values])
            if "positive" not in kinds:
                values = np.concatenate([values, -values])
        for value in values:
            yield relation.looked_at(relation.at_random(sizes, {name: value}))
    together = [n for n in relation.scalars if not setting.kinds(n) & {"integer", "binary", "fraction"}]
    for value in SWEEP if len(together) > 1 else ():
        point = relation.at_random(sizes)
        yield relation.looked_at(point.having({name: _signed(relation, name, value) for name in together}))


def _counts(relation: Relation, sizes: Sizes) -> Iterator[tuple[Point, Sides] | None]:
    """Whole scalars one after the other, and then all of them at once, from small to as large as sums stay quick."""
    whole = relation.whole
    near = {number + beside for number in written(relation) if number < 1e6 for beside in (-1, 0, 1)}
    always = {0.0, *COUNTED, *near, *FAR_COUNTED}
    values = sorted({*always, *BETWEEN})
    for names in [*([name] for name in whole[:3]), *([whole] if len(whole) > 1 else [])]:
        began = time.thread_time()
        for value in values:
            if value not in always and time.thread_time() - began > COUNTING_S:
                continue
            for signed in (value, -value):
                if not all(allows(relation, name, signed) for name in names):
                    continue
                point = relation.at_random(sizes, dict.fromkeys(names, signed))
                started = time.thread_time()
                try:
                    yield relation.looked_at(point)
                except Refusal:  # a position beyond its axis, a sum of too many terms
                    continue
            if value > len(COUNTED) and time.thread_time() - started > LONGEST_S:
                break


def _pairs(relation: Relation, sizes: Sizes) -> Iterator[tuple[Point, Sides] | None]:
    """A whole number and a scalar, over the magnitudes of both: n * p * (1 - p)**n is largest where p is about 1/n."""
    scalars = [name for name in relation.scalars if continuous(relation, name)]
    whole = relation.whole if not relation.averages else []
    for names in [(count, name) for count in whole[:2] for name in scalars[:2]]:
        for many in MANY:
            started = time.thread_time()
            for value in SHARES if "fraction" in relation.setting.kinds(names[1]) else SWEEP[::2]:
                point = relation.at_random(sizes, dict(zip(names, (many, value), strict=True)))
                try:
                    yield relation.looked_at(point)
                except Refusal:  # a position beyond its axis, a sum of too many terms
                    continue
            if time.thread_time() - started > QUICK_S * len(SHARES):
                break


def _signed(relation: Relation, name: str, value: float) -> float:
    return value if "positive" in relation.setting.kinds(name) else value * float(relation.rng.choice([-1.0, 1.0]))
