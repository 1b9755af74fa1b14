"""Does the interval of `lmlab plan` cover? Each published run is predicted from the runs of all other groups.

Prints the table of docs/costs.md, how many runs lie in their 90% intervals and how wide these are. Beside it stand two other
ways to make the interval: a mean for each kind of device, and a variance between groups beside that within a group.

    python bench/bench_published_runs.py
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence

from lmlab.costs.devices import DEVICES
from lmlab.costs.planner import LEVEL, predicted_from_others
from lmlab.costs.published_runs import RUNS
from lmlab.costs.training_run import Run
from lmlab.measure.student import t_quantile

LEAST_GROUPS = 3  # with runs on a kind of device, for a mean of its own
Interval = tuple[float, float]  # of the logarithm of the share of the peak: its middle, and half its width


def all_alike(runs: Sequence[Run], kind: str) -> Interval:
    """What `lmlab plan` does: one mean and one variance of all runs."""
    logs = [math.log(run.share) for run in runs]
    half = t_quantile(len(logs) - 1, LEVEL) * statistics.stdev(logs) * math.sqrt(1 + 1 / len(logs))
    return statistics.fmean(logs), half


def by_device(runs: Sequence[Run], kind: str) -> Interval:
    """A mean for each kind of device that several groups used; one variance around these means."""
    groups, logs = defaultdict(set), defaultdict(list)
    for run in runs:
        groups[DEVICES[run.device].kind].add(run.group)
        logs[DEVICES[run.device].kind].append(math.log(run.share))
    logs = {name: found for name, found in logs.items() if len(groups[name]) >= LEAST_GROUPS}
    if kind not in logs:
        return all_alike(runs, kind)
    free = sum(len(found) - 1 for found in logs.values())
    variance = sum(statistics.variance(found) * (len(found) - 1) for found in logs.values()) / free
    return statistics.fmean(logs[kind]), t_quantile(free, LEVEL) * math.sqrt(variance * (1 + 1 / len(logs[kind])))


def by_group(runs: Sequence[Run], kind: str) -> Interval:
    """A variance between groups and one within, by the analysis of variance; the next run is of another group."""
    logs = defaultdict(list)
    for run in runs:
        logs[run.group].append(math.log(run.share))
    count, groups = len(runs), len(logs)
    mean = statistics.fmean(x for found in logs.values() for x in found)
    within = sum(sum((x - statistics.fmean(f)) ** 2 for x in f) for f in logs.values()) / (count - groups)
    among = sum(len(f) * (statistics.fmean(f) - mean) ** 2 for f in logs.values()) / (groups - 1)
    size = (count - sum(len(f) ** 2 for f in logs.values()) / count) / (groups - 1)
    between = max(0.0, (among - within) / size)
    weights = {name: 1 / (between + within / len(f)) for name, f in logs.items()}
    middle = sum(weights[name] * statistics.fmean(f) for name, f in logs.items()) / sum(weights.values())
    return middle, t_quantile(count - 1, LEVEL) * math.sqrt(between + within + 1 / sum(weights.values()))


def judged(way: Callable[[Sequence[Run], str], Interval]) -> str:
    """Runs in the intervals of a way that were made without their group, and the widths of these."""
    inside, widths = 0, []
    for run in RUNS:
        others = [other for other in RUNS if other.group != run.group]
        middle, half = way(others, DEVICES[run.device].kind)
        inside += abs(math.log(run.share) - middle) <= half
        widths.append(math.exp(2 * half))
    return f"{inside} of {len(RUNS)} covered, high over low {min(widths):.2f} to {max(widths):.2f}"


def main() -> None:
    print("| run | group | device | hours | said without its group | error | what the hours include |")
    print("| --- | --- | --- | ---: | ---: | ---: | --- |")
    for found in predicted_from_others():
        run, (low, high) = found.run, found.interval
        row = f"| {run.name} | {run.group} | {run.device} | {run.hours:,.0f} | {low:,.0f} to {high:,.0f} |"
        print(f"{row} {found.error:+.0%} | {run.includes} |")
    outside = [found.run.name for found in predicted_from_others() if not found.covered]
    print(f"\noutside: {', '.join(outside)}")
    for kind in ("A100", "H100"):
        shares = [run.share for run in RUNS if DEVICES[run.device].kind == kind]
        print(f"{kind}: {len(shares)} runs, {statistics.geometric_mean(shares):.0%} of the peak")
    for way in (all_alike, by_device, by_group):
        print(f"{way.__name__}: {judged(way)}")
    print("\nsources:")
    for source in dict.fromkeys(run.source for run in RUNS):
        print(f"- {', '.join(run.name for run in RUNS if run.source == source)}: {source}")


if __name__ == "__main__":
    main()
