"""The fast ways in which a `gpt` reads one token at a time, with the caches and buffers they keep from one text to the next."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from lmlab.layers.fast.one_row_in_c import Row, one_row
from lmlab.layers.row_cache import RowCache

if TYPE_CHECKING:
    from lmlab.layers.fast.one_row import Weights


@final
class CacheLease:
    """The states that use a cache hold its lease. When the last of them is gone, the cache is free."""


@final
class GPTDecoder:
    """Buffers for one row, and a cache of fixed shape for many rows, of one engine.

    Recording a step on a GPU takes as long as some twenty steps, so the cache of the last batch is kept for the next. A
    model that is not used by an engine makes a decoder for every text.

    Args:
        weights: makes the weights as the kernels take them.
        cache: makes a cache for so many rows in a precision; whether its rows were just selected.
        dtype: the precision of the weights.
    """

    def __init__(
        self,
        weights: Callable[[], Weights],
        cache: Callable[[int, torch.dtype, bool], RowCache],
        dtype: torch.dtype,
    ) -> None:
        self._weights, self._new_cache, self.dtype = weights, cache, dtype
        self._row: Row | None = None
        self._lock = threading.Lock()  # the buffers of a row serve one thread at a time
        self._cache: RowCache | None = None
        self._lease: weakref.ref[CacheLease] | None = None

    def read_one(self, token: int, position: int, kv_L2BHCD: Tensor) -> Tensor:
        """Return the log-probabilities (1×V) after this input at this position of one row on a CPU. Writes the cache."""
        with self._lock:
            if self._row is None:
                self._row = one_row(self._weights())
            return self._row.log_probabilities(token, position, kv_L2BHCD)

    def acquire_cache(self, rows: int) -> tuple[RowCache, CacheLease]:
        """Return an empty cache with room for these rows: the one that was kept, if it is free and of this size."""
        lease = CacheLease()
        with self._lock:
            cache, free = self._cache, self._lease is None or self._lease() is None
            if cache is not None and free and cache.capacity == cache.capacity_for(rows):
                cache.clear()
            else:
                self._cache = cache = None  # before the memory of another is allocated
                cache = self._new_cache(rows, self.dtype, False)
            if self.keeps(cache):
                self._cache, self._lease = cache, weakref.ref(lease)
        return cache, lease

    @staticmethod
    def keeps(cache: RowCache) -> bool:
        """Whether a cache is worth keeping: where steps are recorded."""
        return cache.on_gpu

    def temporary_cache(self, rows: int) -> tuple[RowCache, CacheLease]:
        """Return a cache that is not kept, such as that of a beam, which selects rows after every step."""
        return self._new_cache(rows, self.dtype, True), CacheLease()
