"""`feedforward`: the embeddings of the last N - 1 words side by side, one hidden layer, a softmax (Bengio 2003).

It has no direct connections and no output biases.

With x_i the one-hot vector of word i and e_i = E x_i its embedding, the word at t is predicted from those before it:

    e = [e_{t-N+1}; ...; e_{t-1}]         concatenated: (N-1) d numbers
    h = σ(W e + b)                        d_h units
    p = softmax(U h)

which makes |V| (d + d_h) + ((N-1) d + 1) d_h parameters. Ours has d more: before the first word of a
text stands a begin symbol, one more column of E.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import a_share, at_least_one, one_of, within_text
from lmlab.formulas import EMBEDDING, ONE_TOKEN, Part, Shape, Size, joined, linear
from lmlab.layers.activations import ACTIVATIONS, Activation
from lmlab.layers.heads import head_part
from lmlab.models.families.windowed import WindowedModel
from lmlab.models.sizing import Appetite, with_settings

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts

BATCH = (
    32,
    64,
)  # rows, tokens: much longer than the window, so that few windows reach back over the begin of their row
WIDTHS = [32, 64, 128, 256, 512, 1024, 2048]
APPETITE = Appetite(batch_tokens=BATCH[0] * BATCH[1], tokens_per_weight=10.0, weights_per_token=2.0)
WORDS_FROM = 2048  # vocabulary from which a token is more like a word than a character, and tells more


@dataclass(frozen=True, kw_only=True)
class FeedForwardConfig:
    """Settings of `feedforward`; None is filled in by what suits the text and the budget."""

    context: int | None = None  # words of history, N - 1
    embedding_width: int | None = None  # of the vector of a token, d
    width: int | None = None  # of the hidden layer, d_h
    activation: Activation = "gelu"  # of the hidden layer, σ
    dropout: float | None = None  # of hidden units

    def __post_init__(self) -> None:
        sizes = {"context": self.context, "embedding_width": self.embedding_width, "width": self.width}
        at_least_one("feedforward", **sizes)
        a_share("feedforward", dropout=self.dropout)
        one_of("feedforward", Activation, activation=self.activation)


class FeedForward(WindowedModel):
    """Embeddings side by side, one hidden layer, a softmax."""

    name = "feedforward"
    Config = FeedForwardConfig
    default_learning_rate: ClassVar[float] = 0.012
    batch_shape = BATCH
    logits_follow: ClassVar[tuple[str, ...]] = ("output_VH",)
    letters: ClassVar[dict[str, str]] = {"context": "N - 1", "embedding_width": "d", "width": "d_h"}

    def __init__(self, config: FeedForwardConfig, vocab_size: int) -> None:
        context, d, d_h = config.context, config.embedding_width, config.width
        if not (context and d and d_h) or config.dropout is None:
            raise AssertionError("resolve first")
        super().__init__(config, vocab_size, context)
        self.embedding_VD = nn.Parameter(torch.randn(vocab_size + 1, d))
        self.weight_HX = nn.Parameter(torch.randn(d_h, context * d) * (context * d) ** -0.5)
        self.bias_H = nn.Parameter(torch.zeros(d_h))
        self.output_VH = nn.Parameter(torch.zeros(vocab_size, d_h))
        self.activation = ACTIVATIONS[config.activation]

    def hidden(self, inputs_BM: Tensor, dropout: float, dtype: torch.dtype) -> Tensor:
        """h, for the C words before each place."""
        e_BTX = F.embedding(inputs_BM.unfold(1, self.context, 1), self.embedding_VD).flatten(2).to(dtype)
        h_BTH = self.activation(F.linear(e_BTX, self.weight_HX.to(dtype), self.bias_H.to(dtype)))
        return F.dropout(h_BTH, dropout, training=dropout > 0)

    def head(self) -> tuple[Tensor, None]:
        """U, without a bias."""
        return self.output_VH, None

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """E, W and b, U."""
        c = config
        return [
            Part(EMBEDDING, (vocab_size + 1) * c.embedding_width),
            joined("hidden layer", linear(shape.places, c.context * c.embedding_width, c.width, bias=True)),
            head_part(vocab_size, c.width, shape),
        ]

    def hidden_matrices(self) -> dict[str, int]:
        """W."""
        return {"weight_HX": 1}

    @classmethod
    def resolve(cls, config: FeedForwardConfig, facts: TextFacts, budget: Budget) -> FeedForwardConfig:
        """The widest hidden layer that the budget can train and the text can fill; explicit settings are kept."""
        words = facts.vocab_size >= WORDS_FROM
        within_text("feedforward", facts.train_tokens, context=config.context)
        context, d = min(4 if words else 8, max(1, facts.train_tokens // 8)), 64 if words else 32

        def at(width: int) -> FeedForwardConfig:
            return FeedForwardConfig(context=context, embedding_width=d, width=width, dropout=0.0)

        # Sized as if nothing were set: the cells of a sweep then differ in what is swept alone.
        chosen = at(config.width or APPETITE.size(WIDTHS, at, cls.parts, facts, budget))
        return APPETITE.with_dropout(with_settings(chosen, config), config.dropout, facts, budget)
