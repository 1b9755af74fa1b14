"""Whether a function of ours in C is faster on this machine than what it replaces: raced once, kept with the other figures.

That it was faster on the machines it was written on says nothing of the next: there the compiler, the width of registers and
the library under torch are others. So each is timed beside its plain twin at its first use, and one that loses is left out.
The two round differently, so a run that is resumed keeps to what it began with (`as_begun`).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from lmlab.disk.files import write_atomically
from lmlab.disk.locks import in_turn
from lmlab.hardware.c_kernels import ALWAYS, SWITCH, decided_on, made
from lmlab.hardware.kept_figures import PRECISIONS, figures_folder, what_they_depend_on
from lmlab.hardware.tensors_for_c import pretends

CLEARLY = 1.05  # times as fast must the plain way be before ours is left out: where they are even nothing is gained
ROUNDS, LEAST_S, MOST_S = 5, 0.04, 0.4  # of both ways in turns: at least so many, and so long; when to stop in any case

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
    def ours_is_taken(self) -> bool:
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
        self.what, self.source, self.precisions, self._ways = what, source, precisions, ways
        self._shared = shared

    @property
    def can_be_run(self) -> bool:
        """Whether there is a function of ours here, or nothing to race."""
        return made(self.source, shared=self._shared) is not None

    def won(self, dtype: torch.dtype) -> bool:
        """Whether ours is to be taken; that it was `made` is for who asks to know."""
        name = f"{self.what}, {_written(dtype)}"
        if name in _BEGUN_WITH:
            return _BEGUN_WITH[name]
        if name not in _ANSWERED:
            if pretends(torch.empty(0)):  # where nothing is computed nothing can be timed
                return True
            asked_for = os.environ.get(SWITCH, "").lower() in ALWAYS
            _ANSWERED[name] = asked_for or self.result(dtype).ours_is_taken
        return _ANSWERED[name]

    def result(self, dtype: torch.dtype, *, again: bool = False) -> Raced:
        """How it ended here, now or before."""
        library = Path(decided_on(self.source)._name).stem  # says of which source and by which compiler
        about = {**what_they_depend_on("cpu"), "race": self.what, "precision": _written(dtype), "library": library}
        name = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
        if again:
            _REMEMBERED.pop(name, None)
        if name not in _REMEMBERED:
            path = figures_folder() / f"race-{name}.json"
            with in_turn(path.parent):  # two that race at once would each have half a machine
                _REMEMBERED[name] = (None if again else _read(path)) or _kept(path, self._run(dtype))
        return _REMEMBERED[name]

    def _run(self, dtype: torch.dtype) -> Raced:
        with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cpu", enabled=False):
            ways = self._ways(dtype)
            for way in ways:  # finds memory, and begins threads
                way()
            best_s, began, rounds = [float("inf")] * 2, time.perf_counter(), 0
            while True:
                for number, way in enumerate(ways):
                    started = time.perf_counter()
                    way()
                    best_s[number] = min(best_s[number], time.perf_counter() - started)
                rounds, taken_s = rounds + 1, time.perf_counter() - began
                if taken_s > MOST_S or (rounds >= ROUNDS and taken_s > LEAST_S):
                    return Raced(what=self.what, precision=_written(dtype), ours_s=best_s[0], plain_s=best_s[1])


_REMEMBERED: dict[str, Raced] = {}
_ANSWERED: dict[str, bool] = {}
_BEGUN_WITH: dict[str, bool] = {}


def answers() -> dict[str, bool]:
    """Which functions this process was told to take or to leave, for whoever must go on as it began."""
    return _ANSWERED | _BEGUN_WITH


@contextmanager
def as_begun(answered: Mapping[str, bool]) -> Iterator[None]:
    """The same answers while it lasts, whatever would come out today."""
    before = dict(_BEGUN_WITH)
    _BEGUN_WITH.update(answered)
    try:
        yield
    finally:
        _BEGUN_WITH.clear()
        _BEGUN_WITH.update(before)


def forget() -> None:
    """Of this process; what is kept in the cache folder is looked up again."""
    _REMEMBERED.clear()
    _ANSWERED.clear()


@functools.cache
def _written(dtype: torch.dtype) -> str:
    return next(name for name, known in PRECISIONS.items() if known == dtype)


def _read(path: Path) -> Raced | None:
    """What is kept there; missing and damaged are the same here."""
    try:
        raced = Raced(**json.loads(path.read_text(encoding="utf-8")))
        return raced if min(raced.ours_s, raced.plain_s) > 0 else None
    except (OSError, ValueError, TypeError):
        return None


def _kept(path: Path, raced: Raced) -> Raced:
    with suppress(OSError):  # a cache that cannot be written only means racing again, as with the other figures
        write_atomically(path, json.dumps(asdict(raced), indent=2).encode())
    return raced
