"""Random sizes and random points. Sizes are drawn distinct; values obey the kinds of their givens exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmlab.checker.limits import MAX_ELEMENTS, Deadline, Refusal
from lmlab.checker.numbers.evaluate import Array, Frame, Ops, evaluate
from lmlab.checker.shapes.infer import infer, size_of, slice_bounds
from lmlab.checker.shapes.setting import Setting, distribution
from lmlab.checker.sizes import Size
from lmlab.checker.tree import Derivative, Given, Index, Kind, Node, Slice, walk

Sizes = dict[str, int]


@dataclass(frozen=True)
class Point:
    """Sizes, and the raw numbers each given is made from. The same point serves every arithmetic."""

    sizes: Sizes
    raw: dict[str, np.ndarray]


class SizeDrawer:
    """Draws values for size names so that different sizes are different numbers, and nothing gets too large."""

    def __init__(self, setting: Setting, nodes: list[Node]) -> None:
        self.givens, self.names = setting.needed(nodes)
        self.setting = setting
        inner = [n for node in nodes for n in walk(node)]
        inner += [n for name in self._lets(nodes) for n in walk(setting.lets[name].value)]
        self.shapes = {infer(node, setting.shapes) for node in inner}
        self.shapes |= {setting.givens[name].shape for name in self.givens}
        self.limits = self._limits(inner)
        self.derivatives = sum(isinstance(node, Derivative) for node in inner)

    def _lets(self, nodes: list[Node]) -> set[str]:
        used: set[str] = set()
        for node in nodes:
            used |= self.setting.depends(node) & set(self.setting.lets)
        return used

    def _limits(self, inner: list[Node]) -> list[Size]:
        """Sizes that must be at least 1: every axis, room for every position, and rows >= columns of orthogonals."""
        wanted = {axis for shape in self.shapes for axis in shape}
        for node in inner:
            if not isinstance(node, Index):
                continue
            for item, axis in zip(node.items, infer(node.operand, self.setting.shapes), strict=False):
                if isinstance(item, Slice):
                    start, stop = slice_bounds(item, axis, self.setting.shapes)
                    wanted |= {stop + -start, axis + -stop + Size.of(1), start + Size.of(1)}
                else:
                    position = size_of(item, self.setting.shapes)
                    wanted.add(axis + position + Size.of(1) if (position.number or 0) < 0 else axis + -position)
        for name in self.givens:
            given = self.setting.givens[name]
            if any(kind.name == "orthogonal" for kind in given.kinds):
                wanted.add(given.shape[0] + -given.shape[1] + Size.of(1))
        return [size for size in wanted if size.number is None]

    def allowed(self, sizes: Sizes) -> bool:
        """Whether every axis has at least one entry and no array has too many."""
        if any(size.value(sizes) < 1 for size in self.limits):
            return False
        for shape in self.shapes:
            count = 1
            for axis in shape:
                count *= axis.value(sizes)
            if count > MAX_ELEMENTS:
                return False
        return True

    def _collisions(self, sizes: Sizes) -> int:
        axes = {axis for shape in self.shapes for axis in shape if len(axis.terms) <= 1} | {Size.of(1)}
        values = [axis.value(sizes) for axis in axes]
        return len(values) - len(set(values))

    def distinct(self, rng: np.random.Generator, top: int) -> Sizes:
        """Sizes of 2 and more, as distinct as can be, up to about `top` (or more when there are many names)."""
        if not self.names:
            if not self.allowed({}):
                raise Refusal(f"an array here has more than {MAX_ELEMENTS} entries; use smaller sizes")
            return {}
        best: tuple[int, Sizes] | None = None
        for attempt in range(60):
            pool = np.arange(2, max(top, len(self.names) + 2) + 1 + attempt // 15)
            values = rng.permutation(pool)[: len(self.names)]
            sizes = {name: int(value) for name, value in zip(self.names, values, strict=True)}
            if not self.allowed(sizes):
                continue
            score = self._collisions(sizes)
            if best is None or score < best[0]:
                best = (score, sizes)
            if score == 0:
                break
        if best is None:
            return self._smallest(rng)
        return best[1]

    def _smallest(self, rng: np.random.Generator) -> Sizes:
        for top in (1, 2, 3, 4, 6, 9):
            for _ in range(40):
                sizes = {name: int(rng.integers(1, top + 1)) for name in self.names}
                if self.allowed(sizes):
                    return sizes
        raise Refusal(
            f"no small sizes fit: an axis would be empty, or an array would have more than {MAX_ELEMENTS} entries"
        )

    def with_ones(self, rng: np.random.Generator) -> list[Sizes]:
        """Extra draws with sizes of 1: all of them, and each alone."""
        draws = [dict.fromkeys(self.names, 1)] if self.names else []
        for name in self.names[:3] if len(self.names) > 1 else []:
            draws.append(self.distinct(rng, 3) | {name: 1})
        return [sizes for sizes in draws if self.allowed(sizes)]


def draw_point(
    setting: Setting,
    givens: list[str],
    sizes: Sizes,
    rng: np.random.Generator,
    style: str = "plain",
    reach: float = 0.0,
) -> Point:
    """Raw numbers for every given. Styles: plain, readable (small whole numbers), zero and equal (all entries),
    wild (all magnitudes), broad (up to `reach` in size), up and down (above half of it, and below minus that)."""
    raw = {}
    for name in givens:
        given = setting.givens[name]
        shape = tuple(axis.value(sizes) for axis in given.shape)
        raw[name] = _raw(given, shape, rng, style, reach)
    return Point(sizes, raw)


def _raw(given: Given, shape: tuple[int, ...], rng: np.random.Generator, style: str, reach: float) -> np.ndarray:
    names = {kind.name for kind in given.kinds}
    random = distribution(given)
    if random is not None:
        if random.name in ("normal",):
            return _reals(shape, rng, "readable" if style == "readable" else "plain", reach)
        return rng.uniform(0.02, 0.98, shape)
    if "onehot" in names:
        rows = rng.integers(0, shape[-1], shape[:-1])
        return np.asarray(np.eye(shape[-1])[rows])
    if "permutation" in names:
        return np.asarray(np.eye(shape[0])[rng.permutation(shape[0])])
    if "binary" in names:
        return rng.integers(0, 2, shape).astype(float)
    if "fraction" in names:
        return _fractions(shape, rng, style)
    if "integer" in names:
        values = rng.integers(1, 6, shape).astype(float)
        if "positive" not in names:
            values = values * rng.choice([-1.0, 1.0], shape)
            if "nonzero" not in names:
                values = np.where(rng.random(shape) < 0.2, 0.0, values)
        return values
    values = _reals(shape, rng, style, reach)
    if names & {"positive", "simplex"}:
        values = np.abs(values) + (0.1 if style == "plain" else 0.0)
        values = np.where(values == 0, 1.0, values)
    if names & {"nonzero", "unit"}:
        values = np.where(np.abs(values) < 0.2, values + 0.5, values)
    if "definite" in names and style == "wild":
        values = np.outer(values[0], values[0])  # nearly singular, for bounds that forget the smallest eigenvalue
    if "symmetric" in names:
        values = np.triu(values) + np.triu(values, 1).T
    return values


def _reals(shape: tuple[int, ...], rng: np.random.Generator, style: str, reach: float) -> np.ndarray:
    if style == "readable":
        return rng.integers(-2, 4, shape).astype(float)
    if style == "zero":
        return np.zeros(shape)
    if style == "equal":
        return np.full(shape, float(rng.choice([1.0, -1.0, 2.0])))
    if style == "broad":
        return rng.uniform(-1, 1, shape) * reach
    if style in ("up", "down"):
        return rng.uniform(0.5, 1, shape) * (reach if style == "up" else -reach)
    if style == "wild":
        if rng.random() < 0.5:
            return rng.uniform(-1, 1, shape) * rng.choice([3.0, 10.0, 30.0, 100.0])
        return rng.normal(0, 10.0 ** rng.uniform(-2, 1), shape) * 10.0 ** rng.uniform(-1, 0.5, shape)
    return rng.normal(0, 1, shape) * rng.uniform(0.6, 1.4)


def _fractions(shape: tuple[int, ...], rng: np.random.Generator, style: str) -> np.ndarray:
    if style == "readable":
        return rng.integers(1, 8, shape) / 8.0
    if style == "wild":
        edge = 10.0 ** rng.uniform(-6, -0.4, shape)
        return np.where(rng.random(shape) < 0.5, edge, 1 - edge)
    return rng.uniform(0.05, 0.95, shape)


def make_frame(setting: Setting, point: Point, ops: Ops, deadline: Deadline) -> Frame:
    """A frame in which every given has its value, projected onto its kind in the frame's own arithmetic."""
    frame = Frame(setting, ops, point.sizes, {}, deadline)
    for name in _in_order(setting, point):
        frame.values[name] = _realise(setting.givens[name], point.raw[name], frame)
    return frame


