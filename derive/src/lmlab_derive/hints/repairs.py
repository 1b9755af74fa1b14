"""The search for the small edit that makes one formula equal to another, verified at fresh points before it is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import numpy as np

from lmlab_derive.functions import Kink, kink_of
from lmlab_derive.hints.sense import Sense
from lmlab_derive.hints.slips import Edit, edit, negated, short
from lmlab_derive.hints.supplies import RARE, Pool, everywhere, pieces, rarer, supplies
from lmlab_derive.limits import Deadline, NoExactValue, OutOfTime, Refusal
from lmlab_derive.numbers.arithmetics import arithmetic_for
from lmlab_derive.numbers.doubles import FloatOps
from lmlab_derive.numbers.evaluate import Frame
from lmlab_derive.numbers.points import Raw, draw_point, make_frame
from lmlab_derive.numbers.sides import KINK, SAFETY
from lmlab_derive.numbers.size_draws import SizeDrawer, Sizes
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.sizes import Shape, broadcast, size_names
from lmlab_derive.small_formulas import ONE, TWO, call, minus, number, over, power, times
from lmlab_derive.tree import Binary, Derivative, Expectation, Name, Node, Number, Transpose, names_in, shown, walk

CLOSE = 1e-8
TERM = 1.95  # the cost of a whole term that is missing
FEW_TERMS = 1_500  # terms tried before repairs that cost more; the others come last
NOTHING = 1e-11  # a value this small was left over by rounding
PROBES = 4  # points at which a repair must agree: one to find it, the others to be sure
_RATIO_WORDS = "2 1/2 -2 -1/2 3 1/3 4 1/4 -1 3/2 2/3 -3 -4 -1/4 8 1/8 6 1/6"
RATIOS = [(ratio, float(ratio)) for ratio in map(Fraction, _RATIO_WORDS.split())]


@dataclass
class Probe:
    """A point with the value the repaired formula must have."""

    frame: Frame  # doubles in NumPy; names, derivatives and expectations already have their values
    target: Raw
    scale: float = 0.0  # the size of what is compared

    def __post_init__(self) -> None:
        self.scale = self.scale or float(np.abs(self.target).max(initial=0.0))

    def fits(self, value: Raw) -> bool:
        """Whether a candidate's value is the target."""
        return self.scale > 0 and bool(np.abs(value - self.target).max() <= CLOSE * self.scale)

    def ratio(self, value: Raw) -> float | None:
        """The number that turns the candidate's value into the target, if there is one."""
        if not value.size:
            return None
        place = np.unravel_index(int(np.argmax(np.abs(value))), value.shape)
        if not np.isfinite(value).all() or value[place] == 0:
            return None
        ratio = float(self.target[place] / value[place])
        return ratio if ratio and self.fits(value * ratio) else None


