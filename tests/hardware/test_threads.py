"""One guard changes the threads of a run whose steps take much longer than planned, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from lmlab.hardware import openmp, threads
from lmlab.hardware.threads import LONG_ENOUGH_S, SELDOM_S, Guard, Trial


def run(guard: Guard, seconds: Callable[[float, int], float], until_s: float) -> list[tuple[float, int]]:
    """When steps of 100 tokens took place and with how many threads; such a step takes `seconds` with so many."""
    clock, used = 0.0, []
    while clock < until_s:
        threads = guard.next_step()
        took = seconds(clock, threads)
        guard.took(100, took)
        clock += took
        used.append((clock, threads))
    return used


def planned(most: int, threads: int, step_s: float) -> Guard:
    return Guard(most, threads, 100 / step_s)


def test_a_run_as_fast_as_planned_keeps_its_threads() -> None:
    noise = [1.0, 1.15, 0.95, 1.05, 1.6, 1.0, 0.9]
    used = run(planned(2, 2, 0.1), lambda clock, n: 0.1 * noise[int(clock * 10) % 7], 300)
    assert {threads for _, threads in used} == {2}


def test_a_slow_moment_changes_nothing() -> None:
    used = run(planned(2, 2, 0.1), lambda clock, n: 0.4 if 30 <= clock < 34 else 0.1, 100)
    assert {threads for _, threads in used} == {2}


def test_when_a_busy_process_comes_threads_are_given_up_and_taken_back_when_it_goes() -> None:
    def seconds(clock: float, n: int) -> float:
        busy = 30 <= clock < 120
        return 0.1 * ({1: 1.9, 2: 4.0}[n] if busy else {1: 1.8, 2: 1.0}[n])

    used = run(planned(2, 2, 0.1), seconds, 320)
    during = [n for at, n in used if 30 + 3 * LONG_ENOUGH_S < at < 120]
    after = [n for at, n in used if at > 120 + SELDOM_S + 5]
    assert during.count(1) > 0.85 * len(during)
    assert after.count(2) > 0.95 * len(after)


def test_while_steps_stay_slow_whatever_is_tried_trials_are_seldom() -> None:
    used = run(planned(2, 2, 0.1), lambda clock, n: {1: 0.5, 2: 0.2}[n], 1000)
    assert [n for _, n in used].count(1) < 0.02 * len(used)


def test_of_many_threads_the_fastest_number_is_found_in_several_trials() -> None:
    speed = {1: 1.0, 2: 1.9, 4: 3.0, 8: 2.5, 16: 1.2}
    for start in (1, 16):
        used = run(planned(16, start, 0.2 / 5), lambda clock, n: 0.2 / speed[n], 400)
        assert [n for _, n in used[-200:]].count(4) > 180


def test_a_lucky_step_does_not_decide_a_trial_and_would_if_the_fastest_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept() -> int:
        trial, took = Trial([2, 1]), {2: iter([0.1] * 3), 1: iter([0.12, 0.05, 0.12])}
        while not trial.is_over:
            trial.took(next(took[trial.next_step()]))
        return trial.fastest

    assert kept() == 2
    monkeypatch.setattr(threads.statistics, "median", min)
    assert kept() == 1


def test_a_number_of_threads_that_is_far_slower_is_tried_once() -> None:
    trial, tried = Trial([16, 8, 4, 2, 1]), []
    while not trial.is_over:
        tried.append(trial.next_step())
        trial.took({1: 0.8, 2: 0.4, 4: 0.25, 8: 0.2, 16: 0.9}[tried[-1]])
    assert tried[:5] == [16, 8, 4, 2, 1]
    assert (tried.count(1), tried.count(2), tried.count(4)) == (1, 1, 3)
    assert trial.fastest == 8


def test_scoring_takes_the_threads_that_are_fastest_now_and_gives_them_back(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(2)
    monkeypatch.setattr(threads, "threads_now", lambda most: most - 1)
    with threads.fastest_threads():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_one_thread_is_one_for_kernels_that_do_not_listen_to_torch() -> None:
    """oneDNN's on ARM ask for as many as the process began with; OpenMP then has none to give."""
    if (found := openmp._openmp()) is None:
        pytest.skip("torch brings no libgomp here")
    library, levels = found
    with threads.using_threads(torch.device("cpu"), 1):
        assert library.omp_get_max_active_levels() == 0
        with threads.using_threads(torch.device("cpu"), 2):
            assert library.omp_get_max_active_levels() == levels > 0
    assert library.omp_get_max_active_levels() == levels


def test_threads_that_are_fast_for_a_moment_and_slow_on_the_whole_are_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two threads beside busy processes: once both cores were free."""
    tries = {1: iter([30.0, 29.0, 31.0]), 2: iter([5.0, 50.0, 4.0])}
    monkeypatch.setattr(threads.rates, "product_flops", lambda *_: next(tries[torch.get_num_threads()]))
    assert threads.threads_now(2) == 1


def test_a_single_disturbance_does_not_take_a_thread_away(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = {1: iter([30.0, 29.0, 31.0]), 2: iter([5.0, 50.0, 51.0])}
    monkeypatch.setattr(threads.rates, "product_flops", lambda *_: next(tries[torch.get_num_threads()]))
    assert threads.threads_now(2) == 2
