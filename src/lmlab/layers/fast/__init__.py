"""Kernels written by hand, each of which computes what a plain twin of few lines computes, only faster.

The twins stand beside the callers, in `layers/`, `learn/optimizer.py` and `models/gpt.py`; tests hold each kernel against its
twin, forward and backward. One switch turns all kernels off: `fast.enabled`, or `with fast.plain():` for a while. Nothing else
of the lab depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = True


@contextmanager
def plain() -> Iterator[None]:
    """Without hand-written kernels while it lasts."""
    global enabled
    before, enabled = enabled, False
    try:
        yield
    finally:
        enabled = before
