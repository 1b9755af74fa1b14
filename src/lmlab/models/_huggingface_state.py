"""The state of a `huggingface` model: the tokens of the current window, and the library's key-value cache."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lmlab.interface import State
from lmlab.interface.state import spend


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
    def concat(cls, states: Sequence[WindowState]) -> WindowState | None:
        """Return one state with the rows of all states. Spends them.

        Returns:
            None if they have read different numbers of tokens, or their caches cannot be joined.
        """
        if len({(state.window_BT.shape[1], state.filled) for state in states}) > 1:
            return None
        cache = joined([state.cache for state in states])
        if cache is None and states[0].cache is not None:
            return None
        spend(states)
        window_BT = torch.cat([state.window_BT for state in states])
        return WindowState(cache, window_BT, states[0].filled)


def copied(cache: Any, rows_B: Tensor) -> Any:
    """Return a copy of these rows of a cache; None if its class cannot select rows."""
    try:
        copy_of_cache = copy.deepcopy(cache)
        copy_of_cache.batch_select_indices(rows_B)
    except (AttributeError, NotImplementedError, TypeError):
        return None
    return copy_of_cache


def joined(caches: Sequence[Any]) -> Any:
    """Return one cache with the rows of all these; None if their class keeps something else than keys and values."""
    layers = [getattr(cache, "layers", None) for cache in caches]
    if not all(layers):
        return None
    whole = copy.deepcopy(caches[0])
    for number, layer in enumerate(whole.layers):
        for name in ("keys", "values"):
            parts = [getattr(of_cache[number], name, None) for of_cache in layers]  # type: ignore[index]
            if not all(isinstance(part, Tensor) and part.shape[1:] == parts[0].shape[1:] for part in parts):  # type: ignore[union-attr]
                return None
            setattr(layer, name, torch.cat(parts))  # type: ignore[arg-type]
    return whole
