"""Kernels written by hand, each of which computes what a plain twin of few lines computes, only faster.

The twins stand beside the callers, in `layers/`, `learn/optimizer.py` and `models/gpt.py`; tests hold each kernel against its
twin, forward and backward. One switch turns all kernels off: `with fast.plain():`, in this thread and while it lasts;
`fast.enabled` says whether it is on. Nothing else of the lab depends on it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

enabled: bool  # whether this thread may use the kernels; see `__getattr__`
_PLAIN = threading.local()


@contextmanager
def plain() -> Iterator[None]:
    """Without hand-written kernels while it lasts, in this thread."""
    _PLAIN.depth = getattr(_PLAIN, "depth", 0) + 1
    try:
        yield
    finally:
        _PLAIN.depth -= 1


def __getattr__(name: str) -> bool:
    if name == "enabled":
        return not getattr(_PLAIN, "depth", 0)
    raise AttributeError(name)
