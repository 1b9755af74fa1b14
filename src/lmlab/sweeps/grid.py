"""The points of a grid, and the jobs that it takes: one a point and seed, each with a folder of its own."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmlab.config import Mistake, parse_settings
from lmlab.models.registry import model_class

Point = Mapping[str, Any]  # settings of the model, one value for each axis


@dataclass(frozen=True, kw_only=True)
class Job:
    """One point and seed: all that a process, here or elsewhere, needs to run it."""

    model: str
    corpus: dict[str, Any]  # Corpus.spec()
    settings: dict[str, Any]
    tokenizer: str
    budget: str
    seed: int
    out: str
    device: str = "cpu"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The part of the text and which bytes of it; see `lmlab.measure.Spread`."""

    part: str
    bytes: int
    sha256: str = ""
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a job: either what was measured, or an error."""

    job: Job
    perplexity: float = 0.0  # per token
    bits_per_byte: float = 0.0
    parameters: int = 0
    measured: Measured | None = None
    error: str = ""


def grid(model: str, over: Sequence[str] | Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The points of a grid: {"layers": [2, 4], "context": [3, 5]}, or written as ["layers=2,4", "context=3,5"]."""
    axes: dict[str, list[Any]] = {}
    written = over if not isinstance(over, Mapping) else [f"{k}={','.join(map(str, v))}" for k, v in over.items()]
    for axis in written:
        key, equals, values = (part.strip() for part in axis.partition("="))
        if not equals or not all(value.strip() for value in values.split(",")):
            raise Mistake(f"{{over}} is key=value,value,…, such as layers=2,4; got {axis!r}", over=None)
        typed = [parse_settings(model_class(model).Config, [f"{key}={v}"], model)[key] for v in values.split(",")]
        if key in axes or len(set(typed)) < len(typed):
            raise Mistake(f"{{over}} repeats {axis}; name every axis once, and every value of it once", over=None)
        axes[key] = typed
    if not axes:
        raise Mistake("name at least one axis, such as {over}", over="layers=2,4")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def plan(
    model: str,
    corpus: Mapping[str, Any],
    points: Sequence[Point],
    *,
    fixed: Mapping[str, Any],
    tokenizer: str,
    budget: str,
    seeds: int,
    folder: Path,
    device: str = "cpu",
) -> list[Job]:
    """The jobs of a sweep. fixed: settings that all points share."""
    return [
        Job(
            model=model,
            corpus=dict(corpus),
            settings={**fixed, **point},
            tokenizer=tokenizer,
            budget=budget,
            seed=seed,
            out=str(folder.resolve() / ("-".join(f"{k}={v}" for k, v in point.items()) + f"-seed{seed}")),
            device=device,
        )
        for point in points
        for seed in range(seeds)
    ]
