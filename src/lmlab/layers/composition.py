"""What the blocks of a Transformer are composed of: norm, attention heads, positions, biases, and the network.

A composition names each choice once. `models/gpt.py` reads it from its settings; `layers/blocks.py` builds blocks of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.formulas import Size, shared_out
from lmlab.layers.fast.cross_entropy import widened

Norm = Literal["layer", "layer-bias", "rms"]
Activation = Literal["relu2", "gelu", "gelu-erf", "silu", "swiglu", "geglu"]
Biases = Literal["none", "qkv", "all"]

EPSILON = 1e-5  # of a norm
ROTARY_BASE = 10_000.0
GATED: dict[Activation, Activation] = {"swiglu": "silu", "geglu": "gelu"}  # and what their gate is activated by


@dataclass(frozen=True, kw_only=True)
class Composition:
    """The sizes and choices of a stack of equal blocks. Sizes are numbers, or symbols in a formula.

    Attributes:
        width: of the residual stream.
        layers: number of blocks.
        heads: heads of queries.
        kv_heads: heads of keys and values; each serves heads / kv_heads heads of queries (grouped-query attention).
        head_width: width of a head.
        hidden: width of the network between its matrices.
        norm: LayerNorm with a weight, LayerNorm with a weight and a bias, or RMSNorm.
        norm_epsilon: added to the variance.
        activation: of the network. A gated one multiplies its activated half by the other half.
        biases: which linear maps have one: none, that of queries, keys and values, or all.
        window: how many positions a query sees, itself included; None: all before it.
        rotary_base: of the frequencies of rotary positions.
        rotary_share: the share of a head, from its start, that rotary positions turn.
    """

    width: Size
    layers: Size
    heads: Size
    kv_heads: Size
    head_width: Size
    hidden: Size
    norm: Norm = "layer"
    norm_epsilon: float = EPSILON
    activation: Activation = "relu2"
    biases: Biases = "none"
    window: Size | None = None
    rotary_base: float = ROTARY_BASE
    rotary_share: float = 1.0

    @classmethod
    def of(cls, width: Size, layers: Size, heads: Size, activation: Activation = "relu2") -> Composition:
        """Return the lab's own composition of these sizes."""
        return cls(
            width=width,
            layers=layers,
            heads=heads,
            kv_heads=heads,
            head_width=shared_out(width, heads),
            hidden=4 * width,
            activation=activation,
        )

    @property
    def inner(self) -> Size:
        """The width of all heads of queries together."""
        return self.heads * self.head_width

    @property
    def projected(self) -> Size:
        """The width of queries, keys and values together."""
        return (self.heads + 2 * self.kv_heads) * self.head_width

    @property
    def ups(self) -> int:
        """How many matrices lead into the network."""
        return 2 if self.activation in GATED else 1

    @property
    def norm_vectors(self) -> int:
        """The vectors of a norm."""
        return 2 if self.norm == "layer-bias" else 1

    @property
    def rotary_width(self) -> int:
        """How many numbers of a head rotary positions turn."""
        return int(self.head_width * self.rotary_share)


def has_kernels(c: Composition) -> bool:
    """Return whether the kernels written by hand compute blocks of this composition.

    This function alone decides. Every other composition is computed by torch's own operations.
    """
    return (
        c.norm == "layer"
        and c.norm_epsilon == EPSILON
        and c.biases == "none"
        and c.activation in ("relu2", "gelu")
        and c.kv_heads == c.heads
        and c.inner == c.width
        and c.hidden == 4 * c.width
        and c.window is None
        and c.rotary_base == ROTARY_BASE
        and c.rotary_share == 1.0
    )


def norm(x: Tensor, weight_D: Tensor, bias_D: Tensor | None, c: Composition) -> Tensor:
    """Return the norm of `x` in float32 (float64 for float64 input)."""
    if c.norm == "rms":
        return F.rms_norm(widened(x), weight_D.shape, weight_D, c.norm_epsilon)
    return F.layer_norm(widened(x), weight_D.shape, weight_D, bias_D, c.norm_epsilon)


def activated(hidden: Tensor, activation: Activation) -> Tensor:
    """Return the activation of the hidden units. A gated activation takes two halves, the gate first, and returns one."""
    if activation in GATED:
        gate, value = hidden.chunk(2, -1)
        return _FUNCTIONS[GATED[activation]](gate) * value
    return _FUNCTIONS[activation](hidden)


_FUNCTIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu2": lambda x: x.relu().square(),
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "gelu-erf": F.gelu,
    "silu": F.silu,
}


def visible(queries: int, keys: int, window: int | None, device: torch.device) -> Tensor:
    """Return which of the keys the last `queries` positions see, T×S: those before them and themselves, within the window."""
    seen_TS = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
    return seen_TS if window is None else seen_TS.triu(keys - queries - window + 1)
