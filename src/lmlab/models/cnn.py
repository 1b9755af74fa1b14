"""`cnn`: causal convolutions, gated (Dauphin 2017) and dilated (van den Oord 2016).

With x⁰_t the embedding of token t - 1, layer l reads K places that lie δ_l = K^l apart, the last of them its own:

    c_t = [n_{t-(K-1)δ}; ...; n_{t-δ}; n_t]     n = norm(x^l), K places side by side
    x^{l+1}_t = x^l_t + (A c_t) ∘ σ(G c_t)      what passes is decided by a gate
    p = softmax(U norm(x^L)_t)

No place reads one after it, and L layers see K^L tokens: as many as a feed-forward window of that length, with weights that
grow with its logarithm. Before the first token stand begin symbols, so a prediction depends on the last K^L tokens alone,
however the text is divided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import Mistake, a_share, at_least_one, within_text
from lmlab.formulas import EMBEDDING, ONE_TOKEN, Part, Shape, Size, powers, product
from lmlab.layers.heads import head_part
from lmlab.models.families.windowed import WindowedModel
from lmlab.models.sizing import Appetite, with_settings

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts

BATCH = (16, 128)  # rows, tokens: long rows, since each begins with a window of begin symbols
MOST_CONTEXT = 4096  # tokens: a window is read whole for every token that is written
MOST_LOG = math.log(MOST_CONTEXT) + 1e-9  # as a logarithm, since the number itself may have no end
WORDS_FROM = 2048  # vocabulary from which a token is more like a word than a character, and fewer of them tell as much
WIDTHS = [32, 48, 64, 96, 128, 192, 256, 384, 512]
APPETITE = Appetite(batch_tokens=BATCH[0] * BATCH[1], tokens_per_weight=8.0, weights_per_token=2.0)


@dataclass(frozen=True, kw_only=True)
class CNNConfig:
    """Settings of `cnn`; None is filled in by what suits the text and the budget."""

    layers: int | None = None  # of convolutions, each reaching further back
    width: int | None = None  # of the vector of a place
    kernel: int = 2  # K, places that a layer reads; the model sees kernel^layers tokens
    dropout: float | None = None  # of what a layer adds, and of what the output layer reads

    def __post_init__(self) -> None:
        at_least_one("cnn", layers=self.layers, width=self.width, kernel=self.kernel)
        a_share("cnn", dropout=self.dropout)
        if self.layers is not None and self.kernel > 1 and self.layers * math.log(self.kernel) > MOST_LOG:
            raise Mistake(
                f"cnn: {self.layers} layers of kernel {self.kernel} see more than {MOST_CONTEXT} tokens, {self.kernel} to the"
                f" power of {self.layers}; choose fewer",
                code="cnn-context-too-long",
            )


class CNN(WindowedModel):
    """A stack of gated, dilated, causal convolutions."""

    name = "cnn"
    Config = CNNConfig
    default_learning_rate: ClassVar[float] = 0.012
    batch_shape = BATCH
    logits_follow: ClassVar[tuple[str, ...]] = ("output_VD",)
    letters: ClassVar[dict[str, str]] = {"layers": "L", "width": "D", "kernel": "K"}

    def __init__(self, config: CNNConfig, vocab_size: int) -> None:
        layers, width, kernel = config.layers, config.width, config.kernel
        if not (layers and width) or config.dropout is None:
            raise AssertionError("resolve first")
        super().__init__(config, vocab_size, context=kernel**layers)
        self.dilations = [kernel**layer for layer in range(layers)]
        self.embedding_VD = nn.Parameter(torch.randn(vocab_size + 1, width))
        self.norms = nn.ParameterList(torch.ones(width) for _ in range(layers + 1))
        scale = (kernel * width) ** -0.5
        self.convolutions = nn.ParameterList(torch.randn(2 * width, kernel * width) * scale for _ in range(layers))
        self.output_VD = nn.Parameter(torch.zeros(vocab_size, width))

    def hidden(self, inputs_BM: Tensor, dropout: float, dtype: torch.dtype) -> Tensor:
        """norm(x^L) for the C words before each place. Each layer leaves out the places that see too little."""
        width, kernel = self.output_VD.shape[1], self.config.kernel
        x_BTD = F.embedding(inputs_BM, self.embedding_VD)
        for norm_D, weight, dilation in zip(self.norms, self.convolutions, self.dilations, strict=False):
            n_BTD = F.layer_norm(x_BTD, (width,), norm_D).to(dtype)
            length = n_BTD.shape[1] - (kernel - 1) * dilation
            taps = [n_BTD[:, k * dilation : k * dilation + length] for k in range(kernel)]
            gated_BTD = F.glu(F.linear(torch.cat(taps, dim=-1), weight.to(dtype)), dim=-1)
            x_BTD = x_BTD[:, -length:] + F.dropout(gated_BTD, dropout, training=dropout > 0).to(x_BTD.dtype)
        x_BTD = F.layer_norm(x_BTD, (width,), self.norms[-1]).to(dtype)
        return F.dropout(x_BTD, dropout, training=dropout > 0)

    def head(self) -> tuple[Tensor, None]:
        """U, without a bias."""
        return self.output_VD, None

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """Every convolution at all places that later layers read, those before the first token included; and U.

        Layer l (from 1) is computed at T + K^L - K^l places.
        """
        c = config
        matrix = 2 * c.kernel * c.width**2
        places = shape.rows * (c.layers * (shape.tokens + c.kernel**c.layers) - powers(c.kernel, c.layers))
        return [
            Part(EMBEDDING, (vocab_size + 1) * c.width),
            Part("convolutions", c.layers * (matrix + c.width), c.layers * matrix, product(places, 1, matrix)),
            Part("norm", c.width),
            head_part(vocab_size, c.width, shape),
        ]

    def hidden_matrices(self) -> dict[str, int]:
        """A and G of every layer."""
        return {f"convolutions.{layer}": 2 for layer in range(len(self.dilations))}

    @classmethod
    def resolve(cls, config: CNNConfig, facts: TextFacts, budget: Budget) -> CNNConfig:
        """The widest layers that the budget can train and the text can fill; explicit settings are kept."""
        kernel = config.kernel
        if config.layers is not None:
            within_text("cnn", facts.train_tokens, context=kernel**config.layers)
        reach = min(16 if facts.vocab_size >= WORDS_FROM else 32, max(1, facts.train_tokens // 8))
        layers = 1
        while kernel > 1 and kernel ** (layers + 1) <= reach:
            layers += 1

        def at(width: int) -> CNNConfig:
            return CNNConfig(kernel=kernel, layers=layers, width=width, dropout=0.0)

        # Sized as if nothing were set: the cells of a sweep then differ in what is swept alone.
        chosen = at(config.width or APPETITE.size(WIDTHS, at, cls.parts, facts, budget))
        return APPETITE.with_dropout(with_settings(chosen, config), config.dropout, facts, budget)