def _in_order(setting: Setting, point: Point) -> list[str]:
    """Givens whose distributions have parameters come after those parameters (which may be lets of other givens)."""
    plain = [name for name in point.raw if distribution(setting.givens[name]) is None]
    return plain + [name for name in point.raw if distribution(setting.givens[name]) is not None]


def _realise(given: Given, raw: np.ndarray, frame: Frame) -> Array:
    ops = frame.ops
    random = distribution(given)
    if random is not None:
        return _random_value(random, raw, frame)
    value = ops.from_numpy(raw)
    names = {kind.name for kind in given.kinds}
    if "unit" in names:
        return ops.binary("/", value, ops.reduce("norm", value, -1, True))
    if "simplex" in names:
        return ops.binary("/", value, ops.reduce("sum", value, -1, True))
    if "definite" in names:
        shift = ops.binary("*", ops.eye(len(raw)), ops.from_numpy(_lift(raw)))
        return ops.binary("+", ops.binary("@", value, value), shift)
    if "orthogonal" in names:
        return _orthogonal(raw, ops, "symmetric" in names)
    return value


def _lift(raw: np.ndarray) -> np.ndarray:
    """What makes the square of a symmetric matrix definite: no fixed share of it, or a bound by that would hold."""
    size = float(np.mean(raw * raw)) or 1.0
    return np.asarray(size / 2.0 ** (int(1000 * size) % 12))


