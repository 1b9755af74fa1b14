"""Models of other people, by their config files: GPT-2, BERT, T5, LLaMA and its kin, and torch's own decoder.

Each is a dataclass with the fields of its config.json that change a count, with the defaults that transformers gives them, and
says what such a model is made of, as our own models do (`Learner.parts`). Tests hold them to real instances.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from lmlab.config import Mistake, at_least_one
from lmlab.formulas import EMBEDDING, HEAD, Part, Shape, Size, joined, linear, shared_out
from lmlab.layers.blocks import attention_work
from lmlab.layers.heads import head_part


def attention_part(
    name: str,
    width: Size,
    heads_width: Size,
    shape: Shape,
    *,
    keys_width: Size | None = None,
    memory: Size | None = None,
    bias: tuple[bool, bool] = (False, False),
    vectors: Size = 0,
    times: Size = 1,
) -> Part:
    """Queries, keys, values and the matrix behind the heads. vectors: weights of the norm before or after it.

    heads_width: of all queries together; keys_width: of all keys, fewer where several heads share them. memory: tokens of
    another sequence that is attended to. bias: of the first three matrices, of the last.
    """
    keys_width = heads_width if keys_width is None else keys_width
    seen = shape.past + shape.tokens if memory is None else memory
    made = shape.places if memory is None else shape.rows * memory
    pairs = Part("pairs", work=attention_work(shape.tokens, seen, heads_width, shape.rows))
    keys = [linear(made, width, keys_width, bias=bias[0]) for _ in ("keys", "values")]
    queries, out = (
        linear(shape.places, width, heads_width, bias=bias[0]),
        linear(shape.places, heads_width, width, bias=bias[1]),
    )
    return joined(name, queries, *keys, pairs, out, vectors=vectors, times=times)


@dataclass(frozen=True, kw_only=True)
class Family(ABC):
    """A kind of model by its config file."""

    instance: ClassVar[str]  # the class of transformers (or what in torch) that has these weights
    letters: ClassVar[dict[str, str]]
    heads: ClassVar[tuple[str, str]] = ("", "")  # the fields (width, heads) of which the second divides the first
    table: ClassVar[str] = ""  # the field that says how many positions it learns; without one they have no bound

    vocab_size: int

    def __post_init__(self) -> None:
        sizes = {name: value for name, value in vars(self).items() if isinstance(value, int) and value is not True}
        at_least_one("config", **{name: value for name, value in sizes.items() if value is not False})
        if self.heads != ("", ""):
            self.refuse_uneven(*self.heads, "the heads must divide it")

    def refuse_uneven(self, whole: str, part: str, why: str) -> None:
        """A Mistake where one field is no multiple of the other."""
        if getattr(self, whole) % getattr(self, part):
            raise Mistake(
                f"config: {whole} {getattr(self, whole)} is not a multiple of {part} {getattr(self, part)}; {why}"
            )

    @classmethod
    @abstractmethod
    def parts(cls, c: Any, vocab_size: Size, shape: Shape) -> list[Part]:
        """What it is made of; see `Learner.parts`."""

    @property
    @abstractmethod
    def cached(self) -> int:
        """Numbers that a cache keeps for each token that was read; 0: it does not write."""

    @property
    def longest(self) -> int | None:
        """Tokens that it has positions for; None: there is no bound."""
        return getattr(self, self.table) if self.table else None


@dataclass(frozen=True, kw_only=True)
class GPT2(Family):
    """GPT-2 (Radford and others, 2019)."""

    instance = "GPT2LMHeadModel"
    letters: ClassVar[dict[str, str]] = {
        "n_positions": "P",
        "n_embd": "D",
        "n_layer": "L",
        "n_head": "H",
        "n_inner": "F",
    }
    heads = ("n_embd", "n_head")
    table = "n_positions"

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    tie_word_embeddings: bool = True

    @classmethod
    def parts(cls, c: Any, vocab_size: Size, shape: Shape) -> list[Part]:
        """Every linear map but the last has a bias; norms have two vectors."""
        width, hidden = c.n_embd, c.n_inner or 4 * c.n_embd
        return [
            Part(EMBEDDING, vocab_size * width),
            Part("positions", c.n_positions * width),
            attention_part("attention", width, width, shape, bias=(True, True), vectors=2 * width, times=c.n_layer),
            feed_forward(width, hidden, shape.places, bias=True, vectors=2 * width, times=c.n_layer),
            Part("norm", 2 * width),
            head_part(vocab_size, width, shape, tied=c.tie_word_embeddings),
        ]

    @property
    def cached(self) -> int:
        """Keys and values of every layer."""
        return 2 * self.n_layer * self.n_embd


def feed_forward(
    width: Size,
    hidden: Size,
    places: Size,
    *,
    bias: bool = False,
    gated: bool = False,
    vectors: Size = 0,
    times: Size = 1,
    name: str = "feed-forward",
) -> Part:
    """Up, perhaps a gate beside it, and down."""
    ups = [linear(places, width, hidden, bias=bias) for _ in range(2 if gated else 1)]
    return joined(name, *ups, linear(places, hidden, width, bias=bias), vectors=vectors, times=times)


@dataclass(frozen=True, kw_only=True)
class BERT(Family):
    """BERT (Devlin and others, 2019), with its pooler and without the heads of its two tasks."""

    instance = "BertModel"
    letters: ClassVar[dict[str, str]] = {
        "hidden_size": "D",
        "num_hidden_layers": "L",
        "num_attention_heads": "H",
        "intermediate_size": "F",
        "max_position_embeddings": "P",
        "type_vocab_size": "S",
    }
    heads = ("hidden_size", "num_attention_heads")
    table = "max_position_embeddings"

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2

    @classmethod
    def parts(cls, c: Any, vocab_size: Size, shape: Shape) -> list[Part]:
        """Every linear map has a bias; the norms come after what they norm. The pooler reads the first token alone."""
        width, layers, norm = c.hidden_size, c.num_hidden_layers, 2 * c.hidden_size
        return [
            Part(EMBEDDING, vocab_size * width),
            Part("positions", c.max_position_embeddings * width),
            Part("segments", c.type_vocab_size * width),
            Part("norm", norm),
            attention_part("attention", width, width, shape, bias=(True, True), vectors=norm, times=layers),
            feed_forward(width, c.intermediate_size, shape.places, bias=True, vectors=norm, times=layers),
            joined("pooler", linear(shape.rows, width, width, bias=True)),
        ]

    @property
    def cached(self) -> int:
        """It does not write."""
        return 0


@dataclass(frozen=True, kw_only=True)
class T5(Family):
    """T5 (Raffel and others, 2020): encoder and decoder, with one table of distances for each."""

    instance = "T5ForConditionalGeneration"
    letters: ClassVar[dict[str, str]] = {
        "d_model": "D",
        "d_kv": "k",
        "d_ff": "F",
        "num_layers": "L",
        "num_decoder_layers": "M",
        "num_heads": "H",
        "relative_attention_num_buckets": "R",
    }

    vocab_size: int = 32128
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_layers: int = 6
    num_decoder_layers: int | None = None
    num_heads: int = 8
    relative_attention_num_buckets: int = 32
    feed_forward_proj: str = "relu"
    tie_word_embeddings: bool = True

    @classmethod
    def parts(cls, c: Any, vocab_size: Size, shape: Shape) -> list[Part]:
        """No biases; norms have one vector. The source is read by the encoder, the target by the decoder."""
        width, inner, norm = c.d_model, c.num_heads * c.d_kv, c.d_model
        source, decoder = Shape(shape.rows, shape.source), c.num_decoder_layers or c.num_layers
        gated = c.feed_forward_proj.startswith("gated")

        def network(side: str, places: Size, layers: Size) -> Part:
            return feed_forward(
                width, c.d_ff, places, gated=gated, vectors=norm, times=layers, name=f"{side} feed-forward"
            )

        return [
            Part(EMBEDDING, vocab_size * width),
            attention_part("encoder attention", width, inner, source, vectors=norm, times=c.num_layers),
            network("encoder", source.places, c.num_layers),
            attention_part("decoder attention", width, inner, shape, vectors=norm, times=decoder),
            attention_part("cross attention", width, inner, shape, memory=shape.source, vectors=norm, times=decoder),
            network("decoder", shape.places, decoder),
            Part("distances", c.relative_attention_num_buckets * c.num_heads, times=2),
            Part("norm", norm, times=2),
            head_part(vocab_size, width, shape, tied=c.tie_word_embeddings),
        ]

    @property
    def cached(self) -> int:
        """Keys and values of the decoder, for a token of the target; one of the source takes as many."""
        return 2 * (self.num_decoder_layers or self.num_layers) * self.num_heads * self.d_kv


@dataclass(frozen=True, kw_only=True)
class Llama(Family):
    """LLaMA (Touvron and others, 2023) and what is built like it."""

    instance = "LlamaForCausalLM"
    letters: ClassVar[dict[str, str]] = {
        "hidden_size": "D",
        "intermediate_size": "F",
        "num_hidden_layers": "L",
        "num_attention_heads": "H",
        "num_key_value_heads": "K",
        "head_dim": "k",
        "max_position_embeddings": "P",
    }

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    max_position_embeddings: int = 2048
    attention_bias: bool = False
    mlp_bias: bool = False
    tie_word_embeddings: bool = False
    biases: ClassVar[tuple[bool, bool] | None] = None  # of attention, whatever the config says

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_dim is None:
            self.refuse_uneven("hidden_size", "num_attention_heads", "the heads must divide it")
        if self.num_key_value_heads is not None:
            why = "each key must serve as many heads as the others"
            self.refuse_uneven("num_attention_heads", "num_key_value_heads", why)

    @classmethod
    def parts(cls, c: Any, vocab_size: Size, shape: Shape) -> list[Part]:
        """Gated networks; norms have one vector; several heads may share keys and values."""
        width, layers = c.hidden_size, c.num_hidden_layers
        head_width = c.head_dim or shared_out(width, c.num_attention_heads)
        heads_width = c.num_attention_heads * head_width
        keys_width = heads_width if c.num_key_value_heads is None else c.num_key_value_heads * head_width
        bias = cls.biases or (c.attention_bias, c.attention_bias)
        return [
            Part(EMBEDDING, vocab_size * width),
            attention_part(
                "attention", width, heads_width, shape, keys_width=keys_width, bias=bias, vectors=width, times=layers
            ),
            feed_forward(
                width, c.intermediate_size, shape.places, bias=c.mlp_bias, gated=True, vectors=width, times=layers
            ),
            Part("norm", width),
            head_part(vocab_size, width, shape, tied=c.tie_word_embeddings),
        ]

    @property
    def cached(self) -> int:
        """Keys and values of every layer."""
        head_width = self.head_dim or self.hidden_size // self.num_attention_heads
        return 2 * self.num_hidden_layers * (self.num_key_value_heads or self.num_attention_heads) * head_width


@dataclass(frozen=True, kw_only=True)
class Mistral(Llama):
    """Mistral (Jiang and others, 2023): eight keys for all heads, unless it says otherwise."""

    instance = "MistralForCausalLM"
    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072


@dataclass(frozen=True, kw_only=True)
class Qwen2(Llama):
    """Qwen 2 (Yang and others, 2024): biases for queries, keys and values, and nowhere else."""

    instance = "Qwen2ForCausalLM"
    biases = (True, False)
    vocab_size: int = 151936
    intermediate_size: int = 22016
    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 32768


@dataclass(frozen=True, kw_only=True)
class TorchDecoder(Family):
    """A stack of torch.nn.TransformerDecoderLayer between two embeddings and an output layer with bias."""

    instance = "torch.nn.TransformerDecoderLayer"
    letters: ClassVar[dict[str, str]] = {"layers": "L", "width": "D", "hidden": "F", "positions": "P"}
    table = "positions"

    layers: int
    width: int
    hidden: int
    positions: int

    @classmethod
    def parts(cls, c: Any, vocab_size: Size, shape: Shape) -> list[Part]:
        """Each block attends to itself and to another sequence; norms have two vectors, linear maps a bias."""
        width, norm, both = c.width, 2 * c.width, (True, True)
        return [
            Part(EMBEDDING, vocab_size * width),
            Part("positions", c.positions * width),
            attention_part("attention", width, width, shape, bias=both, vectors=norm, times=c.layers),
            attention_part(
                "cross attention", width, width, shape, memory=shape.source, bias=both, vectors=norm, times=c.layers
            ),
            feed_forward(width, c.hidden, shape.places, bias=True, vectors=norm, times=c.layers),
            Part("norm", norm),
            joined(HEAD, linear(shape.places, width, vocab_size, bias=True)),
        ]

    @property
    def cached(self) -> int:
        """Keys and values of every layer, for a token of the target; one of the source takes as many."""
        return 2 * self.layers * self.width


FAMILIES: dict[str, type[Family]] = {
    "gpt2": GPT2,
    "bert": BERT,
    "t5": T5,
    "llama": Llama,
    "mistral": Mistral,
    "qwen2": Qwen2,
    "torch-decoder": TorchDecoder,
}
