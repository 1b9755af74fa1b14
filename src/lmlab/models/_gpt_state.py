"""What a `gpt` remembers of texts that have read equally much."""

from __future__ import annotations

import torch
from torch import Tensor

from lmlab.interface import State
from lmlab.layers.fast.one_row_in_c import Row


class GPTState(State):
    """Keys and values of every block, and the tokens of the current window (to start the next one).

    one_row: the way to read one more token, where there is one text; it knows the weights already.
    """

    def __init__(self, kv_L2BHCD: Tensor, window_BT: Tensor, filled: int, one_row: Row | None = None) -> None:
        super().__init__()
        self.kv_L2BHCD, self.filled, self.one_row = kv_L2BHCD, filled, one_row
        self._window_BT, self._later = window_BT, list[int]()

    @property
    def window_BT(self) -> Tensor:
        """The tokens of the window."""
        if self._later:  # put together only when somebody looks
            later_1T = torch.tensor([self._later], dtype=self._window_BT.dtype)
            self._window_BT, self._later = torch.cat([self._window_BT, later_1T], dim=1), []
        return self._window_BT

    def one_more(self, token: int) -> tuple[Tensor, GPTState]:
        """log p of what follows one more token of one text, 1×V, and the state then; the window has place for it."""
        assert self.one_row is not None
        logp_1V = self.one_row.log_probabilities(token, self.filled, self.kv_L2BHCD)
        after = GPTState(self.kv_L2BHCD, self._window_BT, self.filled + 1, self.one_row)
        self._later.append(token)  # this state is spent: the list is handed on
        after._later = self._later
        return logp_1V, after

    def select(self, rows_B: Tensor) -> GPTState:
        """Copy, repeat or reorder rows: of keys and values only the positions that are filled."""
        layers, two, _, *rest = self.kv_L2BHCD.shape
        kv_L2BHCD = self.kv_L2BHCD.new_empty(layers, two, len(rows_B), *rest)
        kv_L2BHCD[..., : self.filled, :] = self.kv_L2BHCD[..., : self.filled, :].index_select(2, rows_B)
        return GPTState(kv_L2BHCD, self.window_BT[rows_B], self.filled)
