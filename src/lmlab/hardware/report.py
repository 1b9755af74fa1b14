"""Everything about this machine that one would paste into a bug report: what was measured, what follows, what is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from lmlab.disk.files import cache_folder
from lmlab.hardware.c_kernels import PLAIN_PROBE, PROBE, SWITCH, compiler_here, is_kept, why_not
from lmlab.hardware.choice import (
    batch_for,
    faster_iteration,
    faster_precision,
    precision_name,
    usual_stepping,
)
from lmlab.hardware.kept_figures import PRECISIONS, Found, devices, find
from lmlab.hardware.memory import available_bytes
from lmlab.hardware.races import Race, Raced
from lmlab.hardware.threads import threads_now
from lmlab.hardware.versions import machine_name, versions
from lmlab.records import JsonRecord

MADE_AGAIN = ("corpora", "kernels", "machine", "tokens", "unpacked")  # folders of the cache; the other one:
ONLY_COPIES = "piped"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One thing that is decided by measuring, and why it came out so."""

    device: str
    what: str
    chosen: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A folder of the cache, and what lies in it."""

    folder: str
    bytes: int
    files: int


@dataclass(frozen=True, kw_only=True)
class MachineReport(JsonRecord):
    """What `lmlab machine` shows."""

    found: tuple[Found, ...]  # one a device
    choices: tuple[Choice, ...]
    memory_bytes: int | None  # available now
    versions: dict[str, str]
    cache: str
    kept: tuple[Kept, ...]
    raced: tuple[Raced, ...] = ()  # functions in C against their plain twins
    # by device: the `machine` of an execution plan that is made here
    machines: dict[str, str] = field(default_factory=dict)


def about_machine(races: Sequence[Race] = (), *, again: bool = False) -> MachineReport:
    """Measure (or look up) this machine; `again`: measure even what is known. races: of functions in C, to be shown too."""
    found = tuple(find(device, again=again) for device in devices())
    choices = [choice for figures, device in zip(found, devices(), strict=True) for choice in _choices(figures, device)]
    there = [race for race in races if race.can_be_run]
    raced = tuple(
        race.result(dtype, again=again) for race in there for dtype in race.precisions if not _crawls(found, dtype)
    )
    return MachineReport(
        found=found,
        choices=(*choices, *(_winner(race, raced) for race in there if race.what in {one.what for one in raced})),
        raced=raced,
        machines={device: machine_name(device) for device in devices()},
        memory_bytes=available_bytes(),
        versions=versions(),
        cache=str(cache_folder()),
        kept=kept(),
    )


def _choices(found: Found, device: str) -> list[Choice]:
    precision = faster_precision(found, device)
    products = {name: found.rate(device, name).products for name in PRECISIONS}
    iteration = {name: found.rate(device, name).iteration for name in PRECISIONS}
    batch = batch_for(found, device, precision)
    request = f"asking for a kernel takes {found.device(device).request_s * 1e6:.1f} µs"
    chosen = [
        Choice(device=device, what="precision of products", chosen=precision, why=_ratio(products)),
        Choice(
            device=device,
            what="precision of Muon's iteration",
            chosen=faster_iteration(found, device),
            why=_ratio(iteration),
        ),
        Choice(
            device=device,
            what="rows of a step, where seconds count",
            chosen=f"{batch} × the usual",
            why=f"{request}, {'more' if batch > 1 else 'less'} than a quarter of a typical product",
        ),
        Choice(
            device=device, what="steps", chosen=usual_stepping(device), why="steps of a GPU are recorded and replayed"
        ),
    ]
    if device == "cpu":
        most = torch.get_num_threads()
        now = threads_now(most, PRECISIONS[precision])
        why = f"the fastest at this moment of 1 to {most}; a budget of steps or tokens takes {most}"
        chosen.append(Choice(device=device, what="threads", chosen=str(now), why=why))
        chosen.append(_kernels_in_c(device))
    return chosen


def _kernels_in_c(device: str) -> Choice:
    """They are made on the machine: whether that works is tried, and why it does not is said."""

    def choice(chosen: str, why: str) -> Choice:
        return Choice(device=device, what="kernels in C", chosen=chosen, why=why)

    trouble = why_not(PROBE)
    if trouble and why_not(PLAIN_PROBE):
        return choice("none", f"{trouble}; plain ones do the same, slower")
    compiler = " ".join(compiler_here() or ())
    asked = os.environ.get("CC", compiler)
    instead = "" if asked == compiler else f", for CC={asked} is not there"
    kept = "kept in the cache" if is_kept(PLAIN_PROBE) else "anew by every process, since the cache cannot keep them"
    why = f"made here by {compiler}{instead}, {kept}; {SWITCH}=off does without"
    if trouble:
        return choice("to count, not to write texts or to train", f"{trouble}; {why}")
    if one_core := why_not(PROBE, shared=True):
        return choice("to write texts and to count, not to train", f"{one_core}; {why}")
    return choice("yes", why)


def _crawls(found: tuple[Found, ...], dtype: torch.dtype) -> bool:
    """Whether nobody computes in this precision on the CPU unless asked to."""
    figures = next(one for one in found if one.rates[0].device == "cpu")
    return not figures.rate("cpu", precision_name(dtype)).products


def _winner(race: Race, raced: tuple[Raced, ...]) -> Choice:
    """What is taken where there is a function in C and a plain way."""
    ended = [one for one in raced if one.what == race.what]
    taken = {one.precision: race.taken(PRECISIONS[one.precision]) for one in ended}
    if len(set(taken.values())) == 1:
        chosen = "in C" if all(taken.values()) else "without C"
    else:
        chosen = ", ".join(f"{'in' if ours else 'without'} C in {precision}" for precision, ours in taken.items())
    gains = [f"{one.gain:.2g}{' times as fast' * (one is ended[0])} in {one.precision}" for one in ended]
    why = f"C is {', '.join(gains)}"
    return Choice(device="cpu", what=race.what, chosen=chosen, why=why)


def _ratio(speeds: dict[str, float]) -> str:
    if not speeds["bf16"]:
        return "bf16 crawls here: this processor has no units for it"
    return f"bf16 runs at {speeds['bf16'] / speeds['float32']:.2g} times the speed of float32"


def kept() -> tuple[Kept, ...]:
    """What lies in the cache folder, folder by folder."""
    return tuple(_kept(folder) for folder in _there(*MADE_AGAIN, ONLY_COPIES))


def clear() -> tuple[Kept, ...]:
    """Delete what can be made or fetched again; returns what was there.

    Only folders of ours: the cache folder may be one that others use too. And no text that came through a pipe: runs that
    learned from it have no other copy (`only_copies`).
    """
    was = tuple(_kept(folder) for folder in _there(*MADE_AGAIN))
    for folder in _there(*MADE_AGAIN):
        shutil.rmtree(folder)
    return was


def only_copies() -> Kept:
    """The texts that came through standard input or a pipe, or as strings, which nothing here can make again."""
    return _kept(cache_folder() / ONLY_COPIES)


def _kept(folder: Path) -> Kept:
    files = [Path(where) / name for where, _, names in os.walk(folder) for name in names]
    sizes = [path.stat().st_size for path in files if path.is_file()]
    return Kept(folder=str(folder), bytes=sum(sizes), files=len(sizes))


def _there(*names: str) -> list[Path]:
    return [cache_folder() / name for name in names if (cache_folder() / name).is_dir()]
