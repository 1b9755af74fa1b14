"""What a `gpt` remembers of the tokens read so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from torch import Tensor

from lmlab.interface import State, spend
from lmlab.layers.row_cache import RowCache
from lmlab.models._gpt_decoder import CacheLease, GPTDecoder


class GPTMemory(State):
    """Rows of a `gpt`: a `GPTState` where all have read equally many tokens, else `GPTRows`."""

    decoder: GPTDecoder

    @classmethod
    def concat(cls, states: Sequence[GPTMemory]) -> GPTMemory:
        """Return one state with the rows of all states: in the cache of the first, if it has room. Spends them."""
        plain = [state for state in states if isinstance(state, GPTState)]
        if len(plain) == len(states) and len({state.length for state in plain}) == 1:
            spend(states)
            return GPTState.of_equal_length(plain)
        rows = [state.rows for state in states]
        first, *others = states
        if isinstance(first, GPTRows) and first.cache.capacity >= sum(rows):
            first.spend()
            joined = GPTRows(first.cache, first.lease, np.pad(first.lengths_B, (0, sum(rows[1:]))), first.decoder)
        else:
            cache, lease = first.decoder.acquire_cache(sum(rows))
            joined, others = GPTRows(cache, lease, np.zeros(sum(rows), dtype=np.int64), first.decoder), list(states)
        start = sum(rows) - sum(state.rows for state in others)
        for state in others:
            state.spend()
            joined.put(torch.arange(start, start + state.rows, device=joined.device), state)
            start += state.rows
        return joined

    @property
    def rows(self) -> int:
        """The number of rows."""
        raise NotImplementedError


@final
class GPTState(GPTMemory):
    """Keys and values of every block, and the tokens of the current window (to start the next one)."""

    def __init__(self, kv_L2BHCD: Tensor, window_BT: Tensor, filled: int, decoder: GPTDecoder) -> None:
        super().__init__()
        self.kv_L2BHCD, self.filled, self.decoder = kv_L2BHCD, filled, decoder
        self._window_BT, self._later = window_BT, list[int]()

    @classmethod
    def of_equal_length(cls, states: Sequence[GPTState]) -> GPTState:
        """Return the rows of states that have read equally many tokens: of keys and values only the positions filled."""
        filled, (layers, two, _, *rest) = states[0].filled, states[0].kv_L2BHCD.shape
        kv_L2BHCD = states[0].kv_L2BHCD.new_empty(layers, two, sum(state.rows for state in states), *rest)
        kv_L2BHCD[..., :filled, :] = torch.cat([state.kv_L2BHCD[..., :filled, :] for state in states], dim=2)
        return cls(kv_L2BHCD, torch.cat([state.window_BT for state in states]), filled, states[0].decoder)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self._window_BT)

    @property
    def length(self) -> int:
        """The number of tokens in the window."""
        return self._window_BT.shape[1] + len(self._later)

    @property
    def window_BT(self) -> Tensor:
        """The tokens of the window."""
        if self._later:  # put together only when somebody looks
            later_1T = torch.tensor([self._later], dtype=self._window_BT.dtype)
            self._window_BT, self._later = torch.cat([self._window_BT, later_1T], dim=1), []
        return self._window_BT

    def one_more(self, token: int) -> tuple[Tensor, GPTState]:
        """Read one more token of one row on a CPU; the window has room for it. Returns log p, 1×V, and the next state."""
        logp_1V = self.decoder.read_one(token, self.filled, self.kv_L2BHCD)
        after = GPTState(self.kv_L2BHCD, self._window_BT, self.filled + 1, self.decoder)
        self._later.append(token)  # this state is spent: the list is handed on
        after._later = self._later
        return logp_1V, after

    def select(self, rows_B: Tensor) -> GPTState:
        """Copy, repeat or reorder rows: of keys and values only the positions that are filled."""
        layers, two, _, *rest = self.kv_L2BHCD.shape
        kv_L2BHCD = self.kv_L2BHCD.new_empty(layers, two, len(rows_B), *rest)
        kv_L2BHCD[..., : self.filled, :] = self.kv_L2BHCD[..., : self.filled, :].index_select(2, rows_B)
        return GPTState(kv_L2BHCD, self.window_BT[rows_B], self.filled, self.decoder)


@final
class GPTRows(GPTMemory):
    """Rows of a cache, which may have read different numbers of tokens: see `layers/row_cache.py`."""

    def __init__(self, cache: RowCache, lease: CacheLease, lengths_B: np.ndarray, decoder: GPTDecoder) -> None:
        super().__init__()
        self.cache, self.lease, self.lengths_B, self.decoder = cache, lease, lengths_B, decoder

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.lengths_B)

    @property
    def device(self) -> torch.device:
        """Where the cache lies."""
        return self.cache.cache_L2BKCE.device

    @property
    def even(self) -> bool:
        """Whether all rows have read equally many tokens."""
        return bool((self.lengths_B == self.lengths_B[0]).all())

    def plain(self) -> GPTState:
        """Return a copy as a `GPTState`; all rows have read equally many tokens."""
        rows, length = self.rows, int(self.lengths_B[0])
        kv_L2BHCD = self.cache.cache_L2BKCE[:, :, :rows].to(torch.float32, copy=True)
        return GPTState(kv_L2BHCD, self.cache.tokens_BC[:rows, :length].clone(), length + 1, self.decoder)

    def select(self, rows_B: Tensor) -> GPTRows:
        """Copy, repeat or reorder rows: of keys and values only the positions that are filled."""
        cache, lease = self.decoder.temporary_cache(len(rows_B))
        selected = GPTRows(cache, lease, np.zeros(len(rows_B), dtype=np.int64), self.decoder)
        selected.put(torch.arange(len(rows_B), device=self.device), self, rows_B)
        return selected

    def replace(self, rows_N: Tensor, others: State) -> GPTRows:
        """Return this state with these rows replaced in place."""
        assert isinstance(others, GPTMemory)
        spend([self, others])
        replaced = GPTRows(self.cache, self.lease, self.lengths_B.copy(), self.decoder)
        replaced.put(rows_N, others)
        return replaced

    def put(self, rows_N: Tensor, state: GPTMemory, chosen_N: Tensor | None = None) -> None:
        """Write rows of a state into these rows of the cache: its first ones, or the chosen ones."""
        at_N = rows_N.cpu().numpy()
        if isinstance(state, GPTState):
            length = state.length
            position_N = torch.full_like(rows_N, length + 1)
            self.cache.enter(rows_N, state.kv_L2BHCD[..., : length + 1, :], state.window_BT, position_N)
            self.lengths_B[at_N] = length
            return
        assert isinstance(state, GPTRows)
        chosen_N = torch.arange(len(rows_N), device=rows_N.device) if chosen_N is None else chosen_N
        cache, lengths_N = state.cache, state.lengths_B[chosen_N.cpu().numpy()]
        longest = int(lengths_N.max())
        kv_L2NHTD = cache.cache_L2BKCE[..., : longest + 1, :].index_select(2, chosen_N)
        self.cache.enter(rows_N, kv_L2NHTD, cache.tokens_BC[chosen_N, :longest], cache.position_B[chosen_N])
        self.lengths_B[at_N] = lengths_N

    def step(self, token_B: Tensor) -> tuple[Tensor, GPTRows]:
        """Read one more token in each row. Returns log p, B×V, and the next state."""
        longest = min(int(self.lengths_B.max()) + 2, self.cache.context)  # with the begin symbol and this token
        return self.cache.step(token_B, longest), GPTRows(self.cache, self.lease, self.lengths_B + 1, self.decoder)
