"""The uniform model: every token is equally likely, always. The floor under every other model.

It scores exactly log(V) nats a token, so it also measures the measuring: log2(V) bits a token, to the last digit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import torch
from torch import Tensor

from lmlab.interface import ContextPolicy, CountModel, HistoryState, State
from lmlab.models._natural_log import natural_log

if TYPE_CHECKING:
    from lmlab.text.pieces import Vocabulary
    from lmlab.text.stream import TokenStream


@dataclass(frozen=True, kw_only=True)
class UniformConfig:
    """Nothing to set: the vocabulary is the whole model."""


class Uniform(CountModel):
    """p(token) = 1 / V."""

    name: ClassVar[str] = "uniform"
    Config: ClassVar[type] = UniformConfig

    policy = ContextPolicy.nothing()
    portable: ClassVar[bool] = True

    def __init__(self, config: UniformConfig, vocab_size: int) -> None:
        self.config, self.vocab_size = config, vocab_size

    @classmethod
    def fit(cls, config: UniformConfig, vocabulary: Vocabulary, train: TokenStream) -> Self:
        """There is nothing to learn: the training text is not looked at."""
        return cls(config, vocabulary.size)

    def score(self, tokens_BT: Tensor) -> Tensor:
        """log V nats for every token."""
        return torch.full(tokens_BT.shape, natural_log(self.vocab_size), dtype=torch.float32)

    def begin(self, rows: int) -> tuple[Tensor, State]:
        """The uniform distribution, and a state that remembers nothing."""
        return self._logp(rows), HistoryState.empty(rows, 0, self.vocab_size)

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        """The uniform distribution again: history changes nothing."""
        assert isinstance(state, HistoryState)
        return self._logp(len(tokens_BT)), state.push(tokens_BT)

    def _logp(self, rows: int) -> Tensor:
        return torch.full((rows, self.vocab_size), -natural_log(self.vocab_size), dtype=torch.float32)

    def tensors(self) -> dict[str, Tensor]:
        """Nothing was learned."""
        return {}

    @classmethod
    def from_tensors(cls, config: UniformConfig, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """The model of this vocabulary."""
        return cls(config, vocab_size)
