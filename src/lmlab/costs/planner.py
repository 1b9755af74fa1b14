"""How long a training run takes, on how many devices, and whether it fits: from operations and a rate that was measured.

The rate is that of this machine (`--calibrate` times real steps), one that the user measured, or the share of the peak that
published runs reached; never an assumed efficiency. The logarithms of these shares are taken for a sample from one normal
distribution, and the interval is the prediction interval for one more run. `predicted_from_others` measures how often it
covers: the runs of a group are predicted from those of all other groups.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from lmlab.config import Mistake
from lmlab.costs.devices import DEVICES
from lmlab.costs.published_laws import LAWS
from lmlab.costs.published_runs import RUNS
from lmlab.costs.sharding import Build, activation_bytes, first_that_fits
from lmlab.costs.training_run import Run
from lmlab.measure.student import t_quantile
from lmlab.records import JsonRecord

LEVEL = 0.9  # of intervals


@dataclass(frozen=True)
class Rate:
    """Operations per second of one device, with what is known of its spread."""

    per_second: float
    times: float  # the interval is from 1 / times to times what is planned
    source: str


@dataclass(frozen=True, kw_only=True)
class Plan(JsonRecord):
    """What a run will take."""

    parameters: float
    tokens: float
    operations: float
    loss: dict[str, float]  # nats a token by each published law
    device: str
    devices: int
    rate: float  # operations per second of one device
    rate_source: str
    device_hours: float
    device_hours_interval: tuple[float, float]
    level: float
    hours: float
    sharding: str | None  # None: it is not known how much memory there is
    bytes_per_device: float | None
    activation_bytes: float | None
    notes: tuple[str, ...] = ()


def published_rate(device: str, runs: Sequence[Run] = RUNS) -> Rate:
    """The rate that published runs let one expect of a device: their mean share of its peak.

    The mean is that of logarithms, and all runs count alike. Means for each kind of device gave wider intervals and covered
    no more runs (`bench/bench_published_runs.py`).
    """
    share, times = _middle([run.share for run in runs])
    groups = len({run.group for run in runs})
    source = f"{share:.0%} of its peak, as {len(runs)} published runs of {groups} groups reached on average"
    if DEVICES[device].kind not in {DEVICES[run.device].kind for run in runs}:
        source += f", none of them on a {device}"
    return Rate(share * DEVICES[device].peak, times, source)


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """A published run, predicted from the runs of all other groups."""

    run: Run
    hours: float
    interval: tuple[float, float]

    @property
    def error(self) -> float:
        """The predicted hours over the published ones, less one."""
        return self.hours / self.run.hours - 1

    @property
    def covered(self) -> bool:
        """Whether the published hours lie in the interval."""
        return self.interval[0] <= self.run.hours <= self.interval[1]


def predicted_from_others(runs: Sequence[Run] = RUNS) -> list[Predicted]:
    """Predict each run from the runs of all groups but its own."""
    found = []
    for run in runs:
        rate = published_rate(run.device, [other for other in runs if other.group != run.group])
        hours = run.operations / rate.per_second / 3600
        found.append(Predicted(run=run, hours=hours, interval=(hours / rate.times, hours * rate.times)))
    return found


def timed_rate(per_second: Sequence[float], source: str) -> Rate:
    """The rate of speeds that were reached one after the other."""
    return Rate(*_middle(per_second), source)


def _middle(reached: Sequence[float]) -> tuple[float, float]:
    """The geometric mean of what was reached, and the factor by which the next may lie above or below it."""
    logs = [math.log(one) for one in reached]
    spread = statistics.stdev(logs) * math.sqrt(1 + 1 / len(logs))
    return math.exp(statistics.fmean(logs)), math.exp(t_quantile(len(logs) - 1, LEVEL) * spread)


def plan_of(
    *,
    build: Build,
    tokens: float,
    operations: float,
    rate: Rate,
    device: str,
    devices: int,
    memory: float | None,
    notes: Sequence[str] = (),
) -> Plan:
    """Time, device-hours and memory of so many operations on these devices."""
    for name, value in (("parameters", build.parameters), ("tokens", tokens), ("operations", operations)):
        if not 0 < value < math.inf:
            raise Mistake(f"{name} must be a number above 0; got {value:g}", code="plan-value-not-positive")
    way, need = (None, None) if memory is None else first_that_fits(build, devices, memory)
    hours = operations / rate.per_second / 3600
    said = (*notes, *(_assumed(build) if build.assumed else ()))
    return Plan(
        parameters=build.parameters,
        tokens=tokens,
        operations=operations,
        loss={name: law.loss(build.parameters, tokens) for name, law in LAWS.items()},
        device=device,
        devices=devices,
        rate=rate.per_second,
        rate_source=rate.source,
        device_hours=hours,
        device_hours_interval=(hours / rate.times, hours * rate.times),
        level=LEVEL,
        hours=hours / devices,
        sharding=way,
        bytes_per_device=need,
        activation_bytes=None if memory is None else activation_bytes(build),
        notes=said,
    )


def _assumed(build: Build) -> tuple[str]:
    return (f"built as usual: {build.layers} layers of width {build.width}, sequences of {build.length} tokens",)
