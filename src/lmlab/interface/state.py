"""The state of a language model: what it remembers of the tokens so far."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class State(ABC):
    """What a model remembers of the tokens so far, one row per sequence.

    A state may be advanced once and is then spent, so that a key-value cache can be written in place. Copy it first
    with `select` to go on from it twice.
    """

    def __init__(self) -> None:
        self._spent = False

    def spend(self) -> None:
        """Mark the state as used. Models call this first in `advance`; a second use is a programming mistake."""
        if self._spent:
            raise RuntimeError(
                "this State was advanced already; copy it with state.select(rows) before advancing twice"
            )
        self._spent = True

    @abstractmethod
    def select(self, rows_B: Tensor) -> State:
        """Return a new, unspent state whose row i is a copy of row rows_B[i]. Rows may repeat or be left out."""


class HistoryState(State):
    """The last N token ids of each row, for models whose memory is a fixed window. Missing history is `begin_id`."""

    def __init__(self, history_BN: Tensor) -> None:
        super().__init__()
        self.history_BN = history_BN

    @classmethod
    def empty(cls, rows: int, length: int, begin_id: int, device: torch.device | None = None) -> HistoryState:
        """Return the state before any token: every slot holds `begin_id`."""
        return cls(torch.full((rows, length), begin_id, dtype=torch.long, device=device))

    def select(self, rows_B: Tensor) -> HistoryState:
        """Copy, repeat or reorder rows."""
        return HistoryState(self.history_BN[rows_B])

    def push(self, tokens_BT: Tensor) -> HistoryState:
        """Return the state after these tokens; this one is spent."""
        self.spend()
        length = self.history_BN.shape[1]
        joined = torch.cat([self.history_BN, tokens_BT], dim=1)
        return HistoryState(joined[:, joined.shape[1] - length :])
