"""What models with a fixed window of history share: windows, scoring in bounded memory, and a state of token ids.

Shapes: B rows, T tokens to predict, C tokens of history (N - 1), M = C + T - 1 inputs, D width.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.interface import ContextPolicy, HistoryState, Loss, State, Windows
from lmlab.layers.heads import (
    Head,
    log_probabilities,
    summed_nats,
)
from lmlab.models.families.softmax import SoftmaxModel

POSITIONS_AT_ONCE = 1 << 13
"""Predictions made in one go while scoring, so that a long text needs no more memory than a short one."""


class WindowedModel(SoftmaxModel):
    """p(token | the last C tokens), where missing history is the begin symbol, id `vocab_size`.

    A model of this kind says how it turns windows into hidden vectors (`hidden`), and which head reads them (`head`).
    """

    context: int

    def __init__(self, config: Any, vocab_size: int, context: int) -> None:
        super().__init__(config, vocab_size)
        self.context, self.policy = context, ContextPolicy.last(context)

    @abstractmethod
    def hidden(self, inputs_BM: Tensor, dropout: float, dtype: torch.dtype) -> Tensor:
        """Hidden vectors B×T×D: the one at t has seen inputs t .. t + C - 1, that is the C tokens before token t."""

    @abstractmethod
    def head(self) -> tuple[Tensor, Tensor | None]:
        """weight_VD and bias_V of the output layer (None: no bias)."""

    def loss(self, batch: Windows) -> Loss:
        """Nats and number of the tokens under the mask, each row from its own begin."""
        dropout = self.config.dropout if self.training else 0.0
        hidden_BTD = self.hidden(self.inputs(batch.tokens_BT), dropout, self.compute_dtype)
        keep_N = None if batch.mask_BT is None else batch.mask_BT.flatten()
        total = summed_nats(hidden_BTD.flatten(0, 1), *self.head(), batch.tokens_BT.flatten(), keep_N)
        return Loss(total=total, count=batch.count)

    @torch.no_grad()
    def said_by(self, head: Head, numbers: int, tokens_BT: Tensor) -> Tensor:
        """What the head says of each token given the C before it, so many numbers, B×T×F, a stretch of time after the other."""
        rows, length = tokens_BT.shape
        inputs_BM = self.inputs(tokens_BT)
        stretch = max(1, POSITIONS_AT_ONCE // max(rows, 1))
        found_BTF = torch.empty(rows, length, numbers, device=tokens_BT.device)
        for start in range(0, length, stretch):
            stop = min(start + stretch, length)
            hidden_BTD = self.hidden(inputs_BM[:, start : stop + self.context - 1], 0.0, torch.float32)
            found_NF = head(hidden_BTD.flatten(0, 1), *self.head(), tokens_BT[:, start:stop].flatten())
            found_BTF[:, start:stop] = found_NF.view(rows, -1, numbers)
        return found_BTF

    def begin(self, rows: int) -> tuple[Tensor, State]:
        """Log-probabilities of the first token, and a history of begin symbols."""
        state = HistoryState.empty(rows, self.context, self.vocab_size, self.head()[0].device)
        return self._after(state), state

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probabilities of the token after these; the history moves on."""
        assert isinstance(state, HistoryState)
        state = state.push(tokens_BT)
        return self._after(state), state

    def inputs(self, tokens_BT: Tensor) -> Tensor:
        """C begin symbols, then all tokens but the last, which predicts nothing."""
        return F.pad(tokens_BT[:, :-1], (self.context, 0), value=self.vocab_size)

    @torch.no_grad()
    def _after(self, state: HistoryState) -> Tensor:
        return log_probabilities(self.hidden(state.history_BN, 0.0, torch.float32)[:, -1], *self.head())


def chosen(hidden_BTD: Tensor, batch: Windows) -> tuple[Tensor, Tensor]:
    """The hidden vectors N×D and targets N under the mask (all of them without one)."""
    if batch.mask_BT is None:
        return hidden_BTD.flatten(0, 1), batch.tokens_BT.flatten()
    return hidden_BTD[batch.mask_BT], batch.tokens_BT[batch.mask_BT]
