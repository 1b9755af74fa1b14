"""One relation between two expressions: points to look at it, and whether it fails there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmlab_derive.limits import Deadline
from lmlab_derive.numbers.arithmetics import arithmetic_for
from lmlab_derive.numbers.points import Point, Raw, draw_point, make_frame
from lmlab_derive.numbers.sides import (
    DIGITS,
    KINK,
    MANY_DIGITS,
    TIGHT,
    TOLERANCE,
    Ruling,
    Sides,
    beyond_errors,
    largest_met,
    meets,
    referee,
    satisfies,
    sides_at,
    stays,
    touches,
)
from lmlab_derive.numbers.size_draws import SizeDrawer, Sizes
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.tree import Derivative, Expectation, Node

ROUNDED = 1e-13  # of the largest number on the way: what rounding may leave, also where it loses a small term
DUST = 1e-12  # sides below this may be what rounding leaves of zeros
LAST_DIGITS = 10.0 ** (5 - DIGITS)  # relative: what rounding leaves of a mean in long decimals, 1/12 not being exact
ATTEMPTS = 8  # points at which a strict bound is looked at in so many
BESIDE = 1e-9  # relative: so far to both sides of where a bound is attained, conditions hold
PULLS = (
    0.3,
    3.0,
    0.1,
    10.0,
    0.01,
    100.0,
    1e-4,
    1e4,
    -1.0,
)  # factors by which a point is brought to where conditions hold
TRIES = 12  # redraws of a point that lies near a kink or breaks a condition


@dataclass
class Tally:
    """What was seen while looking for a counterexample."""

    points: int = 0
    ordinary: int = 0  # of those, the ones at sizes that are not 1 and values that are not far out
    doubted: bool = False  # a point where doubles see a difference is being looked at
    draws: int = 0
    vague: int = 0  # points where an expectation is known too coarsely to agree with anything
    blur: float = 0.0  # the coarsest of those
    largest: float = 0.0
    tolerance: float = TOLERANCE
    sampled: bool = False
    refereed: int = 0
    largest_size: int = 0
    largest_value: float = 0.0
    smallest_value: float = np.inf  # of those that are not 0
    largest_whole: float = 0.0  # of whole numbers by themselves
    excused: bool = False  # one side has no value where a root is 0, and that was not held against the claim
    divided: bool = False  # at sizes of 1, one side has no value where something that is divided by is 0
    attempts: int = 0  # points where a strict bound seemed to be attained
    false_alarms: int = (
        0  # points where doubles saw a difference between sides that are next to nothing, and were wrong
    )
    unsure: int = 0  # points out of the ordinary where doubles could not tell, and the referee was asked
    cut_short: bool = False  # the time of the claim ran out before everything was tried

    def reaches(self, point: Point, whole: list[str]) -> None:
        """Remember how large sizes, values and, among these, whole numbers by themselves have been."""
        self.largest_whole = max(self.largest_whole, *(abs(float(point.raw[name])) for name in whole), 0.0)
        self.largest_size = max(self.largest_size, *point.sizes.values(), 0)
        values = [float(np.abs(raw).max(initial=0.0)) for raw in point.raw.values()]
        self.largest_value = max(self.largest_value, *values, 0.0)
        self.smallest_value = min(self.smallest_value, *(value for value in values if value), np.inf)


class Relation:
    """left sign right, of shapes that broadcast; the sign is ==, <=, >=, < or >."""

    def __init__(
        self, setting: Setting, left: Node, sign: str, right: Node, rng: np.random.Generator, deadline: Deadline
    ) -> None:
        self.setting = setting
        self.left, self.sign, self.right = left, sign, right
        self.rng = rng
        self.deadline = deadline
        conditions = [side for c in setting.conditions for side in (c.left, c.right)]
        self.sizes = SizeDrawer(setting, [left, right, *conditions])
        self.everything = setting.opened(left, right)
        self.averages = any(isinstance(n, Expectation) for n in self.everything)
        self.varies = self._varies()
        self._constant: dict[tuple[Any, ...] | None, Sides] = {}
        self.tally = Tally()
        self._held = self._under_conditions()
        self.differentiates = any(isinstance(n, Derivative) for n in self.everything)
        self.structural = False  # the formula itself puts points exactly on a kink

    @property
    def scalars(self) -> list[str]:
        """The givens that are numbers by themselves, and not random."""
        setting = self.setting
        return [n for n in self.sizes.givens if not setting.givens[n].shape and setting.distribution(n) is None]

    @property
    def whole(self) -> list[str]:
        """The givens that are whole numbers by themselves."""
        setting = self.setting
        return [n for n in self.sizes.givens if "integer" in setting.kinds(n) and not setting.givens[n].shape]

    def _under_conditions(self) -> list[str]:
        """The givens of any size that conditions speak of."""
        named = frozenset[str]().union(
            *(self.setting.depends(side) for c in self.setting.conditions for side in (c.left, c.right))
        )
        scaled = {"positive", "nonzero", "symmetric"}
        return [n for n in self.sizes.givens if n in named and self.setting.kinds(n) <= scaled]

    def _varies(self) -> bool:
        """Whether anything is left to draw once expectations have averaged their random names away."""
        used = self.setting.open_names(self.left) | self.setting.open_names(self.right)
        return any(name in used or self.setting.distribution(name) is None for name in self.sizes.givens)

    def sides(self, point: Point, effort: int = 1) -> Sides:
        """Both sides at a point, in doubles; with more `effort` means are computed by other nodes and samples.

        Where nothing varies, points of the same sizes have the same sides: an integral is then taken once.
        """
        key = None if self.varies else (effort, *sorted(point.sizes.items()))
        if key in self._constant:
            return self._constant[key]
        sides = sides_at(self.setting, self.left, self.right, point, self.deadline, effort)
        if key is not None and not sides.sampled:
            self._constant[key] = sides
        return sides

    def value(self, node: Node, point: Point) -> Raw:
        """An expression at a point, in doubles."""
        ops = arithmetic_for(self.setting, node)
        found = make_frame(self.setting, point, ops, self.deadline).evaluate(node)
        return np.asarray(ops.to_numpy(found), dtype=float)

    def vague(self, sides: Sides) -> bool:
        """Whether means are known too coarsely for this point to speak for the relation."""
        if self.sign == "==":
            return sides.tolerance > TIGHT
        return sides.tolerance > TIGHT and sides.excess(self.sign) > -sides.tolerance

    def ruling(self, point: Point, seconds: float) -> Ruling:
        """The referee's word on a point, within this much processor time."""
        return referee(self.setting, self.left, self.right, point, self.deadline.within(seconds))

    def legal(self, point: Point) -> bool:
        """Whether a point obeys the conditions of the where clause."""
        return satisfies(self.setting, self.setting.conditions, point, self.deadline)

    def lawful(self, point: Point) -> Point | None:
        """The point, or one of the same pattern whose numbers are larger or smaller, that obeys the conditions."""
        if self.legal(point):
            return point
        for factor in PULLS if self.setting.conditions else ():
            pulled = point.having({name: point.raw[name] * factor for name in self._held})
            if self._held and self.legal(pulled):
                return pulled
        return None

    def at_random(self, sizes: Sizes, fixed: Mapping[str, Any] | None = None, style: str = "plain") -> Point:
        """A point as it comes, whatever the conditions, but for the raw numbers of some givens that are `fixed`."""
        return draw_point(self.setting, self.sizes.givens, sizes, self.rng, style).having(fixed or {})

    def draw(
        self, sizes: Sizes, style: str = "plain", strict: bool = False, reach: float = 0.0
    ) -> tuple[Point, Sides] | None:
        """A point that obeys the conditions and lies away from kinks, with both sides there.

        A random point that lies exactly on a kink does so by the formula itself (a comparison of whole numbers, relu of
        a relu): such points count. Not so, if `strict`, unless larger sizes have shown it to be the formula.
        """
        last = None
        for _ in range(TRIES):
            drawn = draw_point(self.setting, self.sizes.givens, sizes, self.rng, style, reach)
            point = self.lawful(drawn)
            if point is None:
                continue
            sides = self.sides(point)
            last = (point, sides)
            fair = not sides.touched or self.structural or (style == "plain" and not strict)
            bare = sides.undefined_both if self.sign == "==" or sides.diverges else not sides.defined
            if sides.margin > KINK and not bare and fair:
                self.structural |= sides.touched
                return last
            if not self.varies:
                break
        return None if strict else last

    def looked_at(self, point: Point, beside: bool = False) -> tuple[Point, Sides] | None:
        """A point with both sides there, unless it breaks a condition or lies next to a kink, which `beside` allows."""
        lawful = self.lawful(point)
        if lawful is None:
            return None
        sides = self.sides(lawful)
        return (lawful, sides) if beside or sides.margin > KINK else None

    def certain(self, point: Point, left: bool) -> bool:
        """Whether a side has its value at a point in any number of digits: no zero that rounding made a number."""
        side = self.left if left else self.right
        return stays(self.setting, side, point, self.deadline.within(0.5))

    def attained(self, point: Point) -> bool:
        """Whether the sides of a strict bound are equal here, in so many digits that no sigmoid passes for its limit."""
        self.tally.attempts += 1
        if self.tally.attempts > ATTEMPTS:
            return False
        if self.averages:  # integrals in so many digits take too long
            ruling = self.ruling(point, 0.5)
            gaps = () if not ruling.known or ruling.largest is None else (ruling.largest, ruling.smallest)
            return any(abs(gap) <= LAST_DIGITS for gap in gaps)
        trusted = MANY_DIGITS * 3 // 10 if self.differentiates else MANY_DIGITS - DIGITS
        sign = 1 if self.sign == "<" else -1
        within = self.deadline.within(0.5)
        return touches(self.setting, self.left, self.right, point, sign, MANY_DIGITS, trusted, within)

    def attained_near(self, point: Point, name: str) -> Point | None:
        """A point next to where the sides of a strict bound meet, at a number that no double is, as 1/e."""
        sign = 1 if self.sign == "<" else -1
        at = meets(self.setting, self.left, self.right, point, name, sign, self.deadline.within(0.5))
        if at is None:
            return None
        kinds = self.setting.kinds(name)
        low = BESIDE if kinds & {"positive", "fraction"} else -np.inf
        if not low < at < (1 - BESIDE if "fraction" in kinds else np.inf):
            return None  # the edge of a kind is not of it
        around = [point.having({name: at * by}) for by in (1 - BESIDE, 1, 1 + BESIDE)]
        return around[1] if all(map(self.legal, around)) else None

    def amount(self, sides: Sides) -> float:
        """By how much the relation fails at a point, relative to the sides; at most 0 where an inequality holds."""
        return sides.difference if self.sign == "==" else sides.excess(self.sign)

    def confirmed(self, point: Point, sides: Sides, trusting: bool = True) -> bool:
        """Whether long decimals also see the relation fail. Without their word, a clear failure in doubles counts.

        Not `trusting`: it does not, because the point lies where doubles lose their digits.
        """
        ruling = self.ruling(point, 1.5)
        if ruling.beyond and not trusting:
            return False
        if not ruling.known and self.averages:
            again = self.sides(point, effort=2)
            return again.defined and again.scale > DUST and self.amount(again) > again.tolerance
        if not ruling.known and (beyond := self.beyond_errors(point)) is not None:
            return beyond
        if not ruling.known:
            return trusting and self.amount(sides) > 1e-6 and not self.rounded(point, sides) and self._steady(point)
        if not ruling.defined:
            return False
        self.tally.refereed += 1
        if self.sign == "==":
            return not ruling.equal
        excess = ruling.largest if self.sign in ("<=", "<") else -ruling.smallest
        return not ruling.equal and excess > 0

    def rounded(self, point: Point, sides: Sides) -> bool:
        """Whether a difference is as small as rounding the largest number on the way to the sides may leave it."""
        most = largest_met(self.setting, self.left, self.right, point, self.deadline)
        return float(np.abs(sides.gap).max()) <= ROUNDED * most

    def slopes_rounded(self, point: Point, sides: Sides) -> bool:
        """The same where derivatives are taken, which the referee is slow to look at: there it is not even asked."""
        return self.differentiates and self.rounded(point, sides)

    def fails_by_little(self, point: Point) -> bool:
        """Whether a bound fails in long decimals, asked at few points."""
        self.tally.unsure += 1
        if self.tally.unsure > ATTEMPTS:
            return False
        ruling = self.ruling(point, 0.25)
        if not ruling.known or not ruling.defined or ruling.equal or ruling.beyond:
            return False
        excess = ruling.largest if self.sign in ("<=", "<") else -ruling.smallest
        return bool(excess > 0)

    def beyond_errors(self, point: Point) -> bool | None:
        """Whether the relation fails by more than the errors of sums that have too many terms for long decimals.

        None where it has no such sums, or where slopes and means are taken, which need more digits.
        """
        if self.differentiates or self.averages:
            return None
        within = self.deadline.within(1.5)
        return beyond_errors(self.setting, self.left, self.sign, self.right, point, within)

    def _steady(self, point: Point) -> bool:
        """Whether the difference stays when the point moves a little. One that rounding made jumps about."""
        sides = self.sides(point)
        factor = 1 + 1e-11 * self.rng.choice([-1.0, 1.0])
        moved = self.sides(Point(point.sizes, {name: raw * factor for name, raw in point.raw.items()}))
        if not (sides.defined and moved.defined):
            return False
        return float(np.abs(sides.gap - moved.gap).max()) < 0.01 * float(np.abs(sides.gap).max())
