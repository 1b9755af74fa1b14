"""What a benchmark of training steps compares: one step of lmlab and one of a peer, on the same batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from timing import Work

PRECISIONS = ("float32", "bf16")


@dataclass(frozen=True, kw_only=True)
class Steps:
    """This class is one comparison: what it is called, and how both sides are made."""

    key: str
    what: str
    peer: str
    least: float  # how many times as fast lmlab should be
    make: Callable[[], tuple[Work, Work]]  # lmlab, the peer
    repeats: int = 1  # steps in a round
