"""The base of all families of models: the fields of a config.json, the parts of its models, and their caches.

A family is a frozen dataclass. Its fields have the names and the defaults of transformers. Its class says in `stack` which
pieces a model of these sizes has. Sizes may be symbols, so the same code gives numbers and formulas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from lmlab.config import Mistake, at_least_one
from lmlab.costs.pieces import Stack
from lmlab.formulas import Part, Shape, Size

SLIDING = "sliding_attention"
LETTERS = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "dim", "width"), "D"),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "layers"), "L"),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), "H"),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads"), "K"),
    **dict.fromkeys(("head_dim", "d_kv"), "k"),
    **dict.fromkeys(
        ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "hidden_dim", "d_ff", "hidden"), "F"
    ),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len", "positions"), "P"),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), "E"),
    "num_experts_per_tok": "A",
    "moe_intermediate_size": "G",
    "shared_expert_intermediate_size": "F_s",
    "n_shared_experts": "s",
    "first_k_dense_replace": "L_d",
    "kv_lora_rank": "c",
    "q_lora_rank": "c_q",
    "qk_nope_head_dim": "k_n",
    "qk_rope_head_dim": "k_r",
    "v_head_dim": "v",
    "word_embed_proj_dim": "D_e",
    "expansion_ratio": "r",
    "num_decoder_layers": "M",
    "relative_attention_num_buckets": "R",
    "type_vocab_size": "S",
    "sliding_window": "W",
}


@dataclass(frozen=True)
class Cache:
    """The cache of layers of one kind."""

    layers: int
    numbers: int  # that a layer keeps of a token
    window: int | None = None  # tokens that are kept at most; None: all

    def size(self, length: int) -> int:
        """Return how many numbers these layers keep of so many tokens."""
        return self.layers * self.numbers * (length if self.window is None else min(length, self.window))


@dataclass(frozen=True, kw_only=True)
class Family(ABC):
    """A kind of model by its config file."""

    instance: ClassVar[str]  # the class of transformers (or what in torch) that has these weights
    letters: ClassVar[Mapping[str, str]] = LETTERS
    heads: ClassVar[tuple[str, str]] = ("", "")  # the fields (width, heads) of which the second divides the first
    table: ClassVar[str] = ""  # the field that says how many positions it learns; without one they have no bound
    aliases: ClassVar[Mapping[str, str]] = {}  # other names that files have for its fields
    nested: ClassVar[str] = ""  # the field that holds further fields
    may_be_zero: ClassVar[frozenset[str]] = frozenset()
    only: ClassVar[Mapping[str, Any]] = {}  # fields that are counted for one value alone

    vocab_size: int

    def __post_init__(self) -> None:
        sizes = {name: value for name, value in vars(self).items() if type(value) is int}
        at_least_one("config", **{n: v for n, v in sizes.items() if not (v == 0 and n in self.may_be_zero)})
        if self.heads != ("", ""):
            self.refuse_uneven(*self.heads, "the heads must divide it")

    def refuse_uneven(self, whole: str, part: str, why: str) -> None:
        """Raise a Mistake where one field is no multiple of the other."""
        if getattr(self, whole) % getattr(self, part):
            raise Mistake(
                f"config: {whole} {getattr(self, whole)} is not a multiple of {part} {getattr(self, part)}; {why}",
                code="config-not-a-multiple",
            )

    @classmethod
    @abstractmethod
    def parts(cls, c: Any, vocab_size: Size, shape: Shape) -> list[Part]:
        """Return the parts of a model with these sizes; see `Learner.parts`."""

    @classmethod
    def unused(cls, c: Any) -> Size:
        """Return how many weights a token does not use, because its router chose other experts."""
        return 0

    @property
    @abstractmethod
    def caches(self) -> list[Cache]:
        """The caches of its kinds of layers; none for a model that does not generate."""

    @property
    def longest(self) -> int | None:
        """The longest sequence for which there are positions; None: there is no bound."""
        return getattr(self, self.table) if self.table else None


@dataclass(frozen=True, kw_only=True)
class Stacked(Family):
    """A family whose models are one stack."""

    generates: ClassVar[bool] = True
    every: ClassVar[int] = 0  # with windows: each so-many-th layer sees all tokens; 0: no layer does

    @classmethod
    @abstractmethod
    def stack(cls, c: Any) -> Stack:
        """Return the stack with these sizes."""

    @classmethod
    def parts(cls, c: Any, vocab_size: Size, shape: Shape) -> list[Part]:
        """Return the parts of the stack."""
        return cls.stack(c).parts(vocab_size, shape)

    @classmethod
    def unused(cls, c: Any) -> Size:
        """Return the unused weights of the stack."""
        return cls.stack(c).unused

    @property
    def caches(self) -> list[Cache]:
        """The cache of layers that see all tokens, and that of layers with a window."""
        if not self.generates:
            return []
        stack = self.stack(self)
        layers, numbers, sliding = int(stack.layers), stack.attention.cached, self.sliding_layers
        kept = [Cache(layers - sliding, numbers), Cache(sliding, numbers, getattr(self, "sliding_window", None))]
        return [cache for cache in kept if cache.layers]

    @property
    def sliding_layers(self) -> int:
        """The number of layers that attend to a window of `sliding_window` tokens."""
        window, kinds = getattr(self, "sliding_window", None), getattr(self, "layer_types", None)
        layers = int(self.stack(self).layers)
        if not window or not getattr(self, "use_sliding_window", True):
            return 0
        if kinds is not None:
            return list(kinds).count(SLIDING)
        if hasattr(self, "max_window_layers"):
            return max(0, layers - self.max_window_layers)
        return layers - (layers // self.every if self.every else 0)
