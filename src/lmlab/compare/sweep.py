"""A grid of one model's settings, several seeds a cell: which differences are real?

It answers what week2's Table 1 could not, with its one run per cell. A cell runs with one thread and a budget of steps, so
that its numbers are the same whether cells run one by one, side by side in processes, or on a cluster.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
    """The results of one point of the grid over all seeds."""

    settings: dict[str, Any]
    parameters: int
    perplexity: list[float]  # per token, one a seed
    bits_per_byte: list[float]
    errors: list[str]

    def mean_and_margin(self) -> tuple[float, float]:
        """Mean perplexity and half the width of its 95% interval (Student's t; NaN with one seed)."""
        return mean_and_margin(self.perplexity)


def grid(model: str, over: Sequence[str]) -> list[dict[str, Any]]:
    """The points of a grid written as ["layers=2,4", "context=3,5"], each value typed by the model's config."""
    axes = []
    for axis in over:
        key, equals, values = axis.partition("=")
        if not equals or not values:
            raise ValueError(f"--over is key=value,value,…, such as layers=2,4; got {axis!r}")
        typed = [parse_settings(model_class(model).Config, [f"{key}={value}"], model) for value in values.split(",")]
        axes.append(typed)
    return [{k: v for point in points for k, v in point.items()} for points in itertools.product(*axes)]


def sweep(
    jobs: Sequence[Job], *, processes: int = 1, ray: str | None = None, told: Callable[[Job, dict[str, Any]], None]
) -> dict[str, dict[str, Any]]:
    """Run every job that has no result yet; returns results by job folder. A job that fails does not stop the others."""
    found: dict[str, dict[str, Any]] = {}
    missing = []
    for job in jobs:
        known = _known_result(job)
        if known is None:
            missing.append(job)
        else:
            found[job.out] = known
    runner = _on_ray(missing, ray) if ray is not None else _in_processes(missing, processes)
    for job, result in runner:
        found[job.out] = result
        told(job, result)
    return found


def collect(
    points: Sequence[Mapping[str, Any]], jobs: Sequence[Job], results: Mapping[str, dict[str, Any]]
) -> list[Cell]:
    """One cell a point, from the results of its seeds."""
    cells = []
    for point in points:
        mine = [
            results[job.out] for job in jobs if job.settings == dict(point) | _fixed(job, point) and job.out in results
        ]
        good = [r for r in mine if "error" not in r]
        cells.append(
            Cell(
                settings=dict(point),
                parameters=good[0]["parameters"] if good else 0,
                perplexity=[r["perplexity"] for r in good],
                bits_per_byte=[r["bits_per_byte"] for r in good],
                errors=[r["error"] for r in mine if "error" in r],
            )
        )
    return cells


def _fixed(job: Job, point: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a job that are not on an axis."""
    return {k: v for k, v in job.settings.items() if k not in point}


def differences(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """For cells that differ in one setting: the mean difference of perplexity, its interval over seeds, and if it is real.

    Seeds are paired: the same seed draws the same batches in both cells.
    """
    found = []
    for a, b in itertools.combinations(cells, 2):
        changed = [k for k in a.settings if a.settings[k] != b.settings[k]]
        if len(changed) != 1 or len(a.perplexity) != len(b.perplexity) or not a.perplexity:
            continue
        mean, margin = mean_and_margin([y - x for x, y in zip(a.perplexity, b.perplexity, strict=True)])
        real = math.isfinite(margin) and abs(mean) > margin
        found.append({"from": a.settings, "to": b.settings, "difference": mean, "margin": margin, "real": real})
    return found


def mean_and_margin(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half-width of the 95% interval by Student's t."""
    if not values:
        return math.nan, math.nan
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, math.nan
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))
    return mean, student_t(len(values) - 1) * spread


def student_t(freedom: int, level: float = 0.95) -> float:
    """The quantile t with P(|T| < t) = level, by bisection on the distribution function."""
    low, high = 0.0, 700.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_within(middle, freedom) < level else (low, middle)
    return (low + high) / 2


def _t_within(t: float, freedom: int) -> float:
    """P(|T| < t) for a whole number of degrees of freedom (the finite trigonometric sums)."""
    theta = math.atan2(t, math.sqrt(freedom))
    term, total = math.cos(theta) if freedom % 2 else 1.0, 0.0
    for k in range(1 if freedom % 2 else 0, freedom - 1, 2):
        total += term
        term *= math.cos(theta) ** 2 * (k + 1) / (k + 2)
    if freedom % 2:
        return 2 / math.pi * (theta + math.sin(theta) * total)
    return math.sin(theta) * total


def run_job(job: Job) -> dict[str, Any]:
    """Train and measure one job in this process; the result is also written beside the run."""
    import torch

    from lmlab.learn.train import train
    from lmlab.measure import evaluate
    from lmlab.text.corpus import Corpus

    torch.set_num_threads(1)  # sums in the same order everywhere
    corpus = Corpus.from_spec(job.corpus)
    out = Path(job.out)
    run = train(
        job.model,
        corpus,
        out=out / "run",
        tokenizer=job.tokenizer,
        budget=job.budget,
        seed=job.seed,
        settings=job.settings,
        device="cpu",
    )
    part = corpus.test if corpus.test.bytes else corpus.valid
    result = evaluate(run.model, part, name=corpus.name, seed=job.seed)
    found = {
        "job": asdict(job),
        "perplexity": result.perplexity["token"],
        "bits_per_byte": result.bits_per_byte,
        "parameters": run.model.parameters_count,
        "certified": result.certificate.passed,
    }
    write_atomically(out / "result.json", json.dumps(found, indent=2).encode())
    return found


def _attempt(job: Job) -> dict[str, Any]:
    """`run_job`, with a failure turned into a result that says so."""
    try:
        return run_job(job)
    except Exception as error:  # one cell must not end the sweep
        return {"job": asdict(job), "error": " ".join(f"{type(error).__name__}: {error}".split())}


def _known_result(job: Job) -> dict[str, Any] | None:
    """The result from before, if it belongs to exactly this job; an unfinished attempt is cleared away."""
    path = Path(job.out) / "result.json"
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        if found["job"] != json.loads(json.dumps(asdict(job))):
            raise ValueError(f"{job.out} holds a result of other settings; name a new folder with --out")
        return found
    folder = Path(job.out)
    for leftover in sorted(folder.rglob("*"), reverse=True) if folder.exists() else ():
        leftover.rmdir() if leftover.is_dir() else leftover.unlink()
    return None


def _in_processes(jobs: Sequence[Job], processes: int) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Here, one by one or side by side. Fresh processes, because a thread count cannot be taken back."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    with ProcessPoolExecutor(max(1, processes), mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(_attempt, job): job for job in jobs}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def _on_ray(jobs: Sequence[Job], address: str) -> Iterator[tuple[Job, dict[str, Any]]]:
    """On a Ray cluster ("local": one started here for the purpose)."""
    try:
        import ray
    except ImportError:
        raise ValueError("--ray needs the ray package; install it with: pip install 'lmlab[ray]'") from None
    ray.init(address=None if address == "local" else address, log_to_driver=False)
    try:
        remote = ray.remote(num_cpus=1)(_attempt)
        waiting = {remote.remote(job): job for job in jobs}
        while waiting:
            (done,), _ = ray.wait(list(waiting))
            yield waiting.pop(done), ray.get(done)
    finally:
        ray.shutdown()