def _orthogonal(raw: np.ndarray, ops: Ops, symmetric: bool) -> Array:
    """A product of reflections I - 2 v v' / v'v, cut to the shape: orthogonal in any arithmetic."""
    rows, columns = raw.shape
    size = max(rows, columns)
    seeds = np.resize(raw, (size, size)) + np.eye(size) * 0.5
    total = ops.eye(size)
    for i in range(1 if symmetric else size):
        v = seeds[i] if np.any(seeds[i]) else np.ones(size)
        v = v + 0.25 * np.arange(size) * i  # rows may repeat after np.resize
        length = ops.from_numpy(np.asarray(2.0))
        column = ops.from_numpy(v)
        scale = ops.binary("/", length, ops.reduce("sum", ops.binary("*", column, column), None, False))
        reflection = ops.binary("-", ops.eye(size), ops.binary("*", ops.outer(column, column), scale))
        total = ops.binary("@", total, reflection)
    return ops.index(total, (slice(0, rows), slice(0, columns)))


def _random_value(kind: Kind, raw: np.ndarray, frame: Frame) -> Array:
    """A value of a random given, for when it is used outside an expectation."""
    ops = frame.ops
    arguments = [evaluate(node, frame) for node in kind.arguments]
    match kind.name:
        case "normal":
            return ops.binary("+", arguments[0], ops.binary("*", arguments[1], ops.from_numpy(raw)))
        case "uniform" if arguments:
            span = ops.binary("-", arguments[1], arguments[0])
            return ops.binary("+", arguments[0], ops.binary("*", span, ops.from_numpy(raw)))
        case "rademacher":
            return ops.from_numpy(np.where(raw < 0.5, -1.0, 1.0))
        case "bernoulli":
            return ops.from_numpy((raw < 0.5).astype(float))
        case "categorical":
            return ops.from_numpy(np.floor(raw * arguments[0].shape[0]))
        case "onehot":
            places = np.floor(raw[..., 0] * raw.shape[-1]).astype(int)
            return ops.from_numpy(np.eye(raw.shape[-1])[places])
    values = [evaluate(value, frame) for value, _ in kind.outcomes]
    table = ops.stack(values)
    places = np.floor(raw * len(values)).astype(int)
    picked = [ops.index(table, (int(i),)) for i in places.reshape(-1)]
    return ops.reshape(ops.stack(picked), raw.shape)


def elements(shape: Any, sizes: Mapping[str, int]) -> int:
    """How many entries an array of this shape has."""
    count = 1
    for axis in shape:
        count *= axis.value(sizes)
    return count
