"""The pre-norm Transformer block: x + Attention(norm(x)), then x + MLP(norm(x)); between the two, where there is a source to
read, x + Attention(norm(x), source).

Linear maps have no biases (they cost memory traffic and, measured, bring nothing at these sizes). Weights are kept in
float32; `dtype` says in which precision the matrix products run. The residual stream stays float32, but for steps that are
compiled for a GPU, where it is as narrow as the products.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.formulas import Part, Shape, Size, Work, joined, linear, product
from lmlab.layers import fast
from lmlab.layers.attention import cross_attention, packed, projected_self_attention, self_attention, split_heads
from lmlab.layers.fast import few_rows, norms, passes
from lmlab.layers.fast.cross_entropy import widened
from lmlab.layers.fast.networks import squared_relu, squared_relu_on_gpu
from lmlab.layers.fast.products import fills_a_gpu
from lmlab.layers.looking import Unfolded, looked, silenced, written_out
from lmlab.layers.positions import Rotation

Activation = Literal["relu2", "gelu"]


class Block(nn.Module):
    """Attention and a two-layer network four times as wide, each added to the stream it reads from."""

    def __init__(self, width: int, heads: int, layers: int, activation: Activation) -> None:
        super().__init__()
        self.heads, self.activation = heads, activation
        self.norm_attention = nn.Parameter(torch.ones(width))
        self.norm_mlp = nn.Parameter(torch.ones(width))
        self.qkv = nn.Parameter(torch.randn(3 * width, width) * width**-0.5)
        self.up = nn.Parameter(torch.randn(4 * width, width) * width**-0.5)
        # What is added to the stream starts small, the more so the more blocks add to it.
        small = (2 * layers) ** -0.5 * 0.5
        self.out = nn.Parameter(torch.randn(width, width) * width**-0.5 * small)
        self.down = nn.Parameter(torch.randn(width, 4 * width) * (4 * width) ** -0.5 * small)

    def forward(self, x_BTD: Tensor, rotation: Rotation | None, dtype: torch.dtype, dropout: float) -> Tensor:
        """The whole sequence at once; `dropout` of what is added to the stream."""
        return self.network(self.attend(x_BTD, rotation, dtype, dropout), dtype, dropout)

    def step(
        self, x_BTD: Tensor, rotation: Rotation | None, kv_2BHCD: Tensor, filled: int, dtype: torch.dtype
    ) -> Tensor:
        """T more positions after the `filled` ones whose keys and values are in `kv`, which is written in place.

        dtype: of the products. Without gradients.
        """
        return self.network(self.attend_further(x_BTD, rotation, kv_2BHCD, filled, dtype), dtype, 0.0)

    def attend(self, x_BTD: Tensor, rotation: Rotation | None, dtype: torch.dtype, dropout: float) -> Tensor:
        """The stream with what every position finds in itself and those before it."""
        x_BTD, normed_BTD = normed_beside(x_BTD, self.norm_attention, dtype)
        attended_BTD = projected_self_attention(normed_BTD, self.qkv.to(dtype), self.heads, rotation)
        return _add(x_BTD, F.linear(attended_BTD, self.out.to(dtype)), dropout)

    def attend_both_ways(self, x_BTD: Tensor, there_BT: Tensor, dtype: torch.dtype, dropout: float) -> Tensor:
        """The stream with what every position finds in all that are there, before and after it."""
        x_BTD, normed_BTD = normed_beside(x_BTD, self.norm_attention, dtype)
        attended_BTD = self_attention(self._packed(normed_BTD), there_BT)
        return _add(x_BTD, F.linear(attended_BTD, self.out.to(dtype)), dropout)

    def attend_further(
        self, x_BTD: Tensor, rotation: Rotation | None, kv_2BHCD: Tensor, filled: int, dtype: torch.dtype
    ) -> Tensor:
        """`attend` for T more positions, as in `step`."""
        rows, length, width = x_BTD.shape
        q_BHTD, k_BHTD, v_BHTD = split_heads(self._project(x_BTD, dtype), rotation)
        end = filled + length
        kept = kv_2BHCD[..., :end, :]
        kept[0, :, :, filled:] = k_BHTD
        kept[1, :, :, filled:] = v_BHTD
        keys, values = kept.to(dtype).unbind(0)
        if filled == 0 or length == 1:  # no mask needed: the fast kernels
            attended = F.scaled_dot_product_attention(q_BHTD, keys, values, is_causal=length > 1)
        else:
            seen_TS = torch.ones(length, end, dtype=torch.bool, device=x_BTD.device).tril(filled)
            attended = F.scaled_dot_product_attention(q_BHTD, keys, values, attn_mask=seen_TS)
        attended_BTD = attended.transpose(1, 2).reshape(rows, length, width)
        return _add(x_BTD, few_rows.linear(attended_BTD, self.out.to(dtype)), 0.0)

    @torch.no_grad()
    def looks(self, x_BTD: Tensor, rotation: Rotation | None) -> tuple[Tensor, float]:
        """The attention weights of every head, B×H×T×T, and how far the fused kernel is from them at most."""
        q_BHTD, k_BHTD, _ = split_heads(self._project(x_BTD, x_BTD.dtype), rotation)
        return looked(q_BHTD, k_BHTD, causal=True)

    @torch.no_grad()
    def looks_both_ways(self, x_BTD: Tensor, there_BT: Tensor) -> tuple[Tensor, float]:
        """The same of `attend_both_ways`, where all places are there."""
        q_BHTD, k_BHTD, _ = split_heads(self._project(x_BTD, x_BTD.dtype), None)
        return looked(q_BHTD, k_BHTD, mask=there_BT[:, None, None])

    @torch.no_grad()
    def unfolded(self, x_1TD: Tensor, rotation: Rotation | None, head: int) -> Unfolded:
        """One head as weights, and one matrix W_o W_v for what it does to each vector it looks at."""
        width = x_1TD.shape[-1]
        q_BHTD, k_BHTD, v_BHTD = split_heads(self._project(x_1TD, x_1TD.dtype), rotation)
        value_ED = self.qkv.view(3, self.heads, width // self.heads, width)[2, head]
        out_DE = self.out.view(width, self.heads, width // self.heads)[:, head]
        found_TE = F.scaled_dot_product_attention(q_BHTD, k_BHTD, v_BHTD, is_causal=True)[0, head]
        return Unfolded(
            x_ND=F.layer_norm(x_1TD, (width,), self.norm_attention)[0],
            weights_NN=written_out(q_BHTD, k_BHTD, causal=True)[0, head],
            value_DD=out_DE @ value_ED,
            y_ND=found_TE @ out_DE.T,
        )

    def without_head(self, head: int) -> AbstractContextManager[None]:
        """While it lasts, what this head found is not added to the stream."""
        return silenced(self.out, self.heads, head)

    def _project(self, x_BTD: Tensor, dtype: torch.dtype) -> Tensor:
        """Queries, keys and values of the stream, B×T×3×H×D."""
        return self._packed(normed(x_BTD, self.norm_attention, dtype))

    def _packed(self, normed_BTD: Tensor) -> Tensor:
        """The same of the normed stream."""
        return packed(normed_BTD, self.qkv.to(normed_BTD.dtype), self.heads)

    def network(self, x_BTD: Tensor, dtype: torch.dtype, dropout: float) -> Tensor:
        """The stream with what the two layers make of each position."""
        x_BTD, normed_BTD = normed_beside(x_BTD, self.norm_mlp, dtype)
        if self.activation == "relu2":
            return _add(x_BTD, squared_relu_network(normed_BTD, self.up, self.down), dropout)
        hidden = F.gelu(few_rows.linear(normed_BTD, self.up.to(dtype)), approximate="tanh")
        return _add(x_BTD, few_rows.linear(hidden, self.down.to(dtype)), dropout)


class CrossAttention(nn.Module):
    """What a stream finds in a source: queries from the one, keys and values from the other, added to the stream."""

    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.Parameter(torch.ones(width))
        self.query = nn.Parameter(torch.randn(width, width) * width**-0.5)
        self.kv = nn.Parameter(torch.randn(2 * width, width) * width**-0.5)
        self.out = nn.Parameter(torch.randn(width, width) * width**-0.5 * (2 * layers) ** -0.5 * 0.5)

    def keys_and_values(self, source_BSD: Tensor, dtype: torch.dtype) -> Tensor:
        """Of a source, whoever asks: B×S×2×H×D. Made once, however many streams read it."""
        rows, length, width = source_BSD.shape
        made = F.linear(source_BSD.to(dtype), self.kv.to(dtype))
        return made.view(rows, length, 2, self.heads, width // self.heads)

    def forward(self, x_BTD: Tensor, kv_BS2HD: Tensor, there_BS: Tensor, dtype: torch.dtype, dropout: float) -> Tensor:
        """The stream with what it finds. Several streams that read one source lie side by side, and ask together."""
        attended_BTD = cross_attention(self._queries(x_BTD, len(kv_BS2HD), dtype), kv_BS2HD, there_BS).view(x_BTD.shape)
        return _add(x_BTD, F.linear(attended_BTD, self.out.to(dtype)), dropout)

    @torch.no_grad()
    def looks(self, x_BTD: Tensor, kv_BS2HD: Tensor, there_BS: Tensor) -> tuple[Tensor, float]:
        """The weights of every head, B×H×T×S, and how far the fused kernel is from them; all of the source is there."""
        q_BHTD = self._queries(x_BTD, len(kv_BS2HD), x_BTD.dtype).transpose(1, 2)
        return looked(q_BHTD, kv_BS2HD[:, :, 0].transpose(1, 2), mask=there_BS[:, None, None])

    def without_head(self, head: int) -> AbstractContextManager[None]:
        """While it lasts, what this head found is not added to the stream."""
        return silenced(self.out, self.heads, head)

    def _queries(self, x_BTD: Tensor, sources: int, dtype: torch.dtype) -> Tensor:
        """Of the normed stream, B×T×H×D: what several streams ask one source stands in one row."""
        width = x_BTD.shape[-1]
        normed_BTD = normed(x_BTD, self.norm, dtype)
        return F.linear(normed_BTD, self.query.to(dtype)).view(sources, -1, self.heads, width // self.heads)


def attention_work(queries: Size, keys: Size, width: Size, rows: Size) -> Work:
    """Scores of every query with every key, and the averages of values, of all heads together.

    Every pair counts, as in PyTorch's own count, though a causal mask leaves half of them.
    """
    return (product(queries, width, keys) + product(queries, keys, width)).times(rows)


def cross_part(width: Size, layers: Size, shape: Shape, streams: Size) -> Part:
    """Of all blocks, with the norm. streams: that read each source; a row of `shape` is a source."""
    places = shape.places * streams
    pairs = Part("pairs", work=attention_work(shape.tokens * streams, shape.source, width, shape.rows))
    return joined(
        "cross attention",
        linear(places, width, width),
        linear(shape.rows * shape.source, width, 2 * width),
        pairs,
        linear(places, width, width),
        vectors=width,
        times=layers,
    )


def block_parts(width: Size, layers: Size, shape: Shape, of: str = "") -> list[Part]:
    """Attention and network of all blocks, each with its norm. of: whose, where there are others, such as "encoder "."""
    places = shape.places
    pairs = Part("pairs", work=attention_work(shape.tokens, shape.past + shape.tokens, width, shape.rows))
    return [
        joined(
            f"{of}attention",
            linear(places, width, 3 * width),
            pairs,
            linear(places, width, width),
            vectors=width,
            times=layers,
        ),
        joined(
            f"{of}feed-forward",
            linear(places, width, 4 * width),
            linear(places, 4 * width, width),
            vectors=width,
            times=layers,
        ),
    ]


def _add(x_BTD: Tensor, change_BTD: Tensor, dropout: float) -> Tensor:
    """The stream and what was read from it, after dropout."""
    if dropout:
        change_BTD = F.dropout(change_BTD, dropout)
    if passes.can_add(x_BTD, change_BTD):
        return passes.added(x_BTD, change_BTD)
    if not x_BTD.is_cuda:  # where adding two precisions at once is slow
        change_BTD = change_BTD.to(x_BTD.dtype)
    return x_BTD + change_BTD


def normed(x_BTD: Tensor, weight_D: Tensor, dtype: torch.dtype) -> Tensor:
    """Layer norm without a bias, computed in float32, then rounded to `dtype`."""
    if passes.can_norm(x_BTD, weight_D, dtype):
        return passes.normed(x_BTD, weight_D, dtype)
    return F.layer_norm(widened(x_BTD), (x_BTD.shape[-1],), weight_D).to(dtype)


def normed_beside(x_BTD: Tensor, weight_D: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The stream to go on with, and its norm."""
    if norms.can_join(x_BTD, dtype):
        return norms.stream_and_normed(x_BTD, weight_D)
    return x_BTD, normed(x_BTD, weight_D, dtype)


def squared_relu_network(x_BTI: Tensor, up_HI: Tensor, down_OH: Tensor) -> Tensor:
    """max(x upᵀ, 0)² downᵀ in the precision of x. Its nonlinearity is a tenth of the cost of GELU on a CPU."""
    up_HI, down_OH = up_HI.to(x_BTI.dtype), down_OH.to(x_BTI.dtype)
    if not torch.is_grad_enabled():
        return few_rows.linear(few_rows.linear(x_BTI, up_HI).relu_().square_(), down_OH)
    if fast.enabled and fills_a_gpu(x_BTI, up_HI, down_OH):
        return squared_relu_on_gpu(x_BTI, up_HI, down_OH)
    if fast.enabled and not torch.compiler.is_compiling():
        return squared_relu(x_BTI, up_HI, down_OH)
    return F.linear(F.linear(x_BTI, up_HI).relu().square(), down_OH)
