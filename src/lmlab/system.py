"""What one must know to repeat a measurement, and what it took: versions, the machine in words, the memory held."""

from __future__ import annotations

import os
import platform
import sys
import threading
from importlib import metadata
from pathlib import Path
from typing import Self

from lmlab import __version__

EVERY_S = 0.05


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
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def versions() -> dict[str, str]:
    """Versions of lmlab and what its numbers depend on, and the machine in words."""
    import torch

    found = {"lmlab": __version__, "python": platform.python_version()}
    found |= {name: metadata.version(name) for name in ("torch", "numpy", "tokenizers")}
    found["system"] = f"{platform.system()} {platform.machine()}"
    threads = torch.get_num_threads()
    found["processor"] = f"{_processor()}, {os.cpu_count()} cores, {threads} thread{'' if threads == 1 else 's'}"
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