class Repairer:
    """Looks for the edit of `wrong` that makes it equal to `target`; the functions `derived` are differentiated."""

    def __init__(
        self,
        setting: Setting,
        target: Node,
        wrong: Node,
        rng: np.random.Generator,
        deadline: Deadline,
        derived: frozenset[str],
        next_line: bool = False,
    ) -> None:
        self.setting, self.target, self.wrong = setting, target, wrong
        self.next_line = next_line  # the target is the line above: a slip between the lines is named
        self.rng, self.deadline = rng, deadline
        self.shape: Shape = setting.shape(target)
        self.compared, self.allowed = self._comparison()
        self.pool = _pool(setting, target, wrong, derived)
        self.sense = Sense(target, wrong, self._shape_of)
        self.names = [Name(name) for name in self.pool.names]
        sizes = [Name(name) for name in sorted(names_in(wrong)) if name in setting.shapes.sizes]
        self.drawer = SizeDrawer(setting, [target, *self.names, *sizes])
        self.fresh: list[Probe] = []
        self.probes = self._probes()
        self.vanishes = bool(self.probes) and not any(np.abs(probe.target).max() for probe in self.probes)

    def _comparison(self) -> tuple[Shape, set[Shape]]:
        """The shape in which the sides are compared, after broadcasting, and the shapes a repair may have."""
        own = self._shape_of(self.wrong)
        try:
            compared = self.shape if own is None else broadcast(own, self.shape)
        except Refusal:
            return self.shape, {self.shape}
        return compared, {compared, self.shape, self.shape if own is None else own}

    def _probes(self) -> list[Probe]:
        """Points away from kinks; the first half are points where the wrong formula is seen to be wrong."""
        averages = any(isinstance(node, Expectation) for node in walk(self.target))  # dear, and exact for small sizes
        telling: list[Probe] = []
        others: list[Probe] = []
        for attempt in range(10 * PROBES):
            sizes = self.drawer.distinct(self.rng, (2 if averages else 3) + attempt % (2 if averages else 3))
            if any(sizes == probe.frame.sizes for probe in telling + others) and attempt % 3:
                continue  # a factor 3 must not pass for a factor n
            probe = self._probe(sizes)
            if probe is None:
                continue
            value = self.value(self.wrong, probe)
            if value is None or not probe.fits(value):
                telling.append(probe)
            else:
                others.append(probe)
            enough = len(telling) >= PROBES // 2 and len(telling) + len(others) >= PROBES
            if enough and _sizes_vary(telling + others):
                break
        return telling + others if telling else []

    def _probe(self, sizes: Sizes) -> Probe | None:
        """A point of these sizes; None where it lies next to a kink, or tells nothing."""
        point = draw_point(self.setting, self.drawer.givens, sizes, self.rng)
        ops = arithmetic_for(self.setting, self.target, self.wrong, *self.names)
        exact = make_frame(self.setting, point, ops, self.deadline)
        target = ops.to_numpy(exact.evaluate(self.target))
        frame = Frame(self.setting, FloatOps(), sizes, {}, self.deadline)
        self._fill(frame, exact)
        coarse = any(float(error) > CLOSE / SAFETY * (size or 1.0) for _, error, size in ops.accuracy.means)
        if not np.isfinite(target).all() or ops.margin <= KINK or coarse:
            return None
        target = np.broadcast_to(target, tuple(axis.value(sizes) for axis in self.compared))
        if np.abs(target).max(initial=0.0) > NOTHING:
            return Probe(frame, target)
        probe = Probe(frame, np.zeros_like(target))  # a target of zero has no size of its own
        value = self.value(self.wrong, probe)
        if value is None or not np.isfinite(value).all() or np.abs(value).max(initial=0.0) <= NOTHING:
            return None
        probe.scale = float(np.abs(value).max())
        return probe

    def _fill(self, frame: Frame, exact: Frame) -> None:
        for name in self.pool.names:
            frame.values[name] = exact.ops.to_numpy(exact.value(name))
        for inner in walk(self.wrong):
            if isinstance(inner, (Derivative, Expectation)):
                try:
                    self.setting.shape(inner)
                    frame.memo[id(inner)] = (inner, exact.ops.to_numpy(exact.evaluate(inner)))
                except (Refusal, KeyError):  # a letter outside of its sum
                    continue

    def _shape_of(self, node: Node) -> Shape | None:
        try:
            return self.setting.shapes.of(node)
        except Refusal:
            return None

    def value(self, node: Node, probe: Probe, scalar: bool = False) -> Raw | None:
        """A candidate at a probe; None when its shapes do not fit (`scalar` ones may) or it cannot be computed."""
        try:
            shape = self.setting.shapes.of(node)
            if shape not in self.allowed and (shape or not scalar):
                return None
            value = np.asarray(probe.frame.evaluate(node))
            # A slice may end beyond its axis at sizes drawn without regard to it: no value there either.
            return value if value.shape == probe.target.shape else np.broadcast_to(value, probe.target.shape)
        except (Refusal, NoExactValue, KeyError, ValueError, IndexError):
            return None

    def search(self) -> Edit | None:
        """The cheapest verified repair within the time allowed."""
        if len(self.probes) < PROBES:
            return None
        best = self._whole()
        first = self.probes[0]
        scaled: Edit | None = None
        terms = None if self.vanishes or best is not None else FEW_TERMS
        try:
            for part in self._edits():
                self.deadline.check()
                if best is not None and part.cost >= best.cost:
                    return best
                if terms and part.cost >= TERM and (found := self._missing_term(terms)) is not None:
                    return found
                terms = None if part.cost >= TERM else terms
                shape = self._shape_of(part.node)
                if shape is None or part.keeps not in (None, shape):
                    continue
                change = part.within(self.wrong)
                value = self.value(change.node, first)
                if value is None or (self.vanishes and self._zero_anyway(change.node)):
                    continue
                if first.fits(value) and not self.sense.roundabout(change.node):
                    if self.sense.copies(change.node):
                        rearranged = self.next_line and names_in(change.node) == names_in(self.wrong)
                        # what is left are longer ways to the other side
                        return change if rearranged and self._everywhere(change.node) else best
                    if self.verified(change.node):
                        return change
                if scaled is None and best is None:
                    scaled = self._scaled(change, value)
            return best or (None if self.vanishes else self._missing_term()) or scaled
        except OutOfTime:
            return best or scaled

    def _edits(self) -> Iterator[Edit]:
        """Every edit, the likely ones first. The rarer ones are many, and are made only when their turn comes."""
        what = (self.wrong, self.pool, self._shape_of, self._shape_of(self.wrong) != self.shape)
        common = sorted(everywhere(*what), key=lambda change: change.cost)
        likely = [change for change in common if change.cost < RARE]
        yield from likely
        yield from sorted([*common[len(likely) :], *rarer(*what)], key=lambda change: change.cost)

    def _whole(self) -> Edit | None:
        """A constant, a size or a scalar that the whole formula must be multiplied by."""
        value = self.value(self.wrong, self.probes[0])
        ratio = None if value is None else self.probes[0].ratio(value)
        if ratio is None or not names_in(self.target):  # any number can be made of any other
            return None
        for factor, what, cost in sorted(self._factors(ratio), key=lambda item: item[2]):
            node = _multiplied(factor, self.wrong)
            if self.verified(node):
                return edit(node, cost, what)
        return None

    def _factors(self, ratio: float) -> list[tuple[Node, str, float]]:
        found: list[tuple[Node, str, float]] = []
        for constant, value in RATIOS:
            if _is(ratio, value):
                found.append((number(constant), _factor_words(constant), 1.0 if constant == -1 else 1.15))
        for part in self._scalar_parts(ratio):
            found.append((part, f"a factor {short(part, 20)} is missing", 1.4))
            found.append((over(ONE, part), f"a factor 1/{short(part, 100)} is missing", 1.4))
        for name in [*self.pool.sizes, *(name for name, shape in self.pool.names.items() if shape == ())]:
            node, named, less = Name(name), shown(name), minus(Name(name), ONE)
            factors = [
                (node, named, 1.2),
                (over(ONE, node), f"1/{named}", 1.2),
                (call("sqrt", node), f"sqrt({named})", 1.25),
                (over(ONE, call("sqrt", node)), f"1/sqrt({named})", 1.25),
                (power(node, 2), f"{named}**2", 1.25),
                (over(ONE, power(node, 2)), f"1/{named}**2", 1.25),
                (over(TWO, node), f"2/{named}", 1.3),
                (over(node, TWO), f"{named}/2", 1.3),
                (over(less, node), f"({named} - 1)/{named}", 1.3),
                (over(node, less), f"{named}/({named} - 1)", 1.3),
            ]
            found += [(factor, f"a factor {text} is missing", cost) for factor, text, cost in factors]
        return found

    def _scalar_parts(self, ratio: float) -> list[Node]:
        """Scalar formulas in sight, like det(A) or alpha / r, that the ratio is the value or the inverse of."""
        found = []
        for part in dict.fromkeys(self.pool.parts):
            whole = part in (self.target, self.wrong) or isinstance(part, (Name, Number, Derivative, Expectation))
            if whole or self._shape_of(part) != ():
                continue
            try:
                value = float(self.probes[0].frame.evaluate(part))
            except (NoExactValue, KeyError):
                continue
            if abs(value) > NOTHING and (_is(ratio, value) or _is(ratio, 1 / value)):
                found.append(part)
        return found[:4]

    def _scaled(self, change: Edit, value: Raw) -> Edit | None:
        """An edit that is right up to a constant: two slips at once."""
        ratio = self.probes[0].ratio(value)
        if ratio is None:
            return None
        for constant, size in RATIOS:
            if _is(ratio, size):
                node = _multiplied(number(constant), change.node)
                if self.verified(node):
                    return edit(node, change.cost + 1.2, *change.parts, "; and ", _factor_words(constant))
        return None

    def _missing_term(self, most: int | None = None) -> Edit | None:
        """A whole term is missing: what is left over is a product of two pieces in sight."""
        first = self.probes[0]
        value = self.value(self.wrong, first)
        if value is None:
            return None
        rest = Probe(first.frame, first.target - value)
        for term in islice(self._terms(), most):
            self.deadline.check()
            guess = self.value(term, first, scalar=True)
            if guess is None:
                continue
            ratio = rest.ratio(guess)
            if ratio is None:
                continue
            for constant, amount in [(Fraction(1), 1.0), *RATIOS]:
                if _is(ratio, amount):
                    size = term if abs(constant) == 1 else times(number(abs(constant)), term)
                    op = "+" if constant > 0 else "-"
                    if self.verified(node := Binary(op, self.wrong, size)):
                        return edit(node, TERM, f"a term is missing: {op} ", size)
        return None

    def _terms(self) -> Iterator[Node]:
        parts = pieces(self.wrong, self.pool, bool(self.shape))
        yield from parts
        for a in parts:
            for b in parts:
                if len(self.shape) == 2:
                    yield call("outer", a, b)
                    yield Binary("@", Transpose(a), b)
                inverse = isinstance(b, Binary) and b.op == "/" and b.left == ONE
                yield over(a, b.right) if inverse and isinstance(b, Binary) else times(a, b)

    def _zero_anyway(self, node: Node) -> bool:
        """Whether a formula is zero even when its lets are not what they are defined as, like 1 - h / h."""
        first = self.probes[0].frame
        values = dict(first.values)
        for name in self.setting.lets:
            if name in values:
                values[name] = self.rng.normal(size=values[name].shape)
        scrambled = Frame(self.setting, first.ops, first.sizes, values, self.deadline)
        scrambled.memo = {k: v for k, v in first.memo.items() if isinstance(v[0], (Derivative, Expectation))}
        value = self.value(node, Probe(scrambled, self.probes[0].target))
        return value is None or bool(np.abs(value).max() < CLOSE * self.probes[0].scale)

    def verified(self, node: Node) -> bool:
        """Whether a candidate says something and has the target's value at every probe."""
        return self.sense.writable(node) and not self.sense.copies(node) and self._everywhere(node)

    def _everywhere(self, node: Node) -> bool:
        return all(self._agrees(node, probe) for probe in self.probes + self._fresh(node))

    def _agrees(self, node: Node, probe: Probe) -> bool:
        value = self.value(node, probe)
        return value is not None and probe.fits(value)

    def _fresh(self, node: Node) -> list[Probe]:
        """More points where steps are in play: floor(2 * x) is 2 * floor(x) + 1 at every second one."""
        stepped = any(kink_of(n) is Kink.JUMP for n in [*walk(self.target), *walk(node)])
        if not stepped or self.fresh:
            return self.fresh
        for _ in range(4 * PROBES):
            sizes = self.drawer.distinct(self.rng, 3)
            probe = self._probe(sizes)
            self.fresh += [] if probe is None else [probe]
        return self.fresh


