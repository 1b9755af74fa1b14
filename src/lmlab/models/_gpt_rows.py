"""Rows of `gpt` that may have read differently many tokens: the state of `layers/fast/many_rows.py`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lmlab.interface import State
from lmlab.layers.fast.many_rows import ManyRows
from lmlab.models._gpt_desks import Lease


class GPTRows(State):
    """Caches of fixed shape, and how many tokens the window of each row has."""

    def __init__(self, desk: ManyRows, lease: Lease, lengths_B: np.ndarray) -> None:
        super().__init__()
        self.desk, self.lease, self.lengths_B = desk, lease, lengths_B

    @classmethod
    def entered(cls, desk: ManyRows, lease: Lease, kv_L2BHCD: Tensor, window_BT: Tensor) -> GPTRows:
        """Rows that have read equally much, as the plain state holds them."""
        rows, length = window_BT.shape
        rows_B = torch.arange(rows, device=window_BT.device)
        desk.enter(rows_B, kv_L2BHCD[..., : length + 1, :], window_BT, torch.full_like(rows_B, length + 1))
        return cls(desk, lease, np.full(rows, length))

    @property
    def even(self) -> bool:
        """Whether all rows have read equally much."""
        return bool((self.lengths_B == self.lengths_B[0]).all())

    def plain(self) -> tuple[Tensor, Tensor, int]:
        """Of even rows the keys and values, the window and how many positions are filled, as the plain state holds them.

        In memory of their own: the desk may be given to others now.
        """
        rows, length = len(self.lengths_B), int(self.lengths_B[0])
        kv_L2BHCD = self.desk.cache_L2BHCD[:, :, :rows].to(torch.float32, copy=True)
        return kv_L2BHCD, self.desk.tokens_BC[:rows, :length].clone(), length + 1

    def select(self, rows_B: Tensor) -> GPTRows:
        """Copy, repeat or reorder rows: of keys and values only the positions that are filled."""
        lengths_B = self.lengths_B[rows_B.cpu().numpy()]
        desk = ManyRows(self.desk.source, len(rows_B), self.desk.dtype, selected=True)
        rows = GPTRows(desk, Lease(), lengths_B)
        rows.put(torch.arange(len(rows_B), device=rows_B.device), self, rows_B)
        return rows

    def put(self, rows_N: Tensor, other: GPTRows, others_N: Tensor | None = None) -> None:
        """Make these rows copies of another state's: of the first ones, or of those named."""
        if others_N is None:
            others_N = torch.arange(len(rows_N), device=rows_N.device)
        desk, lengths_N = other.desk, other.lengths_B[others_N.cpu().numpy()]
        longest = int(lengths_N.max())
        kv_L2NHTD = desk.cache_L2BHCD[..., : longest + 1, :].index_select(2, others_N)
        self.desk.enter(rows_N, kv_L2NHTD, desk.tokens_BC[others_N, :longest], desk.position_B[others_N])
        self.lengths_B[rows_N.cpu().numpy()] = lengths_N

    def step(self, token_B: Tensor) -> tuple[Tensor, GPTRows]:
        """log p after one more token in each row."""
        return self.desk.step(token_B), GPTRows(self.desk, self.lease, self.lengths_B + 1)
