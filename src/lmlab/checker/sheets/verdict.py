"""The verdict on one relation between two expressions: many points, several sizes, and a referee for close calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lmlab.checker.limits import Deadline, OutOfTime, Refusal
from lmlab.checker.numbers.expectations import open_names
from lmlab.checker.numbers.points import Point, SizeDrawer, Sizes, draw_point
from lmlab.checker.numbers.sides import DIGITS, KINK, TOLERANCE, Sides, referee, satisfies, sides_at
from lmlab.checker.shapes.setting import Setting, distribution
from lmlab.checker.sheets.extremes import search_extremes
from lmlab.checker.sheets.report import INVALID, REFUTED, SUPPORTED
from lmlab.checker.tree import Call, Compare, Expectation, Node, Number, walk

DRAWS = 5  # size draws
POINTS = 6  # points for each
BROAD = (3.0, 6.0, 12.0, 24.0)  # how far points with larger values reach, for what fails only there
FARTHEST = 1e4  # a number in a formula this large is still gone beyond
KINKED = ("relu", "abs", "sign", "max", "min", "maximum", "minimum", "where", "floor", "ceil", "round")
DOUBTS = 3  # how many of those may need the referee
DUST = 1e-12  # both sides below this: what rounding leaves of zeros, once the referee has said so
ACQUITTALS = 4  # times
CONFIRM_S = 0.25  # of processor time for the referee's last word
TRIES = 12  # redraws of a point that lies near a kink or breaks a condition


@dataclass
class Finding:
    """The verdict on one relation, and the point that refutes it."""

    verdict: str
    reason: str
    point: Point | None = None


@dataclass
class Tally:
    """What was seen while looking for a counterexample."""

    points: int = 0
    draws: int = 0
    undefined: int = 0
    vague: int = 0  # points where an expectation is known too coarsely to agree with anything
    largest: float = 0.0
    tolerance: float = TOLERANCE
    sampled: bool = False
    refereed: int = 0
    acquitted: int = 0  # points where doubles saw a difference between sides that are next to nothing, and were wrong


class Judge:
    """Decides one relation. `left` and `right` have shapes that broadcast; `relation` is ==, <=, >=, < or >."""

    def __init__(
        self, setting: Setting, left: Node, relation: str, right: Node, rng: np.random.Generator, deadline: Deadline
    ) -> None:
        self.setting = setting
        self.left, self.relation, self.right = left, relation, right
        self.rng = rng
        self.deadline = deadline
        conditions = [side for c in setting.conditions for side in (c.left, c.right)]
        self.sizes = SizeDrawer(setting, [left, right, *conditions])
        self.averages = any(isinstance(n, Expectation) for n in self._everything())
        self.varies = self._varies()
        self.tally = Tally()
        self.structural = False  # the formula itself puts points exactly on a kink

    def _everything(self) -> list[Node]:
        nodes = [*walk(self.left), *walk(self.right)]
        for name in self.setting.depends(self.left) | self.setting.depends(self.right):
            if name in self.setting.lets:
                nodes += walk(self.setting.lets[name].value)
        return nodes

    def _varies(self) -> bool:
        """Whether anything is left to draw once expectations have averaged their random names away."""
        used = open_names(self.left, self.setting) | open_names(self.right, self.setting)
        random = {name for name in self.sizes.givens if distribution(self.setting.givens[name]) is not None}
        return any(name in used or name not in random for name in self.sizes.givens)

    def sides(self, point: Point) -> Sides:
        """Both sides at a point, in doubles."""
        return sides_at(self.setting, self.left, self.right, point, self.deadline)

    def draw(
        self, sizes: Sizes, style: str = "plain", strict: bool = False, reach: float = 0.0
    ) -> tuple[Point, Sides] | None:
        """A point that obeys the conditions and lies away from kinks, with both sides there.

        A random point that lies exactly on a kink does so by the formula itself (a comparison of whole numbers, relu of
        a relu): such points count. Not so, if `strict`, unless larger sizes have shown it to be the formula.
        """
        last = None
        for _ in range(TRIES):
            point = draw_point(self.setting, self.sizes.givens, sizes, self.rng, style, reach)
            if self.setting.conditions and not satisfies(self.setting, self.setting.conditions, point, self.deadline):
                continue
            sides = self.sides(point)
            last = (point, sides)
            fair = not sides.touched or self.structural or (style == "plain" and not strict)
            if sides.margin > KINK and not sides.undefined_both and fair:
                self.structural |= sides.touched
                return last
            if not self.varies:
                break
        return None if strict else last

    def decide(self) -> Finding:
        """Look at many points; the first confirmed failure refutes."""
        try:
            finding = self._search()
        except OutOfTime:
            if self.tally.points < 3:
                return Finding(INVALID, "the claim takes too long to evaluate; make it smaller or split it with let")
            finding = None
        if finding is not None:
            return finding
        if self.tally.points == 0 and self.tally.vague:
            return Finding(INVALID, "an expectation here is known too coarsely to decide; use smaller sizes")
        if self.tally.points == 0:
            return self._nowhere()
        return Finding(SUPPORTED, self._support())

    def _search(self) -> Finding | None:
        top = 3 if self.averages else 5
        for round_ in range(DRAWS if self.sizes.names else 1):
            largest = 3 if round_ == 0 else top if round_ < 3 else top + 2 - self.averages  # most claims fail at once
            sizes = self.sizes.distinct(self.rng, largest)
            self.tally.draws += 1
            for _ in range(self._points()):
                finding = self._look(sizes, "plain", strict=False)
                if finding is not None:
                    return finding
        for style, reach in self._far() if self.varies and not self.averages else []:
            finding = self._look(self.sizes.distinct(self.rng, 3), style, strict=True, reach=reach)
            if finding is not None:
                return finding
            if self.tally.refereed > DOUBTS:
                break  # saturated functions lose their digits out here; the referee is slow
        for sizes in self.sizes.with_ones(self.rng):
            for _ in range(2 if self.varies else 1):
                finding = self._look(sizes, "plain", strict=True)
                if finding is not None:
                    return finding
        if self.relation != "==":
            point = search_extremes(self)
            if point is not None:
                return self._refute(point)
        return self._confirm()

    def _far(self) -> list[tuple[str, float]]:
        """Styles and reaches of points with larger values: beyond the numbers in the formula, if it has kinks."""
        draws = [("broad", reach) for reach in BROAD for _ in range(3)]
        nodes = self._everything()
        if any(isinstance(n, Compare) or (isinstance(n, Call) and n.function in KINKED) for n in nodes):
            written = {abs(float(n.value)) for n in nodes if isinstance(n, Number) and 1 < abs(n.value) <= FARTHEST}
            for number in sorted({*written, BROAD[-1] / 2})[-3:]:
                draws += [("up", 2 * number), ("down", 2 * number)] * 2
        return draws

    def _points(self) -> int:
        """Points for each draw of the sizes. Expectations are exact or dear, and need fewer."""
        if not self.varies:
            return 1
        if self.averages:
            return 2 if self.sizes.names else 8
        return POINTS if self.sizes.names else DRAWS * POINTS

    def _look(self, sizes: Sizes, style: str, strict: bool, reach: float = 0.0) -> Finding | None:
        drawn = self.draw(sizes, style, strict, reach)
        if drawn is None:
            return None
        point, sides = drawn
        tally = self.tally
        tally.sampled |= sides.sampled
        if not sides.defined:
            tally.undefined += 1
            return self._half_defined(point, sides) if style == "plain" else None  # far out, 1 - sigmoid(x) is 0
        amount = max(0.0, self.amount(sides))
        rounding = sides.scale < DUST and tally.acquitted >= ACQUITTALS
        broken = amount > sides.tolerance and not rounding
        if sides.vague and not broken:
            tally.vague += 1
            return None
        tally.points += 1
        tally.tolerance = max(tally.tolerance, sides.tolerance)
        if broken:
            if self.confirmed(point, sides, trusting=style == "plain"):
                return self._refute(point)
            tally.acquitted += sides.scale < DUST
        tally.largest = max(tally.largest, 0.0 if broken else amount)
        return None

    def amount(self, sides: Sides) -> float:
        """By how much the relation fails at a point, relative to the sides; at most 0 where an inequality holds."""
        return sides.difference if self.relation == "==" else sides.excess(self.relation)

    def confirmed(self, point: Point, sides: Sides, trusting: bool = True) -> bool:
        """Whether long decimals also see the relation fail. Without their word, a clear failure in doubles counts.

        Not `trusting`: it does not, because the point lies where doubles lose their digits.
        """
        if self.averages and sides.tolerance > TOLERANCE:
            return True
        ruling = referee(self.setting, self.left, self.right, point, self.deadline.within(1.5))
        if not ruling.known:
            return trusting and self.amount(sides) > 1e-6 and self._steady(point)
        if not (ruling.left_defined and ruling.right_defined):
            return False
        self.tally.refereed += 1
        if self.relation == "==":
            return not ruling.equal
        excess = ruling.largest if self.relation in ("<=", "<") else -ruling.smallest
        return not ruling.equal and excess > 0

    def _steady(self, point: Point) -> bool:
        """Whether the difference stays when the point moves a little. One that rounding made jumps about."""
        sides = self.sides(point)
        factor = 1 + 1e-11 * self.rng.choice([-1.0, 1.0])
        moved = self.sides(Point(point.sizes, {name: raw * factor for name, raw in point.raw.items()}))
        if not (sides.defined and moved.defined):
            return False
        gap, moved_gap = sides.left - sides.right, moved.left - moved.right
        return float(np.abs(gap - moved_gap).max()) < 0.01 * float(np.abs(gap).max())

    def _half_defined(self, point: Point, sides: Sides) -> Finding | None:
        """One side has a value where the other has none: that is a failure, if long decimals agree."""
        if sides.undefined_both:
            return None
        ruling = referee(self.setting, self.left, self.right, point, self.deadline.within(1.0))
        if not ruling.known or ruling.left_defined == ruling.right_defined:
            return None
        which, other = ("left", "right") if not ruling.left_defined else ("right", "left")
        reason = f"the {which} side has no value at this point, and the {other} side has; name the kind that is meant"
        return Finding(REFUTED, reason, point)

    def _refute(self, point: Point) -> Finding:
        only_ones = bool(self.tally.points > POINTS and point.sizes and 1 in point.sizes.values())
        note = f" (it holds at the {self.tally.points - 1} points tried with larger sizes)" if only_ones else ""
        what = "the sides differ" if self.relation == "==" else f"the left side is not {self.relation} the right side"
        return Finding(REFUTED, f"{what}{note}", point)

    def _confirm(self) -> Finding | None:
        """The referee looks at two points, so that a difference too small for doubles is seen as well."""
        within = self.deadline.within(CONFIRM_S)
        for _ in range(2 if self.varies else 1):
            drawn = self.draw(self.sizes.distinct(self.rng, 3), strict=True)
            if drawn is None or not drawn[1].defined:
                continue
            ruling = referee(self.setting, self.left, self.right, drawn[0], within)
            if not ruling.known:
                return None
            if not (ruling.left_defined and ruling.right_defined):
                continue
            self.tally.refereed += 1
            if self.relation == "==" and not ruling.equal:
                return self._refute(drawn[0])
        return None

    def _nowhere(self) -> Finding:
        if self.setting.conditions:
            raise Refusal("no point was found that obeys the where conditions and where both sides are defined")
        raise Refusal(
            "neither side has a finite value at any point tried; name the kinds, such as positive, that it needs"
        )

    def _support(self) -> str:
        tally = self.tally
        sizes = f" and {tally.draws} draws of the sizes" if self.sizes.names else ""
        what = "largest relative difference" if self.relation == "==" else "largest excess"
        text = f"holds in float64 at {tally.points} random points{sizes}; "
        text += f"{what} {tally.largest:.1e}, tolerance {tally.tolerance:.0e}"
        if tally.sampled:
            text += "; an expectation was estimated from random samples (six standard errors allowed)"
        elif tally.refereed:
            text += f"; confirmed in {DIGITS}-digit arithmetic"
        return text
