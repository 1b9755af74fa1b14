"""Whether a function of ours in C is faster on this machine than what it replaces: raced once, kept with the other figures.

That it was faster on the machines it was written on says nothing of the next: there the compiler, the width of registers and
the library under torch are others. So each is timed beside its plain twin at its first use, and one that loses is left out.
The two round differently, so a run that is resumed keeps to what it began with (`as_begun`).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.utils._python_dispatch import _disable_current_modes

from lmlab.config import Mistake
from lmlab.disk.files import write_atomically
from lmlab.disk.locks import in_turn
from lmlab.hardware.c_kernels import ALWAYS, SWITCH, decided_on, made, why_not
from lmlab.hardware.choice import precision_name
from lmlab.hardware.kept_figures import figures_folder, what_they_depend_on
from lmlab.hardware.tensors_for_c import pretends

CLEARLY = 1.1  # times as fast must the plain way be before ours is left out: where they are even nothing is gained
CHANCES = 3  # races that ours must lose: a busy moment may lose it one
ROUNDS, LEAST_S, MOST_S = 5, 0.04, 0.2  # of both ways in turns: at least so many, and so long; when to stop in any case

Work = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Raced:
    """How a race ended: seconds of the quickest try of either way."""

    what: str
    precision: str
    ours_s: float
    plain_s: float

    @property
    def gain(self) -> float:
        """How many times as fast ours is."""
        return self.plain_s / self.ours_s

    @property
    def ours_won(self) -> bool:
        """Whether the plain way is not clearly faster."""
        return self.gain * CLEARLY >= 1


class Race:
    """A function in C against its twin, both at work of the size of a small model."""

    def __init__(
        self,
        what: str,
        source: Path,
        ways: Callable[[torch.dtype], tuple[Work, Work]],
        *,
        precisions: tuple[torch.dtype, ...] = (torch.float32, torch.bfloat16),
        shared: bool = True,
    ) -> None:
        """what: it does, for people. source: of ours. ways: ours and the plain one, on numbers of a precision.

        shared: ours is only taken where all cores can share it (`made`).
        """
        self.what, self.source, self.precisions, self._ways, self._shared = what, source, precisions, ways, shared

    @property
    def can_be_run(self) -> bool:
        """Whether there is a function of ours here, or nothing to race."""
        return not why_not(self.source, shared=self._shared)

    def taken(self, dtype: torch.dtype) -> bool:
        """Whether ours is to be taken, here and now."""
        name = self.name(dtype)
        if made(self.source, shared=self._shared) is None:
            if not self.can_be_run:  # else only for a while (`no_c_kernels`), which says nothing of a run
                _record()[name] = False
            return False
        begun = _begun_with()
        if name in begun:
            return begun[name]
        if name not in _WON:
            if pretends(torch.empty(0, device="cpu")):  # where nothing is computed nothing can be timed
                return True
            asked_for = os.environ.get(SWITCH, "").lower() in ALWAYS
            _WON[name] = asked_for or self.result(dtype).ours_won
        _record()[name] = _WON[name]
        return _WON[name]

    def result(self, dtype: torch.dtype, *, again: bool = False) -> Raced:
        """How it ended here, now or before."""
        about = {**what_they_depend_on("cpu"), "race": self.what, "precision": precision_name(dtype)}
        about["library"] = Path(decided_on(self.source)._name).stem  # says of which source and by which compiler
        del about["threads"]  # it is cores that count, not the threads of the moment
        key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
        if again:
            _REMEMBERED.pop(key, None)
            _WON.pop(self.name(dtype), None)
        if key not in _REMEMBERED:
            path = figures_folder() / f"race-{key}.json"
            with in_turn(path.parent):  # two that race at once would each have half a machine
                kept = None if again else _read(path, self.what, precision_name(dtype))
                _REMEMBERED[key] = kept or _kept(path, self._run(dtype))
        return _REMEMBERED[key]

    def name(self, dtype: torch.dtype) -> str:
        """As checkpoints call it."""
        return f"{self.what}, {precision_name(dtype)}"

    def _run(self, dtype: torch.dtype) -> Raced:
        """With nothing of what the caller does just now: gradients, precision, device, and who counts or records."""
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.autocast("cpu", enabled=False),
            _disable_current_modes(),
            torch.device("cpu"),
        ):
            ways, best = self._ways(dtype), None
            for _ in range(CHANCES):
                ours_s, plain_s = _quickest_s(ways)
                raced = Raced(what=self.what, precision=precision_name(dtype), ours_s=ours_s, plain_s=plain_s)
                best = raced if best is None or raced.gain > best.gain else best
                if best.ours_won:
                    break
            assert best is not None
            return best


def _quickest_s(ways: tuple[Work, Work]) -> list[float]:
    """Seconds of either way, in turns: whatever else runs disturbs both, and makes a try slower, never faster."""
    first_s = [_seconds(way) for way in ways]  # finds memory and begins threads: it counts only where it takes long
    if sum(first_s) >= MOST_S:
        return first_s
    best_s, began, rounds = [math.inf] * len(ways), time.perf_counter(), 0
    while True:
        best_s = [min(best, _seconds(way)) for best, way in zip(best_s, ways, strict=True)]
        rounds, taken_s = rounds + 1, time.perf_counter() - began
        if taken_s >= MOST_S or (rounds >= ROUNDS and taken_s >= LEAST_S):
            return best_s


def _seconds(way: Work) -> float:
    started = time.perf_counter()
    way()
    return time.perf_counter() - started


_REMEMBERED: dict[str, Raced] = {}
_WON: dict[str, bool] = {}  # what was decided in this process
_TAKEN: dict[str, bool] = {}  # what was answered last
_OF_A_RUN = threading.local()  # in this thread: what it began with, and what it was answered


def answers() -> dict[str, bool]:
    """Which functions were taken and which were left, for whoever must go on as it began."""
    return _record() | _begun_with()


@contextmanager
def as_begun(answered: Mapping[str, bool]) -> Iterator[None]:
    """The same answers while it lasts, in this thread, whatever would come out today; what else is answered is its own."""
    before, record = _begun_with(), _record()
    _OF_A_RUN.answered, _OF_A_RUN.record = before | dict(answered), {}
    try:
        yield
    finally:
        _OF_A_RUN.answered, _OF_A_RUN.record = before, record


def _begun_with() -> dict[str, bool]:
    found: dict[str, bool] = getattr(_OF_A_RUN, "answered", _NOTHING)
    return found


def _record() -> dict[str, bool]:
    found: dict[str, bool] = getattr(_OF_A_RUN, "record", _TAKEN)
    return found


_NOTHING: dict[str, bool] = {}


def forget() -> None:
    """Of this process; what is kept in the cache folder is looked up again."""
    for known in (_REMEMBERED, _WON, _TAKEN):
        known.clear()


def _read(path: Path, what: str, precision: str) -> Raced | None:
    """What is kept there; missing, damaged and of another race are the same here."""
    try:
        raced = Raced(**json.loads(path.read_text(encoding="utf-8")))
        sound = all(math.isfinite(seconds) and seconds > 0 for seconds in (raced.ours_s, raced.plain_s))
        return raced if sound and (raced.what, raced.precision) == (what, precision) else None
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return None


def _kept(path: Path, raced: Raced) -> Raced:
    # A cache that cannot be written only means racing again, as with the other figures.
    with suppress(OSError, Mistake):
        write_atomically(path, json.dumps(asdict(raced), indent=2).encode())
    return raced
