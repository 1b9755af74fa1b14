"""The verdict on one relation: many points, several sizes, and a referee for close calls."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lmlab_derive.functions import Kink, kink_of
from lmlab_derive.limits import NoExactValue, OutOfTime, Refusal
from lmlab_derive.numbers.fractions import settle
from lmlab_derive.numbers.points import Point
from lmlab_derive.numbers.sides import DIGITS, KINK, Sides, referee
from lmlab_derive.numbers.size_draws import Sizes
from lmlab_derive.sheets.bound_breakers import search_extremes
from lmlab_derive.sheets.extreme_points import at_larger_sizes, magnitudes, patterned
from lmlab_derive.sheets.kink_points import kinks
from lmlab_derive.sheets.relation import DUST, Relation
from lmlab_derive.sheets.report import REFUTED, SUPPORTED, UNDECIDED, Counterexample
from lmlab_derive.sheets.special_points import divides, far_scalars, inverts_nothing, special_points
from lmlab_derive.symbols.proofs import prove
from lmlab_derive.tree import Number

DRAWS = 5  # size draws
POINTS = 6  # points for each
BROAD = (3.0, 6.0, 12.0, 24.0)  # how far points with larger values reach, for what fails only there
FARTHEST = 1e4  # a number in a formula this large is still gone beyond
MOST_REFEREED = 3  # how many of those may need the referee
MOST_FALSE_ALARMS = 4  # times that the referee has called sides that are next to nothing the same
FAINT = 1e-6  # means below this, far out, are what a quadrature leaves of much larger numbers
EXTREMES_S = 0.25  # of processor time for points that are not ordinary, and again for large sizes
MOST_UNSURE = 16  # of those, how many the referee looks at
CLOSE = 1e-12  # a relative difference that rounding rarely leaves, and that doubles do not count
FINE_DIGITS = 1000  # of the referee's last look, in which softplus(300) is not 300
CONFIRM_S = 0.25  # of processor time for the referee's last word
MEANS_S = 1.0  # and where it takes means, whose integrals are longer
TOO_LONG = "it takes the checker too long to decide this; what is smaller, or split into several claims, it may decide"
NO_SLOPE = "the checker knows no way to take this derivative of a mean over several numbers"

DIFFER = "the sides differ"
_UNKNOWN = "?"  # a proof that nobody has looked for


@dataclass
class Finding:
    """The verdict on one relation; the point that refutes it, what is shown of it, and how to repair the claim."""

    verdict: str
    reason: str
    point: Point | None = None
    counterexample: Counterexample | None = None
    hint: str | None = None
    repairable: bool = False  # whether a change of the formula may be what is needed, rather than a kind or a condition
    lacking: bool = False  # one side has no value at the point: a kind or a condition may have been left out


class Judge:
    """Decides one relation."""

    def __init__(self, relation: Relation) -> None:
        self.relation, self.sizes, self.tally = relation, relation.sizes, relation.tally
        self._proof: str | None = _UNKNOWN

    def decide(self) -> Finding:
        """Look at many points; the first confirmed failure refutes."""
        try:
            finding = self._search()
        except NoExactValue:
            return Finding(UNDECIDED, NO_SLOPE)
        except OutOfTime:
            if self.tally.points < (3 if self.relation.varies else 1):
                return Finding(UNDECIDED, TOO_LONG)
            if self.tally.doubted:
                what = "the sides seem to differ at a point, and there was no time to look at it more closely"
                return Finding(UNDECIDED, what)
            finding, self.tally.cut_short = None, True
        if finding is not None:
            return finding
        if self.tally.vague and not self.tally.ordinary:
            return Finding(UNDECIDED, self._doubt())
        if self.tally.points == 0:
            raise self._nowhere()
        return Finding(SUPPORTED, self._support())

    def _search(self) -> Finding | None:
        for sizes, style, strict, reach in self._trials():
            finding = self._look(sizes, style, strict, reach)
            if finding is not None:
                return finding
        if self.relation.sign == "==":
            return self._special() or (None if self.proof() else self._extreme()) or self._confirm()
        point = search_extremes(self.relation)
        return None if point is None else self._refute(point)

    def proof(self) -> str | None:
        """How the relation is proved, in words, or None; worked out once, and asked only of what holds in numbers."""
        if self._proof is _UNKNOWN:
            relation = self.relation
            what = (relation.setting, relation.left, relation.sign, relation.right, relation.deadline)
            self._proof = "proved: computed in exact fractions" if settle(*what) else prove(*what)
        return self._proof

    def _special(self) -> Finding | None:
        """Zeros, ones, the numbers of the formula and equal names: where random points never are, and sides may differ."""
        relation = self.relation
        if not relation.varies:
            return None
        sizes = self.sizes.distinct(relation.rng, 2)
        for point in far_scalars(relation, sizes) if relation.averages else special_points(relation, sizes):
            try:
                sides = relation.sides(point) if relation.legal(point) else None
            except Refusal:  # a position beyond its axis
                continue
            if sides is not None and sides.edged:
                self.tally.excused |= not sides.defined and not sides.undefined_both
            if sides is None or sides.edged or sides.margin <= KINK or sides.undefined_both:
                continue
            if relation.differentiates and sides.touched:
                continue  # derivatives are compared away from kinks
            if not sides.defined:
                finding = None if inverts_nothing(relation, point) else self._half_defined(point, sides)
                if finding is not None:
                    return finding
            elif relation.averages and sides.scale < FAINT:
                continue  # so far out in a tail a mean is known no better than what is averaged
            elif (
                relation.amount(sides) > sides.tolerance
                and not relation.slopes_rounded(point, sides)
                and relation.confirmed(point, sides, trusting=False)
            ):
                return self._refute(point)
        if divides(relation) and not relation.averages:
            self.tally.divided = any(map(self._half_of_one, self.sizes.with_ones(relation.rng)))
        return None

    def _extreme(self) -> Finding | None:
        """Small and large numbers, kinks from both sides, patterns and large sizes: where sides agree at all others.

        A side that has no value out there says nothing: exp(1e6) is too large for doubles.
        """
        relation = self.relation
        if not relation.varies or relation.averages:
            return self._larger() if not relation.averages else None
        small = self.sizes.distinct(relation.rng, 3)
        points = itertools.chain(
            magnitudes(relation, small), kinks(relation, small), patterned(relation, small, mixed=2)
        )
        started = time.thread_time()
        for point in points:
            try:
                lawful = relation.lawful(point)
                sides = None if lawful is None else relation.sides(lawful)
            except Refusal:  # a position beyond its axis, a sum of too many terms
                continue
            finding = None if sides is None or lawful is None else self._far_off(lawful, sides, trusting=False)
            if finding is not None:
                return finding
            if time.thread_time() - started > EXTREMES_S:
                self.tally.cut_short |= time.thread_time() - started > 2 * EXTREMES_S
                break
        return self._larger()

    def _larger(self) -> Finding | None:
        """Large sizes, which a formula may forget."""
        relation = self.relation
        if not self.sizes.names:
            return None
        small = self.sizes.distinct(relation.rng, 3)
        for point, sides in at_larger_sizes(relation, small, patterns=False, seconds=EXTREMES_S):
            finding = self._far_off(point, sides, trusting=True)
            if finding is not None:
                return finding
        return None

    def _far_off(self, point: Point, sides: Sides, trusting: bool) -> Finding | None:
        """The failure of an equation at a point that is not an ordinary one, if there is one."""
        relation, tally = self.relation, self.tally
        if sides.undefined_both or sides.edged or (relation.differentiates and (sides.touched or sides.margin < KINK)):
            return None
        if not sides.defined:
            ruling = relation.ruling(point, CONFIRM_S) if tally.unsure < MOST_UNSURE else None
            tally.unsure += 1
            wrong = ruling is not None and ruling.known and not (ruling.beyond or ruling.equal) and ruling.defined
            return self._refute(point) if wrong else None
        amount = relation.amount(sides)
        if amount > sides.tolerance:
            if tally.unsure >= MOST_UNSURE or relation.slopes_rounded(point, sides):
                return None
            if relation.confirmed(point, sides, trusting):
                return self._refute(point)
            tally.unsure += 1
            return None
        tally.reaches(point, relation.whole)
        tally.points += 1
        tally.largest = max(tally.largest, max(0.0, amount))
        if (
            amount > CLOSE and tally.unsure < MOST_UNSURE and not (sides.slack or relation.differentiates)
        ):  # many digits agree: do all?
            tally.unsure += 1
            ruling = relation.ruling(point, CONFIRM_S)
            if ruling.known and ruling.defined and not ruling.equal and not ruling.beyond:
                return self._refute(point)
        return None

    def _half_of_one(self, sizes: Sizes) -> bool:
        """Whether, at sizes of 1, only one side has a value where everything is 0: 1/x**(n - 1) is 1/1 there."""
        relation = self.relation
        point = relation.at_random(sizes, style="zero")
        try:
            sides = relation.sides(point) if relation.legal(point) and not inverts_nothing(relation, point) else None
        except (Refusal, NoExactValue):  # a position beyond its axis
            return False
        if sides is None or sides.edged or sides.undefined_both or (relation.differentiates and sides.touched):
            return False
        ruling = relation.ruling(point, CONFIRM_S)  # for doubles, (1/0)**0 is 1
        return ruling.known and ruling.left_defined != ruling.right_defined

    def _trials(self) -> Iterator[tuple[Sizes, str, bool, float]]:
        """Sizes and styles of the points to look at: plain ones, some far out, and some at sizes of 1."""
        relation, sizes, rng = self.relation, self.sizes, self.relation.rng
        top = 3 if relation.averages else 5
        for round_ in range(DRAWS if sizes.names else 1):
            largest = 3 if round_ == 0 else top if round_ < 3 else top + 2 - relation.averages  # most fail at once
            drawn = sizes.distinct(rng, largest)
            self.tally.draws += 1
            for _ in range(self._points()):
                yield drawn, "plain", False, 0.0
        for style, reach in self._far() if relation.varies and not relation.averages else []:
            yield sizes.distinct(rng, 3), style, True, reach
            if self.tally.refereed > MOST_REFEREED:
                break  # the referee is slow
        for drawn in sizes.with_ones(rng):
            for _ in range(2 if relation.varies else 1):
                yield drawn, "plain", True, 0.0

    def _far(self) -> list[tuple[str, float]]:
        """Styles and reaches of points with larger values: beyond the numbers in the formula, if it has kinks."""
        draws = [("broad", reach) for reach in BROAD for _ in range(3)]
        nodes = self.relation.everything
        if any(kink_of(node) in (Kink.BEND, Kink.JUMP) for node in nodes):
            written = {abs(float(n.value)) for n in nodes if isinstance(n, Number) and 1 < abs(n.value) <= FARTHEST}
            for number in sorted({*written, BROAD[-1] / 2})[-3:]:
                draws += [("up", 2 * number), ("down", 2 * number)] * 2
        return draws

    def _points(self) -> int:
        """Points for each draw of the sizes. Expectations are exact or dear, and need fewer."""
        if not self.relation.varies:
            return 1
        if self.relation.averages:
            return 2 if self.sizes.names else 8
        return POINTS if self.sizes.names else DRAWS * POINTS

    def _look(self, sizes: Sizes, style: str, strict: bool, reach: float) -> Finding | None:
        drawn = self.relation.draw(sizes, style, strict, reach)
        if drawn is None:
            return None
        point, sides = drawn
        tally = self.tally
        tally.sampled |= sides.sampled
        if not sides.defined:
            return self._half_defined(point, sides) if style == "plain" else None  # far out, 1 - sigmoid(x) is 0
        amount = max(0.0, self.relation.amount(sides))
        rounding = sides.scale < DUST and tally.false_alarms >= MOST_FALSE_ALARMS
        broken = amount > sides.tolerance and not rounding
        if broken and style != "plain" and self.relation.slopes_rounded(point, sides):
            return None  # far out, saturated functions lose their digits
        if self.relation.vague(sides) and not broken:
            tally.blur = max(tally.blur, sides.tolerance)
            tally.vague += 1
            return None
        if broken:
            tally.doubted = True  # until it is confirmed or not, which takes time
            if self.relation.confirmed(point, sides, trusting=style == "plain"):
                return self._refute(point)
            tally.doubted = False
            tally.false_alarms += sides.scale < DUST
        tally.reaches(point, self.relation.whole)
        tally.points += 1
        tally.ordinary += style == "plain" and not strict
        tally.tolerance = max(tally.tolerance, sides.tolerance)
        tally.largest = max(tally.largest, amount if amount <= sides.tolerance else 0.0)  # beyond it, the referee spoke
        return None

    def _half_defined(self, point: Point, sides: Sides) -> Finding | None:
        """One side has a value where the other has none: that is a failure, if long decimals agree."""
        if sides.undefined_both:
            return None
        ruling = self.relation.ruling(point, 1.5)
        if sides.diverges and (ruling.diverges or not ruling.known):
            which = "left" if not np.isfinite(sides.left).all() else "right"
            return Finding(REFUTED, f"the mean on the {which} side does not exist: its integral diverges", point)
        if ruling.known and ruling.defined and self.relation.sign == "==":
            if not ruling.equal:  # doubles saw no value, and decimals see two
                return self._refute(point)
            self.tally.points, self.tally.refereed = self.tally.points + 1, self.tally.refereed + 1
            self.tally.ordinary += 1
            return None
        if not ruling.known or ruling.left_defined == ruling.right_defined or self.relation.sign != "==":
            return None  # a bound is claimed where both sides have values
        which, other = ("left", "right") if not ruling.left_defined else ("right", "left")
        if not self.relation.certain(point, other == "left"):
            return None  # a zero that rounding made a number: this side has no value there either
        reason = f"the {which} side has no value at this point, and the {other} side has"
        if self.relation.averages:
            return Finding(REFUTED, f"{reason}; say in a condition where its mean exists (as in `where t < 1`)", point)
        return Finding(REFUTED, reason, point, lacking=True)

    def _refute(self, point: Point) -> Finding:
        only_ones = bool(self.tally.points > POINTS and point.sizes and 1 in point.sizes.values())
        others = self.tally.points - (self.relation.sign != "==")  # the point itself is counted for a bound
        note = f" (it holds at the {others} points tried with larger sizes)" if only_ones else ""
        what = DIFFER if self.relation.sign == "==" else f"the left side is not {self.relation.sign} the right side"
        sides = self.relation.sides(point)
        if sides.defined and self.relation.amount(sides) <= sides.tolerance:
            what += ", by less than doubles tell apart; long decimals do"
        return Finding(REFUTED, f"{what}{note}", point, repairable=True)

    def _confirm(self) -> Finding | None:
        """The referee looks at an equation at two points, so that a difference too small for doubles is seen as well."""
        within = self.relation.deadline.within(MEANS_S if self.relation.averages else CONFIRM_S)
        exact = not (self.relation.averages or self.relation.differentiates)
        for digits in (DIGITS, FINE_DIGITS if exact else DIGITS)[: 2 if self.relation.varies else 1]:
            drawn = self.relation.draw(self.sizes.distinct(self.relation.rng, 3), strict=True)
            if drawn is None or not drawn[1].defined:
                continue
            ruling = referee(self.relation.setting, self.relation.left, self.relation.right, drawn[0], within, digits)
            if digits != DIGITS and (ruling.beyond or not ruling.known):
                continue  # too many digits for the time there is
            if not ruling.known:
                return self._refute(drawn[0]) if self.relation.beyond_errors(drawn[0]) else None
            if not ruling.defined:
                continue
            self.tally.refereed += 1
            if not ruling.equal:
                return self._refute(drawn[0])
        return None

    def _doubt(self) -> str:
        tally = self.tally
        how = "samples" if tally.sampled else "integrals"
        what = f"the sides agree at {tally.vague} points as far as {how} tell (to about {tally.blur:.0e} of their size)"
        return f"{what}, which is too coarse to say that they are equal" if self.relation.sign == "==" else what

    def _nowhere(self) -> Refusal:
        if self.relation.setting.conditions:
            return Refusal(
                "no point was found that obeys the where conditions and where both sides are defined",
                code="no-point-found",
            )
        what = "at no point tried have both sides a finite value"
        return Refusal(f"{what}; name the kinds, such as positive, that it needs", code="kinds-needed")

    def _support(self) -> str:
        tally = self.tally
        sizes = f" and {tally.draws} draws of the sizes" if self.sizes.names else ""
        what = "largest relative difference" if self.relation.sign == "==" else "largest excess"
        text = f"holds in float64 at {tally.points} random points{sizes}; "
        text += f"{what} {tally.largest:.1e}, tolerance {tally.tolerance:.0e}"
        if tally.false_alarms:
            text += f"; where both sides should be 0 they are below {DUST:.0e}"
        if self.relation.varies or tally.largest_size:
            sizes = f"sizes up to {tally.largest_size} and " if tally.largest_size else ""
            whole = f"whole numbers up to {tally.largest_whole:.0f} and " if tally.largest_whole else ""
            least = f"from {tally.smallest_value:.0e} " if 0 < tally.smallest_value < 0.01 else ""
            text += f"; {sizes}{whole}values {least}up to {tally.largest_value:.0e} were tried"
        if tally.sampled:
            text += "; an expectation was estimated from random samples (twelve standard errors allowed)"
        elif tally.refereed:
            text += f"; confirmed in {DIGITS}-digit arithmetic"
        if tally.cut_short:
            text += "; its time ran out before everything was tried"
        return text
