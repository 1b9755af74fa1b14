"""How many threads are fastest now. Two threads that wait for each other beside a busy process lose most of their speed."""

from __future__ import annotations

import statistics
import time
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch

from lmlab.config import Note
from lmlab.hardware import rates
from lmlab.hardware.choice import Hardware, precision_name
from lmlab.hardware.kept_figures import doubt, thread_counts
from lmlab.hardware.openmp import set_threads, threads_as_before

Step = TypeVar("Step")

ROUNDS = 2
GAIN = 1.05  # another number of threads must be faster by this much
LOOK_AGAIN_S = 10.0  # at first; twice as long each time nothing changed
SELDOM_S = 80.0
SLOWER = 1.4  # than usual, three steps running: someone else has come
LOOKED_AT_S, MOST_WAITING = 10.0, 0.4  # seconds; the share of them that threads, together, may wait for a core
TRIAL_STEPS = 3  # the first of them finds memory and chooses kernels, and does not count


def at_this_moment(hardware: Hardware) -> Hardware:
    """The same hardware as it is just now: the threads to begin with, and the speed that they reach beside what else runs.

    Takes some 50 ms. Where the kept figures turn out wrong by a factor of two, they are measured anew on the way.
    """
    if hardware.device.type != "cpu":
        return hardware
    speeds = product_speeds(hardware.threads, hardware.dtype)
    now = fastest(speeds)
    doubt(hardware.device.type, precision_name(hardware.dtype), now, speeds[now])
    return replace(hardware, now=now, flops=max(speeds[now], 1.0))


def as_now(hardware: Hardware) -> Hardware:
    """With the threads that are fastest at this moment and no others: for steps that stand for seconds that were asked for."""
    return replace(hardware, threads=hardware.now)


def threads_now(most: int, dtype: torch.dtype = torch.float32) -> int:
    """The number of threads, at most so many, with which products run fastest at this moment."""
    return fastest(product_speeds(most, dtype))


def product_speeds(most: int, dtype: torch.dtype) -> dict[int, float]:
    """Operations per second of the products of training on the CPU now, with 1, 2, 4, … threads, at most so many."""
    before, speeds = torch.get_num_threads(), dict.fromkeys(thread_counts(most), 0.0)
    try:
        for _ in range(ROUNDS if len(speeds) > 1 else 1):  # in turns: a disturbance then hits none of them alone
            for threads, speed in speeds.items():
                set_threads(threads)
                speeds[threads] = max(speed, rates.product_flops(torch.device("cpu"), dtype))
    finally:
        threads_as_before(before)
    return speeds


@contextmanager
def using_threads(device: torch.device, threads: int) -> Iterator[None]:
    """So many threads on a CPU while it lasts, however the number changes meanwhile; then as many as before."""
    before = torch.get_num_threads()
    if device.type == "cpu":
        set_threads(threads)
    try:
        yield
    finally:
        threads_as_before(before)


@contextmanager
def fastest_threads() -> Iterator[None]:
    """As many threads as are fastest now, beside whatever else the machine is doing, while it lasts; for scores: float32."""
    most = torch.get_num_threads()
    with using_threads(torch.device("cpu"), threads_now(most) if most > 1 else 1):
        yield


def neighbours(most: int, now: int) -> list[int]:
    """The number of threads `now`, and half and twice as many, as far as there are any."""
    counts = thread_counts(most)
    place = counts.index(now)
    return [now, *(counts[i] for i in (place - 1, place + 1) if 0 <= i < len(counts))]


def fastest(speeds: Mapping[int, float]) -> int:
    """A tie goes to fewer threads: they disturb others less, and are disturbed less."""
    return min(threads for threads, speed in speeds.items() if speed * GAIN >= max(speeds.values()))


