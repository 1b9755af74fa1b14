"""The pre-norm Transformer block: x + Attention(norm(x)), then x + MLP(norm(x)).

Linear maps have no biases (they cost memory traffic and, measured, bring nothing at these sizes). Weights are kept in
float32; `dtype` says in which precision the matrix products run. The residual stream stays float32.
"""

from __future__ import annotations

import functools
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.layers.attention import Rotation, causal_self_attention, split_heads
from lmlab.layers.positions import rotary_tables

Activation = Literal["relu2", "gelu"]
KeyValue = tuple[Tensor, ...]  # keys, values
Turn = tuple[Tensor, Tensor, Tensor]  # cos, sin, swap: see `turns`


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
        x_BTD = x_BTD + self._drop(F.linear(attended_BTD, self.out.to(dtype))).to(x_BTD.dtype)
        return self._mlp(x_BTD, dtype)

    def step(self, x_BTD: Tensor, rotation: Rotation | None, kv_2BHCD: Tensor, filled: int) -> Tensor:
        """T more positions after the `filled` ones whose keys and values are in `kv`, which is written in place.

        float32, without dropout and without gradients.
        """
        rows, length, width = x_BTD.shape
        q_BHTD, k_BHTD, v_BHTD = split_heads(self._project(x_BTD, x_BTD.dtype), rotation)
        end = filled + length
        keys, values = kv_2BHCD[..., :end, :].unbind(0)
        keys[:, :, filled:] = k_BHTD
        values[:, :, filled:] = v_BHTD
        if filled == 0:
            attended = F.scaled_dot_product_attention(q_BHTD, keys, values, is_causal=True)
        else:
            seen_TS = torch.ones(length, end, dtype=torch.bool, device=x_BTD.device).tril(filled)
            attended = F.scaled_dot_product_attention(q_BHTD, keys, values, attn_mask=seen_TS)
        x_BTD = x_BTD + F.linear(attended.transpose(1, 2).reshape(rows, length, width), self.out)
        normed_BTD = F.layer_norm(x_BTD, (width,), self.norm_mlp)
        return x_BTD + F.linear(self._activate(F.linear(normed_BTD, self.up)), self.down)

    def step_one(self, x_BD: Tensor, turn: Turn | None, slots: KeyValue, kv: KeyValue) -> Tensor:
        """As `step`, for one position: x is B×D, or just D for a single row.

        slots: where this position's key and value go (B×H×1×D each); kv: all of them up to there. At one position a time
        goes into calling kernels rather than into the kernels, so the fewest calls win (bench/bench_decoding.py).
        """
        weight: dict[str, Any] = self._parameters  # a dictionary answers faster than Module.__getattr__
        width = x_BD.shape[-1]
        qkv_BD = product(torch.layer_norm(x_BD, (width,), weight["norm_attention"]), weight["qkv"])
        if turn is not None:
            cos_D, sin_D, swap_D = turn
            swapped_BD = qkv_BD.index_select(-1, swap_D)
            qkv_BD.mul_(cos_D).addcmul_(swapped_BD, sin_D)
        q_BH1D, k_BH1D, v_BH1D = qkv_BD.view(-1, 3, self.heads, 1, width // self.heads).unbind(1)
        slots[0].copy_(k_BH1D)
        slots[1].copy_(v_BH1D)
        attended_BH1D = F.scaled_dot_product_attention(q_BH1D, kv[0], kv[1])
        x_BD = product(attended_BH1D.view(x_BD.shape), weight["out"], x_BD)
        hidden = product(torch.layer_norm(x_BD, (width,), weight["norm_mlp"]), weight["up"])
        return product(self._activate(hidden), weight["down"], x_BD)

    def _project(self, x_BTD: Tensor, dtype: torch.dtype) -> Tensor:
        """Queries, keys and values of the normed stream, B×T×3×H×D."""
        rows, length, width = x_BTD.shape
        normed_BTD = F.layer_norm(x_BTD, (width,), self.norm_attention).to(dtype)
        return F.linear(normed_BTD, self.qkv.to(dtype)).view(rows, length, 3, self.heads, width // self.heads)

    def _mlp(self, x_BTD: Tensor, dtype: torch.dtype) -> Tensor:
        normed_BTD = F.layer_norm(x_BTD, (x_BTD.shape[-1],), self.norm_mlp).to(dtype)
        if self.activation == "relu2":
            return x_BTD + self._drop(squared_relu_network(normed_BTD, self.up, self.down)).to(x_BTD.dtype)
        hidden = F.gelu(F.linear(normed_BTD, self.up.to(dtype)), approximate="tanh")
        return x_BTD + self._drop(F.linear(hidden, self.down.to(dtype)))

    def _activate(self, hidden: Tensor) -> Tensor:
        """The nonlinearity where no gradient is wanted. May overwrite `hidden`."""
        return hidden.relu_().mul_(hidden) if self.activation == "relu2" else F.gelu(hidden, approximate="tanh")

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training) if self.dropout else x


@functools.lru_cache(maxsize=4)
def turns(context: int, heads: int, head_width: int, device: torch.device) -> Turn:
    """The rotary positions 0, 1, … laid out for `step_one`: with x the queries, keys and values of all heads end to end,
    x ∘ cos + x[swap] ∘ sin turns queries and keys and leaves values as they are.

    cos and sin are context × (3·H·D); `swap` exchanges the two halves of each head, which hold the first and the second
    members of its pairs.
    """
    cos_CR, sin_CR = (table.to(device) for table in rotary_tables(context, head_width))
    cos, sin = (torch.cat(halves, 1).repeat(1, 2 * heads) for halves in ([cos_CR, cos_CR], [-sin_CR, sin_CR]))
    swap = torch.arange(3 * heads * head_width, device=device).view(-1, 2, head_width // 2).flip(1).flatten()
    values = heads * head_width
    return F.pad(cos, (0, values), value=1.0), F.pad(sin, (0, values)), swap


def product(x_BI: Tensor, weight_OI: Tensor, add_BO: Tensor | None = None) -> Tensor:
    """x Wᵀ (+ add), for B×I or, with one row, just I: then matrix times vector, up to twice as fast on a CPU."""
    if x_BI.dim() == 1:
        return torch.mv(weight_OI, x_BI) if add_BO is None else torch.addmv(add_BO, weight_OI, x_BI)
    return F.linear(x_BI, weight_OI) if add_BO is None else torch.addmm(add_BO, x_BI, weight_OI.t())


def squared_relu_network(x_BTI: Tensor, up_HI: Tensor, down_OH: Tensor) -> Tensor:
    """max(x upᵀ, 0)² downᵀ in the precision of x. Its nonlinearity is a tenth of the cost of GELU on a CPU."""
    out: Tensor = _SquaredReLUNetwork.apply(x_BTI.flatten(0, -2), up_HI.to(x_BTI.dtype), down_OH.to(x_BTI.dtype))
    return out.view(*x_BTI.shape[:-1], -1)


class _SquaredReLUNetwork(torch.autograd.Function):
    """Written out because the elementwise part is memory traffic, and by hand most of it is saved.

    With p = max(x upᵀ, 0) and y = p² downᵀ:  d down = dyᵀ p²,  dh = p ∘ (dy 2 down),  d up = dhᵀ x,  dx = dh up.
    Doubling `down` rather than dh is exact and touches far fewer numbers.
    """

    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, up_HI: Tensor, down_OH: Tensor) -> Tensor:
        positive_NH = torch.mm(x_NI, up_HI.t()).relu_()
        squared_NH = positive_NH.square()
        ctx.save_for_backward(x_NI, up_HI, down_OH, positive_NH, squared_NH)
        return torch.mm(squared_NH, down_OH.t())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, Tensor]:
        x_NI, up_HI, down_OH, positive_NH, squared_NH = ctx.saved_tensors
        grad_NO = grads[0]
        hidden_NH = torch.mm(grad_NO, down_OH * 2).mul_(positive_NH)
        return torch.mm(hidden_NH, up_HI), torch.mm(hidden_NH.t(), x_NI), torch.mm(grad_NO.t(), squared_NH)
