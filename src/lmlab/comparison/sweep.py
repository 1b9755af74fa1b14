"""A grid of one model's settings, several seeds a cell: the jobs of a sweep, and the table they fill.

It answers what week2's Table 1 could not, with its one run per cell: which differences are real? A job runs with one
thread and a budget of steps or tokens, so that its numbers are the same whether jobs run one by one, side by side in
processes, or on a cluster.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lmlab.comparison.seeds import mean_and_margin
from lmlab.config import parse_settings
from lmlab.models.registry import model_class
from lmlab.text.files import write_atomically


@dataclass(frozen=True, kw_only=True)
class Job:
    """One cell and seed: all that a process, here or elsewhere, needs to run it."""

    model: str
    corpus: dict[str, Any]  # Corpus.spec()
    settings: dict[str, Any]
    tokenizer: str
    budget: str
    seed: int
    out: str


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One point of the grid over all seeds; the lists run over the seeds that came to an end."""

    settings: dict[str, Any]
    parameters: int
    seeds: list[int]
    perplexity: list[float]  # per token
    bits_per_byte: list[float]
    measured: dict[str, Any]  # the part of the text and how many bytes of it
    errors: list[str]  # of the seeds that failed

    def mean_and_margin(self) -> tuple[float, float]:
        """Mean perplexity and half the width of its 95% interval (Student's t; NaN with one seed)."""
        return mean_and_margin(self.perplexity)


def grid(model: str, over: Sequence[str]) -> list[dict[str, Any]]:
    """The points of a grid written as ["layers=2,4", "context=3,5"], each value typed by the model's config."""
    axes: dict[str, list[Any]] = {}
    for axis in over:
        key, equals, values = (part.strip() for part in axis.partition("="))
        if not equals or not all(value.strip() for value in values.split(",")):
            raise ValueError(f"--over is key=value,value,…, such as layers=2,4; got {axis!r}")
        typed = [parse_settings(model_class(model).Config, [f"{key}={v}"], model)[key] for v in values.split(",")]
        if key in axes or len(set(typed)) < len(typed):
            raise ValueError(f"--over {axis} repeats itself; name every axis once, and every value of it once")
        axes[key] = typed
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def plan(
    model: str,
    corpus: Mapping[str, Any],
    points: Sequence[Mapping[str, Any]],
    *,
    fixed: Mapping[str, Any],
    tokenizer: str,
    budget: str,
    seeds: int,
    folder: Path,
) -> list[Job]:
    """The jobs of a sweep, one a point and seed, each with a folder of its own. fixed: settings that all points share."""
    return [
        Job(
            model=model,
            corpus=dict(corpus),
            settings={**fixed, **point},
            tokenizer=tokenizer,
            budget=budget,
            seed=seed,
            out=str(folder.resolve() / ("-".join(f"{k}={v}" for k, v in point.items()) + f"-seed{seed}")),
        )
        for point in points
        for seed in range(seeds)
    ]


def sweep(
    jobs: Sequence[Job], *, processes: int = 1, ray: str | None = None, told: Callable[[Job, dict[str, Any]], None]
) -> dict[str, dict[str, Any]]:
    """Run every job that has no result yet; returns results by job folder. A job that fails does not stop the others.

    A result is kept in the job's folder. A failure is not: the next sweep of the same folder tries again.
    """
    from lmlab.comparison import runners

    found: dict[str, dict[str, Any]] = {}
    missing = []
    for job in jobs:
        known = _known_result(job)
        if known is None:
            missing.append(job)
        else:
            found[job.out] = known
    runner = runners.on_ray(missing, ray) if ray is not None else runners.in_processes(missing, processes)
    for job, result in runner:
        found[job.out] = result
        if "error" not in result:  # written here, because a cluster's machine may have other disks
            write_atomically(_result_path(job), json.dumps(result, indent=2).encode())
        told(job, result)
    return found


def collect(
    points: Sequence[Mapping[str, Any]], jobs: Sequence[Job], results: Mapping[str, dict[str, Any]]
) -> list[Cell]:
    """One cell a point, from the results of its seeds."""
    cells = []
    for point in points:
        mine = [results[job.out] for job in jobs if job.settings == {**job.settings, **point}]
        good = [r for r in mine if "error" not in r]
        cells.append(
            Cell(
                settings=dict(point),
                parameters=good[0]["parameters"] if good else 0,
                seeds=[r["job"]["seed"] for r in good],
                perplexity=[r["perplexity"] for r in good],
                bits_per_byte=[r["bits_per_byte"] for r in good],
                measured=good[0]["measured"] if good else {},
                errors=[r["error"] for r in mine if "error" in r],
            )
        )
    return cells


def _result_path(job: Job) -> Path:
    return Path(job.out) / "result.json"


def _known_result(job: Job) -> dict[str, Any] | None:
    """The result from before, if it belongs to exactly this job; an unfinished attempt is cleared away."""
    path = _result_path(job)
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        if found["job"] != json.loads(json.dumps(asdict(job))):
            raise ValueError(f"{job.out} holds a result of other settings; name a new folder with --out")
        return found
    folder = Path(job.out)
    for leftover in sorted(folder.rglob("*"), reverse=True) if folder.exists() else ():
        leftover.rmdir() if leftover.is_dir() else leftover.unlink()
    return None
