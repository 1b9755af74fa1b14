"""The most memory a piece of work held, watched from a thread."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Self

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
