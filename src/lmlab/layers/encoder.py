"""The post-norm Transformer block of BERT (Devlin and others, 2019): norm(x + Attention(x)), then norm(x + MLP(x)).

Every position sees all others; every linear map and every norm has a bias; the nonlinearity is GELU, as exact as torch has it.
Weights and the stream are float32; `dtype` says in which precision the matrix products run.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.formulas import Part, Shape, Size, joined, linear
from lmlab.layers.attention import self_attention, split_heads
from lmlab.layers.blocks import attention_work
from lmlab.layers.looking import looked, silenced

EPSILON = 1e-12  # of BERT's norms


class Norm(nn.Module):
    """Mean 0 and variance 1 over the width, then a scale and a shift."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """Of the last axis."""
        return F.layer_norm(x, (x.shape[-1],), self.weight, self.bias, EPSILON)


class Affine(nn.Module):
    """x Wᵀ + b in the precision of x."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) * inputs**-0.5)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Of the last axis."""
        return F.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))


class EncoderBlock(nn.Module):
    """Attention and a two-layer network, each added to what it reads, and the sum normed."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out, self.norm_attention = Affine(width, 3 * width), Affine(width, width), Norm(width)
        self.up, self.down, self.norm_mlp = Affine(width, hidden), Affine(hidden, width), Norm(width)

    def forward(self, x_BTD: Tensor, text_BT: Tensor | None, dtype: torch.dtype, dropout: float) -> Tensor:
        """All positions at once. text_BT: where there is text, and not padding; None: everywhere."""
        attended_BTD = self_attention(self._project(x_BTD, dtype), text_BT)
        x_BTD = self.norm_attention(_added(x_BTD, self.out(attended_BTD), dropout))
        hidden = F.gelu(self.up(x_BTD.to(dtype)))
        normed_BTD: Tensor = self.norm_mlp(_added(x_BTD, self.down(hidden), dropout))
        return normed_BTD

    @torch.no_grad()
    def looks(self, x_BTD: Tensor) -> tuple[Tensor, float]:
        """The attention weights of every head, B×H×T×T, and how far the fused kernel is from them at most."""
        q_BHTD, k_BHTD, _ = split_heads(self._project(x_BTD, x_BTD.dtype), None)
        return looked(q_BHTD, k_BHTD)

    def without_head(self, head: int) -> AbstractContextManager[None]:
        """While it lasts, what this head found is not added; the bias of all heads together is."""
        return silenced(self.out.weight, self.heads, head)

    def _project(self, x_BTD: Tensor, dtype: torch.dtype) -> Tensor:
        """Queries, keys and values, B×T×3×H×D."""
        rows, length, width = x_BTD.shape
        qkv_BT3HD: Tensor = self.qkv(x_BTD.to(dtype)).view(rows, length, 3, self.heads, width // self.heads)
        return qkv_BT3HD


def _added(x_BTD: Tensor, change_BTD: Tensor, dropout: float) -> Tensor:
    return x_BTD + (F.dropout(change_BTD, dropout) if dropout else change_BTD).to(x_BTD.dtype)


def encoder_parts(width: Size, hidden: Size, layers: Size, shape: Shape) -> list[Part]:
    """Attention and network of all blocks, each with its norm of two vectors."""
    places = shape.places
    pairs = Part("pairs", work=attention_work(shape.tokens, shape.tokens, width, shape.rows))
    matrices = linear(places, width, 3 * width, bias=True), linear(places, width, width, bias=True)
    network = linear(places, width, hidden, bias=True), linear(places, hidden, width, bias=True)
    return [
        joined("attention", *matrices, pairs, vectors=2 * width, times=layers),
        joined("feed-forward", *network, vectors=2 * width, times=layers),
    ]
