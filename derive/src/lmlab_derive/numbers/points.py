"""Random points: raw numbers for every given, and values made of them that obey the kinds of their givens exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmlab_derive.distributions import DISTRIBUTIONS, is_finite, random_kind
from lmlab_derive.functions.arrays import outer, transposed
from lmlab_derive.functions.record import Array
from lmlab_derive.functions.reductions import NORM, SUM
from lmlab_derive.limits import Deadline
from lmlab_derive.numbers.evaluate import Frame, Ops
from lmlab_derive.numbers.ranges import ranges
from lmlab_derive.numbers.size_draws import Sizes
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.tree import Given, Kind

Raw = np.ndarray[Any, np.dtype[np.float64]]


SPECK = 1e-6  # what stands for 0 in a pattern of numbers that are positive
LARGEST_WHOLE = 1e3  # of whole numbers that are drawn: sums may have as many terms
APART = (0.0, 0.0, -6.0, -3.0, 3.0)  # the magnitudes of numbers by themselves beside a pattern


def _filled(shape: tuple[int, ...], rest: float, first: float, rows: bool) -> Raw:
    """All entries alike but for the first one, of all or of each row."""
    found = np.full(shape, rest)
    found.reshape((-1, shape[-1]) if rows else (1, -1))[:, :1] = first
    return found


def _along(shape: tuple[int, ...], values: Callable[[Raw], Raw]) -> Raw:
    """Numbers that depend on the place along the last axis."""
    return np.broadcast_to(values(np.arange(shape[-1], dtype=float)), shape).copy()


def _identity(shape: tuple[int, ...]) -> Raw:
    return np.broadcast_to(np.eye(shape[-2], shape[-1]), shape).copy() if len(shape) > 1 else np.ones(shape)


def _signs(shape: tuple[int, ...]) -> Raw:
    """A matrix of rank one, of both signs."""
    return np.asarray(np.prod(np.stack([(-1.0) ** place for place in np.indices(shape)]), axis=0))


# Where bounds are attained: at arrays with one entry that counts, at those alike, of two values, in order, ...
PATTERNS: dict[str, Callable[[tuple[int, ...]], Raw]] = {
    "spike": lambda shape: _filled(shape, 0.0, 1.0, rows=False),
    "spikes": lambda shape: _filled(shape, 0.0, 1.0, rows=True),
    "hole": lambda shape: _filled(shape, 1.0, 0.0, rows=True),
    "outlier": lambda shape: _filled(shape, 1.0, 1e3, rows=False),
    "alike": lambda shape: np.ones(shape),
    "identity": _identity,
    "halves": lambda shape: _along(shape, lambda place: np.where(place < len(place) / 2, 1.0, 0.0)),
    "signs": _signs,
    "ordered": lambda shape: _along(shape, lambda place: (place + 1) / len(place)),
    "powers": lambda shape: _along(shape, lambda place: 2.0 ** -np.minimum(place, 60)),
}


@dataclass(frozen=True)
class Point:
    """Sizes, and the raw numbers each given is made from. The same point serves every arithmetic."""

    sizes: Sizes
    raw: Mapping[str, Any]

    def having(self, raw: Mapping[str, Any]) -> Point:
        """The point with other raw numbers of some givens."""
        return Point(self.sizes, {**self.raw, **{name: np.asarray(value) for name, value in raw.items()}})


def draw_point(
    setting: Setting,
    givens: list[str],
    sizes: Sizes,
    rng: np.random.Generator,
    style: str = "plain",
    reach: float = 0.0,
) -> Point:
    """Raw numbers for every given, inside of what conditions leave to it.

    Styles: plain, readable (small whole numbers), zero and equal (all entries), wild (all magnitudes), broad (up to
    `reach` in size), up and down (above half of it, and below minus that), and the `PATTERNS`, of that size.
    """
    limits = setting.kept("ranges", ranges)
    raw = {}
    for name in givens:
        given = setting.givens[name]
        shape = tuple(axis.value(sizes) for axis in given.shape)
        raw[name] = _raw(given, shape, rng, style, reach)
        if name in limits:
            raw[name] = limits[name].moved(raw[name], rng, whole="integer" in setting.kinds(name))
    return Point(sizes, raw)


def _raw(given: Given, shape: tuple[int, ...], rng: np.random.Generator, style: str, reach: float) -> Raw:
    names = {kind.name for kind in given.kinds}
    random = random_kind(given)
    if random is not None:
        if random.name == "normal" and style == "readable":
            return _reals(shape, rng, style, reach)
        drawn: Raw = DISTRIBUTIONS[random.name].draw(rng, shape)
        return drawn
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
        far = {"wild": 100, "broad": int(reach)}.get(style, 0) if shape else 0  # numbers by themselves are swept
        values = rng.integers(1, max(6, far), shape).astype(float)
        if style in ("up", "down") and reach > 1:
            values = np.ceil(rng.uniform(0.5, 1, shape) * min(reach, LARGEST_WHOLE))
        if style in PATTERNS and shape:
            values = np.round(PATTERNS[style](shape) * max(reach, 2.0)) + float(bool(names & {"positive", "nonzero"}))
            return np.asarray(values)
        if "positive" not in names:
            values = values * rng.choice([-1.0, 1.0], shape)
            if "nonzero" not in names:
                values = np.where(rng.random(shape) < 0.2, 0.0, values)
        return values
    values = _reals(shape, rng, style, reach)
    if names & {"positive", "simplex"}:
        values = np.abs(values) + (0.1 if style == "plain" else 0.0)
        values = np.where(values == 0, SPECK * reach if style in PATTERNS else 1.0, values)
    if style in PATTERNS and names & {"nonzero", "unit"}:
        bare = (
            values == 0
            if "nonzero" in names
            else np.all(values == 0, axis=-1, keepdims=True) & (np.arange(shape[-1]) == 0)
        )
        values = np.where(bare, SPECK * reach if "nonzero" in names else 1.0, values)
    elif names & {"nonzero", "unit"}:
        values = np.where(np.abs(values) < 0.2, values + 0.5, values)
    if "definite" in names and style == "wild":
        values = np.outer(values[0], values[0])  # nearly singular, for bounds that forget the smallest eigenvalue
    if "symmetric" in names:
        values = np.triu(values) + np.triu(values, 1).T
    return values


def _reals(shape: tuple[int, ...], rng: np.random.Generator, style: str, reach: float) -> Raw:
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
    if style in PATTERNS:
        if not shape:
            return np.asarray(float(rng.choice([-1.0, 1.0])) * reach * 10.0 ** float(rng.choice(APART)))
        return PATTERNS[style](shape) * reach
    if style == "wild":
        if rng.random() < 0.5:
            return rng.uniform(-1, 1, shape) * float(rng.choice([3.0, 10.0, 30.0, 100.0]))
        return rng.normal(0, 10.0 ** rng.uniform(-2, 1), shape) * 10.0 ** rng.uniform(-1, 0.5, shape)
    return rng.normal(0, 1, shape) * rng.uniform(0.6, 1.4)


def _fractions(shape: tuple[int, ...], rng: np.random.Generator, style: str) -> Raw:
    if style in PATTERNS and shape:
        return np.clip(np.abs(PATTERNS[style](shape)), SPECK, 1 - SPECK)
    if style in ("zero", "equal"):
        return np.full(shape, 0.5)  # where bounds of chances are attained
    if style == "readable":
        return rng.integers(1, 8, shape) / 8.0
    if style == "wild":
        edge = 10.0 ** rng.uniform(-6, -0.4, shape)
        return np.where(rng.random(shape) < 0.5, edge, 1 - edge)
    return rng.uniform(0.05, 0.95, shape)


def corner_point(
    setting: Setting, point: Point, rng: np.random.Generator, rest: float, apart: int, many: bool
) -> Point:
    """The point with every simplex or unit row moved next to a corner: all weight but `rest` on one entry.

    Row r of the k-th such given has it on entry (r + k) * apart: on the same for all, or on different ones. If `many`,
    on some entries at random, each with the same share.
    """
    raw = dict(point.raw)
    for k, name in enumerate(with_corners(setting, list(raw))):
        rows = np.abs(raw[name]).reshape(-1, raw[name].shape[-1])
        width = rows.shape[1]
        chosen = np.eye(width)[(np.arange(len(rows)) + k) * apart % width]
        if many:
            chosen = np.maximum(chosen, rng.integers(0, 2, rows.shape))
        raw[name] = np.where(chosen > 0, 1.0, rest * (1 + rng.random(rows.shape))).reshape(raw[name].shape)
    return Point(point.sizes, raw)


def with_corners(setting: Setting, names: list[str]) -> list[str]:
    """The givens whose rows have corners, where bounds by entropies and distances are attained."""
    return [n for n in names if setting.kinds(n) & {"simplex", "unit"} and setting.distribution(n) is None]


def make_frame(setting: Setting, point: Point, ops: Ops, deadline: Deadline) -> Frame:
    """A frame in which every given has its value, projected onto its kind in the frame's own arithmetic."""
    frame = Frame(setting, ops, point.sizes, {}, deadline)
    # The parameters of a distribution may be lets of other givens, so these come first.
    for name in sorted(point.raw, key=lambda name: setting.distribution(name) is not None):
        frame.values[name] = _realise(setting.givens[name], point.raw[name], frame)
    return frame


