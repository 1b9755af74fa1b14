"""The rows of one state and the requests they belong to.

Shapes: B rows, N rows that join, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import torch

from lmlab.interface import advance, side_by_side, with_rows_replaced

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.engine.prefill import Ready
    from lmlab.engine.request import Request
    from lmlab.interface import LanguageModel, State

FEW = 8  # on a GPU rows are given up when only one in so many is used: a row costs less than changing their number


@final
class Batch:
    """Running requests side by side: the distribution of the next token of each, and the state after the tokens so far."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.rows: tuple[Request | None, ...] = ()  # None: a row that nobody uses
        self.busy = 0  # rows that are used
        self.logp_BV: Tensor
        self._state: State

    def join(self, ready: Sequence[Ready]) -> None:
        """Add rows: in place of unused ones as far as there are any. Spends the states."""
        if not ready:
            return
        requests = [request for each in ready for request in each.requests]
        logp_NV = ready[0].logp_NV if len(ready) == 1 else torch.cat([each.logp_NV for each in ready])
        state = side_by_side([each.state for each in ready], [len(each.requests) for each in ready])
        free = [row for row, request in enumerate(self.rows) if request is None] if self.busy else []
        if not self.busy:
            self.rows, self.logp_BV, self._state = tuple(requests), logp_NV, state
        elif len(free) >= len(requests):
            self._fill(free[: len(requests)], requests, logp_NV, state)
        else:
            if free:
                first_N, rest_N = torch.arange(len(requests), device=logp_NV.device).split(
                    [len(free), len(requests) - len(free)]
                )
                self._fill(free, requests[: len(free)], logp_NV[first_N], state.select(first_N))
                requests, logp_NV, state = requests[len(free) :], logp_NV[rest_N], state.select(rest_N)
            self._state = side_by_side([self._state, state], [len(self.rows), len(requests)])
            self.logp_BV = torch.cat([self.logp_BV, logp_NV])
            self.rows = (*self.rows, *requests)
        self.busy = sum(request is not None for request in self.rows)

    def _fill(self, free: list[int], requests: Sequence[Request], logp_NV: Tensor, state: State) -> None:
        rows_N = torch.tensor(free, device=logp_NV.device)
        self._state = with_rows_replaced(self._state, len(self.rows), rows_N, state)
        self.logp_BV = self.logp_BV.index_copy(0, rows_N, logp_NV)
        rows = list(self.rows)
        for row, request in zip(free, requests, strict=True):
            rows[row] = request
        self.rows = tuple(rows)

    def leave(self, request: Request) -> None:
        """Give up the row of a request, if it has one."""
        if request in self.rows:
            self.rows = tuple(None if other is request else other for other in self.rows)
            self.busy -= 1

    def advance(self, ids_B: Tensor) -> None:
        """Read one more token in each row."""
        self.logp_BV, self._state = advance(self.model, ids_B[:, None], self._state)

    def shrink(self, seldom: bool) -> Tensor | None:
        """Give up rows that nobody uses. Returns the rows that are kept; None: all are.

        Args:
            seldom: not before most of them are unused.
        """
        most = len(self.rows) // FEW if seldom else len(self.rows) - 1
        if not 0 < self.busy <= most:
            return None
        places = [row for row, request in enumerate(self.rows) if request is not None]
        rows_B = torch.tensor(places, device=self.logp_BV.device)
        self.logp_BV, self._state = self.logp_BV[rows_B], self._state.select(rows_B)
        self.rows = tuple(self.rows[row] for row in places)
        return rows_B
