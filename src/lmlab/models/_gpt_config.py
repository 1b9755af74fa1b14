"""The settings of `gpt`: what they are, how they are chosen for a text and a budget, and what the model is made of."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lmlab.config import Mistake, a_share, above_zero, at_least_one, one_of, within_text
from lmlab.formulas import EMBEDDING, ONE_TOKEN, Part, Shape, Size, shared_out
from lmlab.layers.blocks import block_parts
from lmlab.layers.composition import EPSILON, GATED, ROTARY_BASE, Activation, Biases, Composition, Norm
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
    """Settings of `gpt`; None is filled in by what suits the text and the budget.

    Those of `omitted_at_default`, which `config.recorded` reads, compose the blocks. With their defaults, and relu2 or gelu as
    `activation`, a block is the lab's own.
    """

    omitted_at_default: ClassVar[tuple[str, ...]] = (
        *("norm", "norm_epsilon", "biases", "kv_heads", "head_width", "hidden", "window"),
        *("rotary_base", "rotary_share", "embedding_scale", "output_bias"),
    )

    layers: int | None = None  # blocks of attention and a hidden layer
    width: int | None = None  # of the residual stream
    heads: int | None = None  # of attention in a block; they share its width
    context: int | None = None  # inputs per window
    stride: int | None = None  # predictions per window after the first; by itself half the context
    positions: Positions = "rotary"  # how the place of a token is marked
    activation: Activation = "relu2"  # of the hidden layers, also called mlp; gelu: its tanh form, gelu-erf: exact
    tie: bool | None = None  # one matrix for embedding and output
    dropout: float | None = None  # of embeddings and of what a block adds

    norm: Norm = "layer"  # LayerNorm without or with a bias, or RMSNorm
    norm_epsilon: float = EPSILON  # added to the variance in a norm
    biases: Biases = "none"  # which linear maps of a block have one
    kv_heads: int | None = None  # heads of keys and values; auto: as many as heads
    head_width: int | None = None  # of queries, keys and values; auto: width divided by heads
    hidden: int | None = None  # units of a hidden layer; auto: 4 times the width, 8/3 if gated
    window: int | None = None  # inputs that a position sees; auto: all before it
    rotary_base: float = ROTARY_BASE  # of the frequencies of rotary positions
    rotary_share: float = 1.0  # share of each head that rotary positions turn
    embedding_scale: float | None = None  # factor of embeddings; auto: root of the width if tied, else 1
    output_bias: bool | None = None  # whether the output layer has a bias; auto: false

    def __post_init__(self) -> None:
        sizes = {"layers": self.layers, "width": self.width, "heads": self.heads, "kv_heads": self.kv_heads}
        at_least_one("gpt", **sizes, head_width=self.head_width, hidden=self.hidden, window=self.window)
        at_least_one("gpt", context=self.context, stride=self.stride)
        a_share("gpt", dropout=self.dropout)
        above_zero("gpt", norm_epsilon=self.norm_epsilon, rotary_base=self.rotary_base)
        above_zero("gpt", rotary_share=self.rotary_share, embedding_scale=self.embedding_scale)
        one_of("gpt", Positions, positions=self.positions)
        one_of("gpt", Activation, activation=self.activation)
        one_of("gpt", Norm, norm=self.norm)
        one_of("gpt", Biases, biases=self.biases)
        self._refuse_idle_rotation()

    def _refuse_idle_rotation(self) -> None:
        """Settings of rotary positions where positions are not rotary."""
        if self.rotary_share > 1:
            raise Mistake(f"gpt: rotary_share is at most 1; got {self.rotary_share:g}", code="rotary-share-above-one")
        for name in ("rotary_base", "rotary_share"):
            if self.positions != "rotary" and getattr(self, name) != _DEFAULTS[name]:
                raise Mistake(
                    f"{name} changes nothing where positions are {self.positions}; leave it out",
                    code="rotary-setting-without-rotary-positions",
                )


_DEFAULTS = {f.name: f.default for f in dataclasses.fields(GPTConfig)}


def refuse_uneven_heads(config: GPTConfig) -> None:
    """Mistake unless heads share the width, and heads of keys and values share those of queries."""
    heads, kv_heads, width = config.heads, config.kv_heads, config.width
    assert heads is not None
    assert width is not None
    if config.head_width is None and width % heads:
        raise Mistake(
            f"width {width} is not a multiple of heads {heads}; choose heads that divide it",
            code="heads-do-not-divide-width",
        )
    if kv_heads is not None and heads % kv_heads:
        *fitting, most = [str(n) for n in range(1, heads + 1) if heads % n == 0]
        options = f"{', '.join(fitting)} or {most}" if fitting else most
        raise Mistake(
            f"heads {heads} is not a multiple of kv_heads {kv_heads}; use {options} kv_heads",
            code="kv-heads-do-not-divide-heads",
        )


def composition(config: Any) -> Composition:
    """Return what the blocks of a resolved config are composed of. Its sizes are numbers, or symbols in a formula."""
    c = config
    head_width = shared_out(c.width, c.heads) if c.head_width is None else c.head_width
    return Composition(
        width=c.width,
        layers=c.layers,
        heads=c.heads,
        kv_heads=c.heads if c.kv_heads is None else c.kv_heads,
        head_width=head_width,
        hidden=4 * c.width if c.hidden is None else c.hidden,
        norm=c.norm,
        norm_epsilon=c.norm_epsilon,
        activation=c.activation,
        biases=c.biases,
        window=c.window,
        rotary_base=c.rotary_base,
        rotary_share=c.rotary_share,
    )


def gpt_parts(config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
    """Return one table row more than the vocabulary has tokens, for the begin symbol; blocks; a norm; the output layer."""
    c, made_of = config, composition(config)
    learned = [Part("positions", c.context * c.width)] if c.positions == "learned" else []
    return [
        Part(EMBEDDING, (vocab_size + 1) * c.width),
        *learned,
        *block_parts(made_of, shape),
        Part("norm", made_of.norm_vectors * c.width),
        head_part(vocab_size, c.width, shape, bias=bool(c.output_bias), tied=c.tie),
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
    if config.heads is None:
        chosen = dataclasses.replace(chosen, heads=_heads(config, chosen))
    if config.hidden is None and config.activation in GATED:
        chosen = dataclasses.replace(chosen, hidden=_gated_hidden(chosen.width))
    chosen = with_settings(chosen, config)
    refuse_uneven_heads(chosen)
    return APPETITE.with_dropout(chosen, config.dropout, facts, budget)


def _heads(config: GPTConfig, chosen: GPTConfig) -> int:
    """Return the heads of a config that leaves them open: a multiple of `kv_heads` that shares the width."""
    width, kv_heads = chosen.width, config.kv_heads or 1
    assert width is not None
    assert chosen.heads is not None
    if config.head_width is not None:
        return max(1, round(width / config.head_width / kv_heads)) * kv_heads
    if chosen.heads % kv_heads == 0:
        return chosen.heads
    even = config.positions == "rotary"
    fitting = [n for n in range(kv_heads, width + 1, kv_heads) if width % n == 0 and not (even and width // n % 2)]
    if not fitting:
        raise Mistake(
            f"no multiple of kv_heads {kv_heads} divides width {width}; choose other kv_heads, or set head_width",
            code="kv-heads-do-not-fit-width",
        )
    return fitting[0]


def _gated_hidden(width: int | None) -> int:
    """Return the hidden units that give a gated network of three matrices about the weights of two that are 4 times as wide."""
    assert width is not None
    return -(-8 * width // 3 // 8) * 8
