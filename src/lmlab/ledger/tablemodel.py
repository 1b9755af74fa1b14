"""A language model that is a table: the joint probability of two tokens, so that the lab's decoding can be run on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor

from lmlab.interface import ContextPolicy, HistoryState, LanguageModel, State
from lmlab.text.tokenizers import train_tokenizer


class TwoTokens(LanguageModel):
    """p(y1, y2) by a table keyed by two letters (bishop12 12.15); weights are normalised, other tokens have probability 0."""

    name = "two-tokens"
    Config = dict

    def __init__(self, table: dict[str, float]) -> None:
        letters = sorted({letter for pair in table for letter in pair})
        self.tokenizer = train_tokenizer("char", ["".join(letters)])
        self.config, self.vocab_size, self.policy = table, self.tokenizer.vocab_size, ContextPolicy.last(1)
        self.begin_id = self.vocab_size
        self.joint_VV = torch.zeros(self.vocab_size, self.vocab_size, dtype=torch.float64)
        for pair, weight in table.items():
            first, second = self.tokenizer.encode(pair).ids
            self.joint_VV[first, second] = weight
        self.joint_VV /= self.joint_VV.sum()

    def begin(self, rows: int) -> tuple[Tensor, State]:
        """log p(y1)."""
        return self.joint_VV.sum(1).log().float().expand(rows, -1), HistoryState.empty(rows, 1, self.begin_id)

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        """log p(y2 | y1) after the last token."""
        assert isinstance(state, HistoryState)
        state = state.push(tokens_BT)
        rows_BV = self.joint_VV[state.history_BN[:, -1]]
        return (rows_BV / rows_BV.sum(1, keepdim=True)).log().float(), state

    def score(self, tokens_BT: Tensor) -> Tensor:
        """-log p of both tokens."""
        rows = torch.arange(len(tokens_BT))
        first = -self.begin(len(tokens_BT))[0][rows, tokens_BT[:, 0]]
        joint = self.joint_VV[tokens_BT[:, 0], tokens_BT[:, 1]]
        return torch.stack([first, (-joint.log().float() - first)], dim=1)

    def tensors(self) -> dict[str, Tensor]:
        """The table."""
        return {"joint": self.joint_VV}

    @classmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """The model of the table."""
        return cls(config)
