"""Time several pieces of work in turns, so that a busy moment of the machine meets all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch

Work = Callable[[], object]


def in_turns(
    works: Mapping[str, Work],
    *,
    rounds: int,
    cold: int = 1,
    repeats: int = 1,
    limit_s: float = 60.0,
    device: str = "cpu",
) -> dict[str, list[float]]:
    """Return the seconds of each work in each round.

    Args:
        works: What is timed, by name; in each round every work runs, one after the other.
        rounds: How many rounds are timed at most.
        cold: How many rounds run first and do not count: they find memory and choose kernels.
        repeats: How many times a work runs in one round; the seconds are of one.
        limit_s: No round begins after so many seconds, except that there is always one.
        device: "cuda" waits for the GPU before and after each work.
    """
    for _ in range(cold):
        for work in works.values():
            work()
    times: dict[str, list[float]] = {name: [] for name in works}
    began = time.perf_counter()
    for number in range(rounds):
        if number and time.perf_counter() - began > limit_s:
            break
        for name, work in works.items():
            times[name].append(seconds_of(work, repeats, device))
    return times


def seconds_of(work: Work, repeats: int = 1, device: str = "cpu") -> float:
    """Return the seconds that one run of the work takes, on average over `repeats`."""
    if device == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(repeats):
        work()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - started) / repeats


def milliseconds(seconds: list[float]) -> list[float]:
    """Return the same times in milliseconds."""
    return [1e3 * s for s in seconds]
