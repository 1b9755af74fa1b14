"""Caches of rows that may have read different numbers of tokens.

Shapes: B rows, N some of them, L layers, K heads of keys and values, C context, E width of a head, V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import final

import torch
from torch import Tensor


class RowCache(ABC):
    """Keys, values and tokens of the window of each row, and where each row stands. There may be more rows than are used."""

    def __init__(self, shape: tuple[int, int, int, int, int, int], dtype: torch.dtype, device: torch.device) -> None:
        """shape: of the keys and values, L×2×B×K×C×E."""
        self.capacity, self.context = shape[2], shape[4]
        self.on_gpu = device.type == "cuda"
        with torch.inference_mode(False), torch.no_grad():  # buffers that may be written to in any mode
            # Zeros: what is not seen is multiplied by zero, so it must be finite.
            self.cache_L2BKCE = torch.zeros(shape, dtype=dtype, device=device)
            self.tokens_BC = torch.zeros(self.capacity, self.context, dtype=torch.long, device=device)
            self.position_B = torch.ones(self.capacity, dtype=torch.long, device=device)  # the next input; 0: the begin

    @staticmethod
    def capacity_for(rows: int) -> int:
        """Return the number of rows of a cache that these rows use."""
        return rows

    @torch.no_grad()
    def clear(self) -> None:
        """Forget all rows."""
        self.cache_L2BKCE.zero_()
        self.position_B.fill_(1)

    @torch.no_grad()
    def enter(self, rows_N: Tensor, kv_L2NKTE: Tensor, tokens_NT: Tensor, position_N: Tensor) -> None:
        """Write what these rows have read so far."""
        length = kv_L2NKTE.shape[4]
        self.cache_L2BKCE[:, :, rows_N, :, :length] = kv_L2NKTE.to(self.cache_L2BKCE.dtype)
        self.tokens_BC[rows_N, : tokens_NT.shape[1]] = tokens_NT
        self.position_B[rows_N] = position_N.clamp(max=self.context - 1)  # beyond it a window is over

    @abstractmethod
    def step(self, token_B: Tensor, longest: int) -> Tensor:
        """Read one more token in each of the first rows. Returns log p of the next token, B×V, float32.

        Args:
            longest: positions that the longest of these rows has then.
        """


@final
class PlainRowCache(RowCache):
    """A cache for models of any composition: `read` takes tokens, their positions, and the cache as far as it is filled."""

    def __init__(
        self,
        read: Callable[[Tensor, Tensor, Tensor, torch.dtype], Tensor],
        shape: tuple[int, int, int, int, int, int],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        super().__init__(shape, dtype, device)
        self._read, self._dtype = read, dtype

    @torch.no_grad()
    def step(self, token_B: Tensor, longest: int) -> Tensor:
        """Read one more token in each row, asking for one kernel after the other."""
        rows = len(token_B)
        position_B = self.position_B[:rows].clone()
        self.tokens_BC[:rows].scatter_(1, position_B[:, None] - 1, token_B[:, None])
        self.position_B[:rows] = (position_B + 1).clamp(max=self.context - 1)
        return self._read(token_B, position_B, self.cache_L2BKCE[:, :, :rows, :, :longest], self._dtype)
