"""What was found out about this machine: measured at first use, kept in the cache folder, measured anew when it is wrong.

The figures are kept under a key of everything they depend on: processor, cores this process may use, torch, limits set in the
environment, GPU and driver. Nothing here fails: a cache that cannot be written or read only means measuring again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from lmlab.disk.files import cache_folder, write_atomically
from lmlab.disk.locks import in_turn
from lmlab.hardware import rates
from lmlab.hardware.openmp import set_threads, threads_as_before
from lmlab.hardware.versions import fingerprint, usable_cores
from lmlab.records import JsonRecord, from_json

PRECISIONS = {"float32": torch.float32, "bf16": torch.bfloat16}
LIMITS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "OMP_NUM_THREADS")
WRONG = 2.0  # a kept figure that is off by this factor is measured anew


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How fast one device multiplies in one precision, with so many threads; operations per second, 0 where it crawls."""

    device: str
    precision: str
    threads: int  # on a CPU; 1 elsewhere
    products: float  # forward and backward, as training makes them
    iteration: float  # of Muon


@dataclass(frozen=True, kw_only=True)
class Device:
    """What does not depend on precision or threads."""

    device: str
    copies: float  # bytes read and written per second
    request_s: float  # to ask for one kernel


@dataclass(frozen=True, kw_only=True)
class Found(JsonRecord):
    """All that was measured, and what it depends on."""

    key: dict[str, str]
    rates: tuple[Rate, ...]
    devices: tuple[Device, ...]
    seconds: float  # that measuring took
    kept: str = ""  # the file it is kept in; empty: nowhere, and `trouble` says why
    trouble: str = ""

    def rate(self, device: str, precision: str, threads: int | None = None) -> Rate:
        """The figures of a precision: with so many threads, or with the number that is fastest."""
        fitting = [r for r in self.rates if (r.device, r.precision) == (device, precision)]
        if threads is not None:
            fitting = [r for r in fitting if r.threads == threads] or fitting
        return max(fitting, key=lambda r: r.products)

    def device(self, name: str) -> Device:
        """Copies and requests of one device."""
        return next(d for d in self.devices if d.device == name)


def thread_counts(most: int) -> list[int]:
    """1, 2, 4, … and `most`."""
    counts = [1]
    while counts[-1] * 2 < most:
        counts.append(counts[-1] * 2)
    return [*counts, most] if most > 1 else counts


def devices() -> list[str]:
    """Devices that torch can use here, the one it would take by itself first (mps only ever when asked for)."""
    return ["cuda", "cpu"] if torch.cuda.is_available() else ["cpu"]


def find(device: str = "cpu", *, again: bool = False) -> Found:
    """The figures of this machine for `device`: kept ones if there are any, else measured now (a second or two)."""
    key = what_they_depend_on(device)
    name = _name(key)
    if not again and name in _REMEMBERED:
        return _REMEMBERED[name]
    path = figures_folder() / f"{name}.json"
    found = None if again else _read(path, key)
    if found is None:
        with in_turn(path.parent):  # two that measure at once would each find half a machine
            found = (None if again else _read(path, key)) or _kept(path, measure(device, key))
    _REMEMBERED[name] = found
    return found


def doubt(device: str, precision: str, threads: int, products: float) -> bool:
    """Hold a speed that was just reached against the kept figure; where that is off by a factor of two, measure all anew.

    True: it was wrong.
    """
    kept = find(device).rate(device, precision, threads)
    if kept.threads != threads or 1 / WRONG < products / max(kept.products, 1.0) < WRONG:
        return False
    find(device, again=True)
    return True


def measure(device: str, key: dict[str, str] | None = None) -> Found:
    """Time everything on one device. On a CPU with 1, 2, 4, … threads, as many as torch would take by itself."""
    started, most = time.perf_counter(), torch.get_num_threads()
    place = torch.device(device)
    found = []
    try:
        for precision, dtype in PRECISIONS.items():
            crawling = dtype != torch.float32 and rates.crawls(place, dtype)
            for threads in thread_counts(most) if device == "cpu" else [1]:
                if device == "cpu":
                    set_threads(threads)
                products = 0.0 if crawling else rates.product_flops(place, dtype)
                iteration = 0.0 if crawling else rates.iteration_flops(place, dtype)
                found.append(
                    Rate(device=device, precision=precision, threads=threads, products=products, iteration=iteration)
                )
    finally:
        threads_as_before(most)
    about = Device(
        device=device,
        copies=rates.copy_bytes_per_s(place),
        request_s=rates.request_s(place),
    )
    seconds = time.perf_counter() - started
    return Found(key=key or what_they_depend_on(device), rates=tuple(found), devices=(about,), seconds=seconds)


def figures_folder() -> Path:
    """Where figures are kept."""
    return cache_folder() / "machine"


def forget() -> None:
    """Of this process; `find` then looks into the cache folder again."""
    _REMEMBERED.clear()


_REMEMBERED: dict[str, Found] = {}


def what_they_depend_on(device: str) -> dict[str, str]:
    """Everything that figures of this device must have in common to be the same figures."""
    key = {
        "timed": rates.TIMED,
        "device": device,
        "torch": torch.__version__,
        "processor": fingerprint(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": str(usable_cores()),
        "threads": str(torch.get_num_threads()),
        "limits": " ".join(f"{name}={os.environ[name]}" for name in LIMITS if name in os.environ),
    }
    if device == "cuda":
        about = torch.cuda.get_device_properties(torch.cuda.current_device())
        key["gpu"] = f"{about.name}, {about.total_memory >> 20} MiB, CUDA {torch.version.cuda}"
    return key


def _name(key: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]


def _read(path: Path, key: dict[str, str]) -> Found | None:
    """What is kept there, or None: missing, unreadable, damaged and of another machine are all the same here."""
    try:
        found = replace(from_json(Found, json.loads(path.read_text(encoding="utf-8"))), kept=str(path))
        numbers = [r.products for r in found.rates]
        numbers += [number for d in found.devices for number in (d.copies, d.request_s)]
        sound = found.key == key and found.rates and all(n >= 0 for n in numbers)
        return found if sound and {r.precision for r in found.rates} == set(PRECISIONS) else None
    except (OSError, ValueError):
        return None


def _kept(path: Path, found: Found) -> Found:
    try:
        write_atomically(path, json.dumps(found.to_json(), indent=2).encode())
    except OSError as error:  # a read-only home, a full disk: the figures serve this process alone
        return replace(found, trouble=f"not kept: {error.strerror or error}: {path.parent}")
    return replace(found, kept=str(path))