def _realise(given: Given, raw: Raw, frame: Frame) -> Array:
    ops = frame.ops
    random = random_kind(given)
    if random is not None:
        return _random_value(given.name, random, raw, frame)
    value = ops.from_numpy(raw)
    names = {kind.name for kind in given.kinds}
    if names & {"unit", "simplex"}:
        whole = NORM if "unit" in names else SUM
        return ops.divide(value, whole.of(ops, value, -1, True))
    if "definite" in names:
        return value @ value + ops.eye(len(raw)) * ops.from_numpy(_lift(raw))
    if "orthogonal" in names:
        return _orthogonal(raw, ops, "symmetric" in names)
    return value


def _lift(raw: Raw) -> Raw:
    """What makes the square of a symmetric matrix definite: no fixed share of it, or a bound by that would hold."""
    size = float(np.mean(raw * raw))
    if not size:
        return np.asarray(1.0)  # the identity, where many bounds are attained
    return np.asarray(size / 2.0 ** (int(1000 * size) % 12))


def _orthogonal(raw: Raw, ops: Ops, symmetric: bool) -> Array:
    """A product of reflections I - 2 v v' / v'v, cut to the shape: orthogonal in any arithmetic."""
    rows, columns = raw.shape
    size = max(rows, columns)
    if not raw.any():
        return ops.eye(size)[:rows, :columns]
    seeds = np.resize(raw, (size, size)) + np.eye(size) * 0.5
    total = ops.eye(size)
    for i in range(size - int(raw[0, 0] < 0)):  # determinants of both signs
        v = seeds[i] if np.any(seeds[i]) else np.ones(size)
        v = v + 0.25 * np.arange(size) * i  # rows may repeat after np.resize
        column = ops.from_numpy(v)
        scale = ops.divide(ops.from_numpy(np.asarray(2.0)), SUM.of(ops, column * column, None, False))
        total = total @ (ops.eye(size) - outer(ops, column, column) * scale)
    if symmetric:  # any signs, in a basis turned by what was found
        total = total @ (ops.eye(size) * ops.from_numpy(np.where(np.diag(raw) < 0, -1.0, 1.0))) @ transposed(ops, total)
    return total[:rows, :columns]


def _random_value(name: str, kind: Kind, raw: Raw, frame: Frame) -> Array:
    """A value of a random given, for when it is used outside an expectation."""
    ops = frame.ops
    arguments = [frame.evaluate(node) for node in kind.arguments]
    if not is_finite(kind):
        return frame.placed(name, ops.from_numpy(raw), arguments)
    match kind.name:
        case "rademacher":
            return ops.from_numpy(np.where(raw < 0.5, -1.0, 1.0))
        case "bernoulli":
            return ops.from_numpy((raw < 0.5).astype(float))
        case "categorical":
            return ops.from_numpy(np.floor(raw * arguments[0].shape[0]))
        case "onehot":
            places = np.floor(raw[..., 0] * raw.shape[-1]).astype(int)
            return ops.from_numpy(np.eye(raw.shape[-1])[places])
    values = [frame.evaluate(value) for value, _ in kind.outcomes]
    picked = [values[int(i * len(values))] for i in raw.reshape(-1)]
    return ops.library.stack(picked).reshape(raw.shape)
