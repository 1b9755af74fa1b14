"""The pre-norm Transformer block: x + Attention(norm(x)), then x + MLP(norm(x)).

Linear maps have no biases (they cost memory traffic and, measured, bring nothing at these sizes). Weights are kept in
float32; `dtype` says in which precision the matrix products run. The residual stream stays float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.layers.attention import Rotation, causal_self_attention, split_heads

Activation = Literal["relu2", "gelu"]


@dataclass
class Cache:
    """Keys and values of one block, B×H×C×D each, of which the first `length` positions are filled."""

    keys: Tensor
    values: Tensor

    def select(self, rows_B: Tensor) -> Cache:
        """Copies of these rows."""
        return Cache(self.keys[rows_B], self.values[rows_B])


class Block(nn.Module):
    """Attention and a two-layer network four times as wide, each added to the stream it reads from."""

    def __init__(self, width: int, heads: int, layers: int, activation: Activation, dropout: float) -> None:
        super().__init__()
        self.heads, self.activation, self.dropout = heads, activation, dropout
        self.norm_attention = nn.Parameter(torch.ones(width))
        self.norm_mlp = nn.Parameter(torch.ones(width))
        self.qkv = nn.Parameter(torch.randn(3 * width, width) * width**-0.5)
        self.up = nn.Parameter(torch.randn(4 * width, width) * width**-0.5)
        # What is added to the stream starts small, the more so the more blocks add to it.
        small = (2 * layers) ** -0.5 * 0.5
        self.out = nn.Parameter(torch.randn(width, width) * width**-0.5 * small)
        self.down = nn.Parameter(torch.randn(width, 4 * width) * (4 * width) ** -0.5 * small)

    def forward(self, x_BTD: Tensor, rotation: Rotation | None, dtype: torch.dtype) -> Tensor:
        """The whole sequence at once."""
        attended_BTD = causal_self_attention(self._project(x_BTD, dtype), rotation)
        x_BTD = x_BTD + self._drop(F.linear(attended_BTD, self.out.to(dtype)))
        return self._mlp(x_BTD, dtype)

    def step(self, x_BTD: Tensor, rotation: Rotation | None, cache: Cache, filled: int) -> Tensor:
        """T more positions after the `filled` ones in `cache`, which is written in place. float32."""
        rows, length, width = x_BTD.shape
        q_BHTD, k_BHTD, v_BHTD = split_heads(self._project(x_BTD, x_BTD.dtype), rotation)
        end = filled + length
        cache.keys[:, :, filled:end] = k_BHTD
        cache.values[:, :, filled:end] = v_BHTD
        keys, values = cache.keys[:, :, :end], cache.values[:, :, :end]
        if length == 1:
            attended = F.scaled_dot_product_attention(q_BHTD, keys, values)
        elif filled == 0:
            attended = F.scaled_dot_product_attention(q_BHTD, keys, values, is_causal=True)
        else:
            seen_TS = torch.ones(length, end, dtype=torch.bool, device=x_BTD.device).tril(filled)
            attended = F.scaled_dot_product_attention(q_BHTD, keys, values, attn_mask=seen_TS)
        x_BTD = x_BTD + F.linear(attended.transpose(1, 2).reshape(rows, length, width), self.out)
        return self._mlp(x_BTD, x_BTD.dtype)

    def _project(self, x_BTD: Tensor, dtype: torch.dtype) -> Tensor:
        """Queries, keys and values of the normed stream, B×T×3×H×D."""
        rows, length, width = x_BTD.shape
        normed_BTD = F.layer_norm(x_BTD, (width,), self.norm_attention).to(dtype)
        return F.linear(normed_BTD, self.qkv.to(dtype)).view(rows, length, 3, self.heads, width // self.heads)

    def _mlp(self, x_BTD: Tensor, dtype: torch.dtype) -> Tensor:
        normed_BTD = F.layer_norm(x_BTD, (x_BTD.shape[-1],), self.norm_mlp).to(dtype)
        hidden = F.linear(normed_BTD, self.up.to(dtype))
        hidden = squared_relu(hidden) if self.activation == "relu2" else F.gelu(hidden, approximate="tanh")
        return x_BTD + self._drop(F.linear(hidden, self.down.to(dtype)))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training) if self.dropout else x


def squared_relu(x: Tensor) -> Tensor:
    """max(x, 0)², a tenth of the cost of GELU on a CPU. Overwrites x."""
    out: Tensor = _SquaredReLU.apply(x)
    return out


class _SquaredReLU(torch.autograd.Function):
    """Keeps max(x, 0) in the memory of x: the derivative, 2 max(x, 0), needs nothing else."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        positive = x.clamp_(min=0)
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Tensor:
        (positive,) = ctx.saved_tensors
        return torch.mul(grads[0], positive).mul_(2)
