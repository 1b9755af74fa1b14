"""The state of a language model: its memory of the tokens read so far."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class State(ABC):
    """The memory of a language model of the tokens read so far, one row per sequence.

    A state can be advanced once and is then spent, so that a key-value cache can be written in place. To continue from a state
    twice, copy it first with `select`.
    """

    def __init__(self) -> None:
        self._spent = False

    def spend(self) -> None:
        """Mark the state as spent. Models call this first in `advance`.

        Raises:
            RuntimeError: the state is spent already, which is a programming error.
        """
        if self._spent:
            raise RuntimeError(
                "this State was advanced already; copy it with state.select(rows) before advancing twice"
            )
        self._spent = True

    @abstractmethod
    def select(self, rows_B: Tensor) -> State:
        """Return a new, unspent state whose row i is a copy of row rows_B[i]. Rows may be repeated or omitted."""


class HistoryState(State):
    """The last N token ids of each row, for models with a fixed context window. Missing history is `begin_id`."""

    def __init__(self, history_BN: Tensor) -> None:
        super().__init__()
        self.history_BN = history_BN

    @classmethod
    def empty(cls, rows: int, length: int, begin_id: int, device: torch.device | None = None) -> HistoryState:
        """Return the state before the first token: every position holds `begin_id`."""
        return cls(torch.full((rows, length), begin_id, dtype=torch.long, device=device))

    def select(self, rows_B: Tensor) -> HistoryState:
        """Return a new state with these rows, which may be repeated, reordered or omitted."""
        return HistoryState(self.history_BN[rows_B])

    def push(self, tokens_BT: Tensor) -> HistoryState:
        """Append tokens to each row and return the next state. Spends this state."""
        self.spend()
        length = self.history_BN.shape[1]
        joined = torch.cat([self.history_BN, tokens_BT], dim=1)
        return HistoryState(joined[:, joined.shape[1] - length :])
