"""The settings of `gpt`: what they are, how they are chosen for a text and a budget, and what the model is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lmlab.config import a_share, at_least_one, one_of, within_text
from lmlab.formulas import EMBEDDING, ONE_TOKEN, Part, Shape, Size
from lmlab.layers.blocks import Activation, block_parts
from lmlab.layers.heads import head_part
from lmlab.models.sizing import Appetite, heads_of, tokens_in_budget, with_settings

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts

Positions = Literal["rotary", "learned", "sinusoidal"]

SHORT_CONTEXT, MANY_TOKENS = 128, 1_500_000  # a budget that reads fewer learns nothing from what lies further back
BATCH_TOKENS = 2048  # per step: fewer starve the matrix units, more make fewer steps of the same budget
HEAD_WIDTH = 64  # narrower heads predict a little better per step, and cost it again in time

# (layers, width), each about twice the one before it. Found on a grid over character and BPE text.
SIZES = [(2, 64), (3, 96), (4, 128), (4, 192), (6, 192), (6, 256), (8, 320), (8, 448), (10, 576), (12, 768)]
# About one token per weight was best for a fixed amount of computing (the optimum is broad); with more than 5 weights per token
# of text a model only learns it by heart.
APPETITE = Appetite(
    batch_tokens=BATCH_TOKENS, tokens_per_weight=0.9, weights_per_token=5.0, head=False, most_dropout=0.2
)


@dataclass(frozen=True, kw_only=True)
class GPTConfig:
    """Settings of `gpt`; None is filled in by what suits the text and the budget."""

    layers: int | None = None  # blocks of attention and a hidden layer
    width: int | None = None  # of the residual stream
    heads: int | None = None  # of attention in a block; they share its width
    context: int | None = None  # inputs per window
    stride: int | None = None  # predictions per window after the first; by itself half the context
    positions: Positions = "rotary"  # how the place of a token is marked
    activation: Activation = "relu2"  # of the hidden layers
    tie: bool | None = None  # one matrix for embedding and output
    dropout: float | None = None  # of embeddings and of what a block adds

    def __post_init__(self) -> None:
        sizes = {"layers": self.layers, "width": self.width, "heads": self.heads}
        at_least_one("gpt", **sizes, context=self.context, stride=self.stride)
        a_share("gpt", dropout=self.dropout)
        one_of("gpt", Positions, positions=self.positions)
        one_of("gpt", Activation, activation=self.activation)


def gpt_parts(config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
    """Return one table row more than the vocabulary has tokens, for the begin symbol; blocks; a norm; the output layer."""
    c = config
    learned = [Part("positions", c.context * c.width)] if c.positions == "learned" else []
    return [
        Part(EMBEDDING, (vocab_size + 1) * c.width),
        *learned,
        *block_parts(c.width, c.layers, shape),
        Part("norm", c.width),
        head_part(vocab_size, c.width, shape, tied=c.tie),
    ]


def resolve_gpt(config: GPTConfig, facts: TextFacts, budget: Budget) -> GPTConfig:
    """Size the model to what the budget can train and the text can feed; explicit settings are kept."""
    within_text("gpt", facts.train_tokens, context=config.context)
    context = max(2, min(256, facts.train_tokens // 8))
    tie = True if config.tie is None else config.tie  # fewer weights, which learn more in the same steps

    def at(size: tuple[int, int], context: int = context) -> GPTConfig:
        heads, stride = heads_of(size[1], HEAD_WIDTH, even=config.positions == "rotary"), max(1, context // 2)
        return GPTConfig(
            layers=size[0], width=size[1], heads=heads, context=context, stride=stride, tie=tie, dropout=0.0
        )

    # Sized as if nothing were set: the cells of a sweep then differ in what is swept alone.
    layers, width = APPETITE.size(SIZES, at, gpt_parts, facts, budget)
    if budget.seconds is not None:  # steps and tokens mean the same everywhere
        read = tokens_in_budget(budget, facts, at((layers, width)), BATCH_TOKENS)
        context = min(context, SHORT_CONTEXT) if read < MANY_TOKENS else context
    chosen = at((config.layers or layers, config.width or width), config.context or context)
    return APPETITE.with_dropout(with_settings(chosen, config), config.dropout, facts, budget)
