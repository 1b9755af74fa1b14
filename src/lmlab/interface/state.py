"""The state of a language model: its memory of the tokens read so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

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

    @classmethod
    def concat(cls, states: Sequence[Self]) -> State | None:
        """Return one state with the rows of all these states, in order. Spends them.

        The rows of different states may have read different numbers of tokens.

        Returns:
            None if these rows cannot be in one state; no state is spent then. The default never joins states, which is right
            for every model: decoding then advances the states one after the other (see `side_by_side`).
        """
        return None

    def replace(self, rows_N: Tensor, others: State) -> State | None:
        """Return this state with row rows_N[i] replaced by row i of `others`, in place. Spends both.

        Returns:
            None if the model has no faster way than `concat` and `select`, as by default; no state is spent then.
        """
        return None


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

    @classmethod
    def concat(cls, states: Sequence[HistoryState]) -> HistoryState:
        """Return one state with the rows of all states: every history has the same length. Spends them."""
        spend(states)
        return HistoryState(torch.cat([state.history_BN for state in states]))

    def push(self, tokens_BT: Tensor) -> HistoryState:
        """Append tokens to each row and return the next state. Spends this state."""
        self.spend()
        length = self.history_BN.shape[1]
        joined = torch.cat([self.history_BN, tokens_BT], dim=1)
        return HistoryState(joined[:, joined.shape[1] - length :])


def spend(states: Sequence[State]) -> None:
    """Mark all states as spent, which `concat` does with the states it joins."""
    for state in states:
        state.spend()