class Threads:
    """Chooses the number of threads of a long run by timing its own steps, now and again: no step is wasted on it.

    Call `next_step()` before a step and `took(seconds)` after it. A look tries the neighbouring numbers (half, twice) for a
    few steps each and stays with the fastest. It happens after a while, again after longer and longer while nothing
    changes, and at once when steps take markedly longer than they did.
    """

    def __init__(self, most: int, now: int) -> None:
        self.counts, self.current = thread_counts(most), now
        assert now in self.counts, (now, self.counts)
        self._recent: deque[float] = deque(maxlen=5)
        self._usual_s: float | None = None
        self._trial: list[float] = []
        self._tried: dict[int, float] = {}
        self._waiting: list[int] = []
        self._wait_s, self._look_at_s, self._clock_s = LOOK_AGAIN_S, LOOK_AGAIN_S, 0.0

    def next_step(self) -> int:
        """The number of threads for the coming step."""
        return self._waiting[0] if self._waiting else self.current

    def took(self, seconds: float) -> None:
        """How long that step took."""
        self._clock_s += seconds
        if self._waiting:
            self._trial.append(seconds)
            if len(self._trial) == TRIAL_STEPS:
                self._tried[self._waiting.pop(0)] = statistics.fmean(self._trial[1:])
                self._trial = []
                if not self._waiting:
                    self._decide()
            return
        self._recent.append(seconds)
        if len(self._recent) == self._recent.maxlen and self._usual_s is None:
            self._usual_s = statistics.median(self._recent)
        disturbed = self._usual_s is not None and min(list(self._recent)[-3:]) > SLOWER * self._usual_s
        if len(self.counts) > 1 and self._recent and (self._clock_s >= self._look_at_s or disturbed):
            self._begin_to_look(disturbed)

    def _begin_to_look(self, disturbed: bool) -> None:
        recent = list(self._recent)[-3:] if disturbed else list(self._recent)
        self._tried = {self.current: statistics.fmean(recent)}
        self._waiting = neighbours(self.counts[-1], self.current)[1:]

    def _decide(self) -> None:
        best = min(self._tried, key=lambda threads: self._tried[threads])
        if self._tried[best] * GAIN > self._tried[self.current]:
            best = self.current
        changed, self.current = best != self.current, best
        self._recent.clear()
        self._usual_s = self._tried[best]
        # With all threads in use only a newcomer can change anything, and that shows; that one has left does not.
        longest_s = SELDOM_S if best == self.counts[-1] else 2 * LOOK_AGAIN_S
        self._wait_s = LOOK_AGAIN_S if changed else min(longest_s, 2 * self._wait_s)
        self._look_at_s = self._clock_s + self._wait_s


class KeptWaiting:
    """Notices that other programs keep a run of several threads waiting that may not change their number.

    With a budget of steps the same command ends with the same bits, which the number of threads has a part in. Beside a busy
    program such a run can take many times as long as with one thread; who looks on should know that it would not.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._since: tuple[float, float] | None = None  # the time, and how long its threads had waited until then
        self._said = False

    def remark(self) -> str | None:
        """What to say, once, after some seconds of it; asked as often as one likes."""
        now = time.perf_counter()
        if self.threads == 1 or self._said or (self._since is not None and now - self._since[0] < LOOKED_AT_S):
            return None
        waited = waited_for_a_core()
        before, self._since = self._since, None if waited is None else (now, waited)
        if before is None or waited is None:
            return None
        seconds, lost = now - before[0], waited - before[1]
        if lost < MOST_WAITING * seconds:
            return None
        self._said = True
        return (
            f"other programs have the cores: in {seconds:.0f} s its {self.threads} threads together waited {lost:.0f} s for"
            " one, and then for each other; begun with OMP_NUM_THREADS=1 it takes one thread, which may be several times as"
            " fast (its last digits are then others)"
        )


def saying_who_waits(steps: Iterable[Step]) -> Iterator[Step]:
    """The same steps, and a Note once if other programs keep the threads waiting that take them."""
    waiting = KeptWaiting(torch.get_num_threads())
    for step in steps:
        if said := waiting.remark():
            warnings.warn(said, Note, stacklevel=2)
        yield step


def waited_for_a_core() -> float | None:
    """Seconds that threads of this process could have run and had no core, together; None where the system does not say.

    Sleeping, being stopped and waiting for a disk are no such waiting.
    """
    total = 0
    try:
        for thread in Path("/proc/self/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                total += int((thread / "schedstat").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return total / 1e9
