"""The bag of words: tokens are drawn independently from one shared table.

    p(x_1 .. x_N) = Π p(x_n)
    maximum likelihood   p(w) = c(w) / N                         ("ml")
    add-k                p(w) = (c(w) + k) / (N + k V)           the same after k imagined sightings of every token

Maximum likelihood gives a token it never saw probability zero: such a token costs infinitely many nats, and the score
says so (inf, never NaN). Add-k, the default, is finite on any text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor

from lmlab.config import Mistake
from lmlab.formulas import Part, Size
from lmlab.interface import ContextPolicy, CountModel, HistoryState, State

if TYPE_CHECKING:
    from lmlab.text.pieces import Vocabulary
    from lmlab.text.stream import TokenStream

LEAST_K, MOST_K = 1e-100, 1e12  # whose shares and sums are still numbers, however large the text and the vocabulary
CHUNK = 1 << 22  # tokens counted at once: bincount widens its input to 64 bits, which a large memory map cannot afford


@dataclass(frozen=True, kw_only=True)
class BagConfig:
    """Settings of the bag of words."""

    smoothing: Literal["add-k", "ml"] = "add-k"  # what a token that was never seen gets: add-k something, ml nothing
    k: float = 0.5  # sightings imagined of every token (add-k only); 0.5 is the Jeffreys prior

    def __post_init__(self) -> None:
        if self.smoothing not in ("add-k", "ml"):
            raise Mistake(f"bag smoothing is add-k or ml; got {self.smoothing!r}", code="bag-smoothing-unknown")
        if not LEAST_K <= self.k <= MOST_K:
            usual = f"such as 0.5, from {LEAST_K:g} to {MOST_K:g}"
            raise Mistake(
                f"bag k is a positive number {usual} (for k = 0 set smoothing=ml); got {self.k}",
                code="bag-k-not-positive",
            )


class Bag(CountModel):
    """p(token) = its share of the training text, whatever came before it."""

    name: ClassVar[str] = "bag"
    Config: ClassVar[type] = BagConfig

    policy = ContextPolicy.nothing()
    portable: ClassVar[bool] = True  # a table that is looked up

    def __init__(self, config: BagConfig, logp_V: Tensor) -> None:
        self.config, self.vocab_size, self.logp_V = config, len(logp_V), logp_V

    @classmethod
    def fit(cls, config: BagConfig, vocabulary: Vocabulary, train: TokenStream) -> Self:
        """Count the training tokens."""
        counts_V = np.zeros(vocabulary.size)
        for start in range(0, len(train.ids), CHUNK):
            counts_V += np.bincount(train.ids[start : start + CHUNK], minlength=vocabulary.size)
        if config.smoothing == "add-k":
            counts_V += config.k
        elif not len(train.ids):
            raise Mistake(
                "the maximum-likelihood bag needs at least one training token; use smoothing=add-k",
                code="bag-without-tokens",
            )
        with np.errstate(divide="ignore"):  # log 0 = -inf is what maximum likelihood says of an unseen token
            logp_V = np.log(counts_V) - np.log(counts_V.sum())
        return cls(config, torch.from_numpy(logp_V.astype(np.float32)))

    @classmethod
    def stored(cls, config: BagConfig, vocab_size: Size, distinct: Sequence[Size]) -> list[Part]:
        """A probability for every token."""
        return [Part("probabilities", vocab_size)]

    def score(self, tokens_BT: Tensor) -> Tensor:
        """-log p of each token on its own; inf where maximum likelihood never saw it."""
        return -self.logp_V[tokens_BT]

    def begin(self, rows: int) -> tuple[Tensor, State]:
        """The table, and a state that remembers nothing."""
        return self.logp_V.repeat(rows, 1), HistoryState.empty(rows, 0, self.vocab_size)

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        """The table again: history changes nothing."""
        assert isinstance(state, HistoryState)
        return self.logp_V.repeat(len(tokens_BT), 1), state.push(tokens_BT)

    def tensors(self) -> dict[str, Tensor]:
        """The log-probability of every token."""
        return {"logp": self.logp_V}

    @classmethod
    def from_tensors(cls, config: BagConfig, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """The model with this table."""
        return cls(config, tensors["logp"])

    @property
    def notes(self) -> list[str]:
        """Says how many tokens maximum likelihood holds impossible."""
        impossible = int(torch.isinf(self.logp_V).sum())
        if not impossible:
            return []
        return [f"maximum likelihood: {impossible} of {self.vocab_size} tokens, never seen, cost infinitely many nats"]
