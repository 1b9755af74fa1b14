"""So many threads, for every kernel that torch calls."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch

SHARED = "libgomp.so.1"  # OpenMP as torch brings it along on Linux
NAMES = ("libgomp", "libiomp5", "libomp")  # of libraries that serve what gcc makes of OpenMP


def set_threads(threads: int) -> None:
    """Let torch's kernels use so many threads from now on. One means one, of all of them.

    On ARM those of oneDNN keep the number the process began with, whatever `torch.set_num_threads` says: beside a busy process
    they then wait for a thread that has no core, and a step takes a fifth longer. OpenMP itself can be told to share nothing.
    """
    torch.set_num_threads(threads)
    _share(threads > 1)


def threads_as_before(threads: int) -> None:
    """So many again, and OpenMP as it was: who counts threads by torch's own function finds nothing changed."""
    torch.set_num_threads(threads)
    _share(True)


@cache
def lent_to_kernels() -> str:
    """Let libraries that are loaded from now on find the OpenMP that torch has loaded, whatever it is called; returns its path.

    Empty where none is found: what needs it can then not be loaded.
    """
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    paths = {line.split(maxsplit=5)[5] for line in maps if any(f"/{name}" in line for name in NAMES) and ".so" in line}
    own = str(Path(torch.__file__).parent)
    for path in sorted(paths, key=lambda path: (not path.startswith(own), path)):
        with suppress(OSError):
            ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW | os.RTLD_GLOBAL)
            return path
    return ""


def _share(allowed: bool) -> None:
    if (openmp := _openmp()) is not None:
        library, levels = openmp
        library.omp_set_max_active_levels(levels if allowed else 0)


@cache
def _openmp() -> tuple[ctypes.CDLL, int] | None:
    """The library that torch has loaded, and how deep it may share work by itself; None where torch uses another."""
    try:
        library = ctypes.CDLL(SHARED, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        return library, library.omp_get_max_active_levels()
    except (OSError, AttributeError):
        return None