def _is(ratio: float, value: float) -> bool:
    """Whether a ratio is this number, but for rounding."""
    return abs(ratio - value) < 1e-6 * abs(ratio)


def _sizes_vary(probes: list[Probe]) -> bool:
    """Whether every size has had two values: H / 2 * D must not pass for H because D was always 2."""
    return all(len({probe.frame.sizes[name] for probe in probes}) > 1 for name in probes[0].frame.sizes)


def _multiplied(factor: Node, node: Node) -> Node:
    """A factor before a formula: a sign as a sign, and one part of it below the line."""
    if factor == number(-1):
        return negated(node)
    if isinstance(factor, Binary) and factor.op == "/" and factor.left == ONE:
        return over(node, factor.right)
    return times(factor, node)


def _factor_words(constant: Fraction) -> str:
    if constant == -1:
        return "the sign is wrong"
    if constant.numerator == 1 and constant.denominator > 1:
        return f"a factor {constant.denominator} too many (a factor {constant} is missing)"
    return f"a factor {constant} is missing"


def _pool(setting: Setting, target: Node, wrong: Node, derived: frozenset[str]) -> Pool:
    """What the claim and its surroundings offer for repairs."""
    givens, _ = setting.needed([target, wrong])
    names = {}
    for name in [*setting.givens, *setting.lets]:
        used = setting.uses.get(name, frozenset({name})) & set(setting.givens)
        if "#" in name or name in setting.broken or not used <= set(givens):
            continue
        if name in setting.givens or not any(isinstance(n, Expectation) for n in walk(setting.lets[name].value)):
            names[name] = setting.shapes.names[name]
    sizes = sorted({size for shape in names.values() for size in size_names(shape)})
    formulas: list[tuple[Node, Node]] = [(setting.lets[n].value, Name(n)) for n in names if n in setting.lets]
    formulas += [(target, target), (wrong, wrong)]
    return supplies(names, sizes, formulas, derived)
