"""Points where claims fail that hold at ordinary ones: arrays with a pattern, at small and large sizes, of any magnitude."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from lmlab_derive.limits import Refusal
from lmlab_derive.numbers.points import PATTERNS, Point, draw_point
from lmlab_derive.numbers.ranges import constants
from lmlab_derive.numbers.sides import Sides
from lmlab_derive.numbers.size_draws import Sizes
from lmlab_derive.sheets.relation import Relation

MIXED = 4  # points of each size where every given has a pattern of its own
REACHES = (1.0, 1e3, 1e-3)  # of a pattern, beside numbers that stay what they are
STEP_S = 0.25  # and for one of them
MAGNITUDES = (1e-6, 1e-4, 1e-2, 10.0, 1e2, 1e3, 1e4, 1e6)  # of all numbers, and of one given beside others
MOST_NAMES = 4  # that are made large or small alone
MOST_CONSTANTS = 6  # of a claim, beyond which numbers go
BEYOND = (0.999, 1.001, 2.0)  # times a constant of the claim


def patterned(relation: Relation, sizes: Sizes, *, mixed: int = MIXED) -> Iterator[Point]:
    """Points whose arrays have patterns: all the same one, of both signs and several magnitudes; or each its own."""
    names = list(PATTERNS)
    if not any(relation.setting.givens[name].shape for name in relation.sizes.givens):
        return
    for k, style in enumerate(names):
        yield _drawn(relation, sizes, style, 1.0)
        yield _signed(relation, _drawn(relation, sizes, style, REACHES[1 + k % 2]))
    for k in range(mixed):
        raw = {}
        for name in relation.sizes.givens:
            style = str(relation.rng.choice([*names, "plain"]))
            raw[name] = draw_point(relation.setting, [name], sizes, relation.rng, style, REACHES[k % 3]).raw[name]
        yield _signed(relation, Point(sizes, raw))


def at_larger_sizes(relation: Relation, small: Sizes, patterns: bool, seconds: float) -> Iterator[tuple[Point, Sides]]:
    """Points at larger and larger sizes, as far as they are quick to look at: plain ones and, if wanted, patterned ones.

    `seconds` of processor time are spent on all of them.
    """
    started = time.thread_time()
    slowest = dict[int, float]()
    for sizes in relation.sizes.ladder(small):
        entries = sum(int(raw_size(relation, name, sizes)) for name in relation.sizes.givens)
        if any(entries >= large and took > STEP_S for large, took in slowest.items()):
            continue  # as large as one that took long
        began = time.thread_time()
        for point in _at_size(relation, sizes, patterns):
            try:
                found = relation.looked_at(point, beside=True)
            except Refusal:  # an average over so many numbers is not taken
                break
            if found is not None:
                yield found
            if time.thread_time() - began > STEP_S:
                break
        slowest[entries] = time.thread_time() - began
        if time.thread_time() - started > seconds:
            return


def raw_size(relation: Relation, name: str, sizes: Sizes) -> int:
    """How many numbers a given has."""
    return int(np.prod([axis.value(sizes) for axis in relation.setting.givens[name].shape], dtype=float))


def _at_size(relation: Relation, sizes: Sizes, patterns: bool) -> Iterator[Point]:
    yield relation.at_random(sizes)
    if relation.varies and patterns:
        yield relation.at_random(sizes, style="zero")
        yield relation.at_random(sizes, style="equal")
        yield from patterned(relation, sizes)


def magnitudes(relation: Relation, sizes: Sizes) -> Iterator[Point]:
    """Points with small and large numbers: all of them, and one given alone beside ordinary ones, of both signs."""
    setting = relation.setting
    values = list(MAGNITUDES)
    own = sorted(constants(relation.everything) - {0.0, 1.0})
    values += [number * by for number in own[-MOST_CONSTANTS:] if number < 1e9 for by in BEYOND]
    moved = [n for n in relation.sizes.givens if setting.distribution(n) is None and setting.kinds(n) <= _SCALED]
    for value in values:
        for style in ("up", "down"):
            yield _drawn(relation, sizes, style, value)
            for name in moved[:MOST_NAMES] if len(relation.sizes.givens) > 1 else ():
                if style == "up" or "positive" not in setting.kinds(name):
                    own_raw = draw_point(setting, [name], sizes, relation.rng, style, value).raw
                    yield relation.at_random(sizes).having(own_raw)
        yield _drawn(relation, sizes, "broad", value)


_SCALED = {"positive", "nonzero", "symmetric", "integer"}


def _drawn(relation: Relation, sizes: Sizes, style: str, reach: float) -> Point:
    return draw_point(relation.setting, relation.sizes.givens, sizes, relation.rng, style, reach)


def _signed(relation: Relation, point: Point) -> Point:
    """The point with some givens turned to the other sign, of those that may have one."""
    free = [
        n
        for n in point.raw
        if relation.setting.distribution(n) is None and not relation.setting.kinds(n) - {"symmetric"}
    ]
    return point.having({name: point.raw[name] * float(relation.rng.choice([-1.0, 1.0])) for name in free})
