"""The state of a `huggingface` model: the tokens of the current window, and the library's key-value cache."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lmlab.interface import State


class WindowState(State):
    """The tokens of the current window (B×T), and a cache that holds its first `filled` inputs.

    cache: of the library; None if the network has none that can be copied, so that the window is read again.
    """

    def __init__(self, cache: Any, window_BT: Tensor, filled: int) -> None:
        super().__init__()
        self.cache, self.window_BT, self.filled = cache, window_BT, filled

    def select(self, rows_B: Tensor) -> WindowState:
        """Return a new state with copies of these rows, which may be repeated, reordered or omitted."""
        cache = None if self.cache is None else copied(self.cache, rows_B)
        return WindowState(cache, self.window_BT[rows_B], self.filled if cache is not None else 0)

    @classmethod
    def concat(cls, states: Sequence[WindowState]) -> WindowState:
        """Return one state with the rows of all these states, which must have read the same number of tokens.

        The cache is rebuilt when the state is advanced. The states stay unspent.
        """
        return cls(None, torch.cat([state.window_BT for state in states]), 0)


def copied(cache: Any, rows_B: Tensor) -> Any:
    """Return a copy of these rows of a cache; None if its class cannot select rows."""
    try:
        copy_of_cache = copy.deepcopy(cache)
        copy_of_cache.batch_select_indices(rows_B)
    except (AttributeError, NotImplementedError, TypeError):
        return None
    return copy_of_cache
