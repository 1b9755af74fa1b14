"""Looking hard for a point that breaks an inequality: wild values, and ascent along the gradient of the gap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from lmlab.checker.numbers.autograd import TorchOps
from lmlab.checker.numbers.evaluate import evaluate
from lmlab.checker.numbers.points import Point, Sizes, make_frame
from lmlab.checker.numbers.sides import Sides, referee, satisfies
from lmlab.checker.shapes.setting import distribution

if TYPE_CHECKING:
    from lmlab.checker.sheets.verdict import Judge

WILD = 36
SPECIAL = ("zero", "equal")  # where bounds are often attained
GROWN = 4  # entries more along every axis: bounds that forget a size fail only where it is large
STARTS = 3
STEPS = 40
_FIXED_KINDS = {"integer", "binary", "onehot", "symmetric", "permutation", "orthogonal"}


def search_extremes(judge: Judge) -> Point | None:
    """A point where the inequality fails, confirmed, or None. Keeps the tally of points looked at."""
    best: list[tuple[float, Point]] = []
    for style, sizes in _trials(judge):
        drawn = judge.draw(sizes, style)
        if drawn is None or not drawn[1].defined:
            continue
        point, sides = drawn
        excess = sides.excess(judge.relation)
        judge.tally.points += not sides.vague
        if _broken(judge, point, sides):
            return point
        best.append((excess, point))
    best.sort(key=lambda pair: -pair[0])
    for _, start in best[:STARTS]:
        found = _climb(judge, start)
        if found is not None:
            return found
    return None


def _trials(judge: Judge) -> list[tuple[str, Sizes]]:
    """Styles of points and sizes to try them at."""
    small = [judge.sizes.distinct(judge.rng, top) for top in (3, 3, 5)]
    grown = {name: size + GROWN for name, size in small[0].items()}
    large = [grown] if judge.sizes.allowed(grown) else []
    special = [(style, sizes) for sizes in [small[0], small[2], *large] for style in SPECIAL]
    draws = small + judge.sizes.with_ones(judge.rng)[:1]
    if not judge.varies:
        return [("plain", sizes) for sizes in [*draws, *large]]
    styles = ("plain", "readable", "wild", "wild")
    return special + [(styles[i % 4], draws[i % len(draws)]) for i in range(WILD)]


def _broken(judge: Judge, point: Point, sides: Sides) -> bool:
    strict = judge.relation in ("<", ">")
    excess = sides.excess(judge.relation)
    if excess > sides.tolerance:
        return judge.confirmed(point, sides)
    if (
        strict
        and excess == 0.0
        and max((float(np.abs(r).max()) for r in point.raw.values() if r.size), default=0.0) < 8
    ):
        ruling = referee(judge.setting, judge.left, judge.right, point, judge.deadline.within(0.5))
        return ruling.known and ruling.largest is not None and (ruling.largest == 0 or ruling.smallest == 0)
    return False


def _climb(judge: Judge, start: Point) -> Point | None:
    """Normalised gradient ascent on the largest entry of the gap, over every given that varies continuously."""
    free = [name for name in judge.sizes.givens if _continuous(judge, name)]
    point, step = start, 0.5
    value = judge.sides(point).excess(judge.relation)
    for _ in range(STEPS):
        moved = _ascend(judge, point, free, step)
        if moved is None:
            break
        sides = judge.sides(moved)
        judge.tally.points += 1
        legal = not judge.setting.conditions or satisfies(
            judge.setting, judge.setting.conditions, moved, judge.deadline
        )
        if sides.defined and legal and sides.excess(judge.relation) > value:
            point, value, step = moved, sides.excess(judge.relation), min(step * 1.5, 4.0)
            if _broken(judge, point, sides):
                return point
        else:
            step *= 0.4
            if step < 1e-6:
                break
    return None


def _continuous(judge: Judge, name: str) -> bool:
    given = judge.setting.givens[name]
    return distribution(given) is None and not {kind.name for kind in given.kinds} & _FIXED_KINDS


def _ascend(judge: Judge, point: Point, free: list[str], step: float) -> Point | None:
    tensors = {name: torch.tensor(point.raw[name], dtype=torch.float64, requires_grad=True) for name in free}
    if not tensors or judge.averages:
        return None
    with torch.enable_grad():
        frame = make_frame(judge.setting, Point(point.sizes, {**point.raw, **tensors}), TorchOps(), judge.deadline)  # type: ignore[dict-item]
        frame.graph = True
        gap = evaluate(judge.left, frame) - evaluate(judge.right, frame)
        gap = gap if judge.relation in ("<=", "<") else -gap
        if not gap.requires_grad:
            return None
        slopes = torch.autograd.grad(gap.max(), list(tensors.values()), allow_unused=True)
    length = sum(float((g * g).sum()) for g in slopes if g is not None) ** 0.5
    if not np.isfinite(length) or length == 0:
        return None
    raw = dict(point.raw)
    for name, slope in zip(free, slopes, strict=True):
        if slope is not None:
            raw[name] = _kept(judge, name, point.raw[name] + step * slope.numpy() / length)
    return Point(point.sizes, raw)


def _kept(judge: Judge, name: str, raw: np.ndarray) -> np.ndarray:
    """Numbers that still obey the kind of their given."""
    kinds = {kind.name for kind in judge.setting.givens[name].kinds}
    if "fraction" in kinds:
        return np.clip(raw, 1e-9, 1 - 1e-9)
    if kinds & {"positive", "simplex"}:
        return np.maximum(raw, 1e-9)
    return np.where(raw == 0, 1e-9, raw) if "nonzero" in kinds else raw
