"""The number of threads of a long run follows the machine: a busy process comes and goes, and no step is wasted."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lmlab.config import Note
from lmlab.hardware import openmp, threads
from lmlab.hardware.threads import LOOK_AGAIN_S, LOOKED_AT_S, KeptWaiting, Threads, saying_who_waits


def run(threads: Threads, seconds: Callable[[float, int], float], until_s: float) -> list[int]:
    """Numbers of threads of the steps that fit in, when a step at a time with so many threads takes `seconds`."""
    clock, used = 0.0, []
    while clock < until_s:
        chosen = threads.next_step()
        took = seconds(clock, chosen)
        threads.took(took)
        clock += took
        used.append(chosen)
    return used


def test_on_a_quiet_machine_all_threads_are_used_nearly_always() -> None:
    used = run(Threads(2, 2), lambda clock, n: 0.1 * {1: 1.8, 2: 1.0}[n], 180)
    assert used.count(2) > 0.97 * len(used)


def test_when_a_busy_process_comes_threads_are_given_up_and_taken_back_when_it_goes() -> None:
    def seconds(clock: float, n: int) -> float:
        busy = 30 <= clock < 120
        return 0.1 * ({1: 1.9, 2: 4.0}[n] if busy else {1: 1.8, 2: 1.0}[n])

    threads, clock, alone = Threads(2, 2), 0.0, []
    while clock < 200:
        chosen = threads.next_step()
        took = seconds(clock, chosen)
        threads.took(took)
        clock += took
        alone.append((clock, chosen))
    during = [n for at, n in alone if 40 < at < 120]
    after = [n for at, n in alone if at > 120 + 2 * LOOK_AGAIN_S + 5]
    assert during.count(1) > 0.85 * len(during)
    assert after.count(2) > 0.9 * len(after)


def test_of_many_cores_the_fastest_number_is_found_from_either_end() -> None:
    speed = {1: 1.0, 2: 1.9, 4: 3.0, 8: 2.5, 16: 1.2}
    for start in (1, 16):
        used = run(Threads(16, start), lambda clock, n: 0.2 / speed[n], 300)
        assert used[-200:].count(4) > 180


def test_noise_alone_does_not_move_it() -> None:
    noise = [1.0, 1.15, 0.95, 1.05, 1.3, 1.0, 0.9]
    state = {"i": 0}

    def seconds(clock: float, n: int) -> float:
        state["i"] += 1
        return 0.1 * noise[state["i"] % 7] * {1: 1.8, 2: 1.0}[n]

    used = run(Threads(2, 2), seconds, 120)
    assert used.count(2) > 0.95 * len(used)


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


@pytest.mark.parametrize(("share", "count", "is_said"), [(0.1, 2, False), (0.7, 2, True), (0.7, 1, False)])
def test_a_run_that_others_keep_waiting_says_so_once(
    share: float, count: int, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """share: of the time that it waits for a core. count: of threads; one waits for no other."""
    clock = [1000.0]
    monkeypatch.setattr(threads.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(threads, "waited_for_a_core", lambda: share * clock[0])
    waiting, said = KeptWaiting(count), []
    for _ in range(100):
        clock[0] += 0.5
        said.append(waiting.remark())
    assert [line is not None for line in said].count(True) == is_said
    if is_said:
        assert "in 10 s its 2 threads together waited 7 s" in str(said[int(LOOKED_AT_S / 0.5)]), (
            "after ten seconds of it"
        )


def test_who_writes_texts_that_others_keep_waiting_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(threads.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(threads, "waited_for_a_core", lambda: 0.7 * clock[0])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    with pytest.warns(Note, match="other programs have the cores") as told:
        for clock[0] in saying_who_waits(range(1000, 1100)):
            pass
    assert len(told) == 1
    assert list(saying_who_waits(range(3))) == [0, 1, 2], "the same steps"


def test_where_the_system_does_not_say_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(threads.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(threads, "waited_for_a_core", lambda: None)
    waiting = KeptWaiting(2)
    for clock[0] in range(40):
        assert waiting.remark() is None


@pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="this system does not say how long threads waited"
)
def test_waiting_for_a_core_is_told_from_sleeping() -> None:
    before = threads.waited_for_a_core()
    time.sleep(0.3)
    after = threads.waited_for_a_core()
    assert before is not None
    assert after is not None
    assert 0 <= after - before < 0.2
