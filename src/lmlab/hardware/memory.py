"""Memory: what is available, what this process holds, and habits of the C library that slow a training step down."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
from pathlib import Path
from typing import Self

EVERY_S = 0.05  # how often the size of the process is looked at
LARGE_PAGES_BYTES = 512 << 20  # of heap: what the buffers of a training step on a CPU amount to, or most of it


def available_bytes() -> int | None:
    """Memory that could be taken now without pushing anything out; None where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("MemAvailable:"):
                return min(int(line.split()[1]) * 1024, _container_left())
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # macOS and Windows have no such question
        return None


def _container_left() -> int:
    """What a container's own limit leaves, where there is one."""
    try:
        most = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        held = Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii").strip()
        return max(0, int(most) - int(held)) if most != "max" else sys.maxsize
    except (OSError, ValueError):
        return sys.maxsize


def keep_memory() -> None:
    """Ask the C library to keep freed memory, and the kernel to hold it in large pages. For the command line alone.

    Every step frees and takes the same large buffers. By default glibc unmaps them each time and the kernel zeroes fresh
    pages, which costs a training step on a CPU a tenth of its time; and in pages of 4 kB the processor spends as much again
    on looking up where they are. It changes the whole process, so a library call never does it. Elsewhere than on Linux
    with glibc this does nothing; processes started from here on are told by their environment.
    """
    if sys.platform != "linux" or os.environ.get("LD_PRELOAD"):
        return
    os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(1 << 30))
    os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str((1 << 31) - 1))
    try:
        libc = ctypes.CDLL("libc.so.6")
        trim_threshold, mmap_threshold = -1, -3
        libc.mallopt(mmap_threshold, 1 << 30)
        libc.mallopt(trim_threshold, (1 << 31) - 1)
        _prefer_large_pages(libc)
    except (OSError, AttributeError):  # another C library: its own habits then
        return


def _prefer_large_pages(libc: ctypes.CDLL) -> None:
    """Take a stretch of the heap, mark it for large pages, and give it back to the heap: what is never used costs nothing."""
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    page, madv_hugepage = mmap.PAGESIZE, 14
    address = libc.malloc(LARGE_PAGES_BYTES)
    if address is None:
        return
    first = -(-address // page) * page
    libc.madvise(first, (address + LARGE_PAGES_BYTES - first) // page * page, madv_hugepage)
    libc.free(address)


class PeakMemory:
    """The largest resident size of this process while the block ran, in bytes.

    The operating system's own maximum covers the whole life of the process, not one model of a comparison; so the current
    size is read many times a second. Where it cannot be read, the whole-life maximum stands in
    (on Windows, which has neither, 0).
    """

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.peak_bytes = max(self.peak_bytes, resident_bytes())

    def _watch(self) -> None:
        while not self._stop.wait(EVERY_S):
            self.peak_bytes = max(self.peak_bytes, resident_bytes())


def resident_bytes() -> int:
    """Memory this process holds now."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
