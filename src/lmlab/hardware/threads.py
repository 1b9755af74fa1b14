"""How many threads are fastest. Two threads that wait for each other beside a busy process lose most of their speed."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch

from lmlab.hardware import rates
from lmlab.hardware.choice import Hardware, precision_name
from lmlab.hardware.kept_figures import doubt, thread_counts
from lmlab.hardware.openmp import set_threads, threads_as_before

ROUNDS = 3
GAIN = 1.05  # another number of threads must be faster by this much
TRIAL_STEPS = 3  # of each number of threads; the middle one counts
FAR = 1.5  # times as slow as the fastest: that number of threads is tried no further
SLOWER = 1.6  # times as slow as planned: the guard tries other numbers of threads
LONG_ENOUGH_S, SELDOM_S = (
    10.0,
    80.0,
)  # of slow steps before the guard acts; after a trial it waits longer, at most so long


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


def threads_now(most: int, dtype: torch.dtype = torch.float32) -> int:
    """The number of threads, at most so many, with which products run fastest at this moment."""
    return fastest(product_speeds(most, dtype))


def product_speeds(most: int, dtype: torch.dtype) -> dict[int, float]:
    """Operations per second of the products of training on the CPU now, with 1, 2, 4, … threads, at most so many."""
    before = torch.get_num_threads()
    tries: dict[int, list[float]] = {threads: [] for threads in thread_counts(most)}
    try:
        for tried in range(ROUNDS if len(tries) > 1 else 1):  # in turns: a disturbance then hits none of them alone
            best = max((max(found) for found in tries.values() if found), default=0.0)
            for threads, found in tries.items():
                if tried == ROUNDS - 1 and FAR * max(found) < best:
                    continue  # twice far behind
                set_threads(threads)
                found.append(rates.product_flops(torch.device("cpu"), dtype))
    finally:
        threads_as_before(before)
    # The middle one: on a busy machine several threads are fast for a moment and slow by a factor of ten on the whole.
    return {threads: statistics.median(found) for threads, found in tries.items()}


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
    counts = sorted({*thread_counts(most), now})
    place = counts.index(now)
    return [now, *(counts[i] for i in (place - 1, place + 1) if 0 <= i < len(counts))]


def fastest(speeds: Mapping[int, float]) -> int:
    """A tie goes to fewer threads: they disturb others less, and are disturbed less."""
    return min(threads for threads, speed in speeds.items() if speed * GAIN >= max(speeds.values()))


class Trial:
    """Times a few steps with each of several numbers of threads, in turns, and keeps the fastest.

    The steps of a trial are steps of the work itself, so a trial loses no time but that of the slower ones.
    """

    def __init__(self, counts: Sequence[int]) -> None:
        """Begin a trial of these numbers of threads; of equally fast ones the first is kept."""
        self._waiting = [*counts] * TRIAL_STEPS
        self._seconds: dict[int, list[float]] = {count: [] for count in counts}

    @property
    def is_over(self) -> bool:
        """Whether every number was tried."""
        return not self._waiting

    def next_step(self) -> int:
        """The number of threads for the coming step."""
        return self._waiting[0]

    def took(self, seconds: float) -> None:
        """Note how long that step took."""
        threads = self._waiting.pop(0)
        self._seconds[threads].append(seconds)
        if seconds > FAR * min(min(tried) for tried in self._seconds.values() if tried):
            self._waiting = [count for count in self._waiting if count != threads]

    @property
    def fastest(self) -> int:
        """The number of threads whose middle step is shortest. Another than the first must be clearly faster."""
        middle = {threads: statistics.median(tried) for threads, tried in self._seconds.items() if tried}
        first = next(iter(middle))
        best = min(middle, key=lambda threads: middle[threads])
        return best if middle[best] * GAIN < middle[first] else first


class Guard:
    """Changes the number of threads of a run whose steps take much longer than planned. Nothing else changes a run's plan.

    When the steps of ten seconds were slower than planned by `SLOWER`, the next steps are a trial of half and of twice as many
    threads. While steps stay slow it is repeated, at most every `SELDOM_S` seconds, so that threads come back as well.
    """

    def __init__(self, most: int, threads: int, tokens_per_second: float) -> None:
        """Watch a run.

        Args:
            most: threads that it may use.
            threads: those that it begins with.
            tokens_per_second: the planned speed.
        """
        self.most, self.threads, self.planned = most, threads, tokens_per_second
        self._trial: Trial | None = None
        self._tokens, self._seconds, self._wait_s = 0, 0.0, LONG_ENOUGH_S

    def next_step(self) -> int:
        """The number of threads for the coming step."""
        return self.threads if self._trial is None else self._trial.next_step()

    def took(self, tokens: int, seconds: float) -> bool:
        """Note a step; returns whether the number of threads has changed."""
        if self._trial is not None:
            self._trial.took(seconds)
            return self._trial.is_over and self._end_trial(self._trial)
        self._tokens, self._seconds = self._tokens + tokens, self._seconds + seconds
        if self._seconds >= self._wait_s:
            if self._tokens * SLOWER < self.planned * self._seconds:
                self._trial = Trial(neighbours(self.most, self.threads))
                self._wait_s = min(2 * self._wait_s, SELDOM_S)
            else:
                self._wait_s = LONG_ENOUGH_S
            self._tokens, self._seconds = 0, 0.0
        return False

    def _end_trial(self, trial: Trial) -> bool:
        before, self.threads, self._trial = self.threads, trial.fastest, None
        return self.threads != before
