"""What counted n-grams are, and how work on many of them is shared among threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

Ids = NDArray[np.int32]
BLOCK = 1 << 18  # entries that one thread works on at once: their temporaries stay in its cache


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The n-grams of one order that occur, sorted by key."""

    keys: NDArray[np.int64]
    counts: Ids  # how often each occurs
    suffix: Ids  # the id, one order below, of each n-gram without its first token
    begins: int  # the n-grams from this id on start with the begin symbol


def key_bits(vocab_size: int) -> int:
    """How many low bits of a key hold the last token."""
    return max(1, (vocab_size - 1).bit_length())


def in_blocks(size: int, work: Callable[[slice], None], block: int = BLOCK) -> None:
    """Call work(slice) for every block of range(size), in the threads torch may use: NumPy leaves them free to run."""
    slices = [slice(start, min(start + block, size)) for start in range(0, size, block)]
    if len(slices) <= 1 or torch.get_num_threads() == 1:
        for part in slices:
            work(part)
        return
    with ThreadPoolExecutor(torch.get_num_threads()) as threads:
        list(threads.map(work, slices))


def in_parts(size: int, work: Callable[[slice], None]) -> None:
    """The same for one block for each of those threads."""
    in_blocks(size, work, block=max(1, -(-size // torch.get_num_threads())))
