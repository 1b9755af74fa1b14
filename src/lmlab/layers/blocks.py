"""The pre-norm Transformer block: x + Attention(norm(x)), then x + MLP(norm(x)); between the two, where there is a source to
read, x + Attention(norm(x), source).

A block is composed of the choices in `composition.py`. Weights are kept in float32; `dtype` is the precision of the matrix
products. The residual stream stays float32, except in steps that are compiled for a GPU: there it is as narrow as the products.

Shapes: B rows, T positions, C positions of a cache, D width of the stream, H heads of queries, K heads of keys and values,
E width of a head, I = HE width of all heads, X width of queries, keys and values together.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.formulas import Part, Shape, Size, Work, joined, linear, product
from lmlab.layers import fast
from lmlab.layers.attention import (
    attended_before,
    cross_attention,
    for_each_head,
    packed,
    projected_self_attention,
    self_attention,
    split_groups,
)
from lmlab.layers.composition import Composition, activated, has_kernels, norm
from lmlab.layers.fast import norms
from lmlab.layers.fast.cross_entropy import widened
from lmlab.layers.fast.networks import squared_relu, squared_relu_on_gpu
from lmlab.layers.fast.products import fills_a_gpu
from lmlab.layers.looking import Unfolded, looked, silenced, written_out
from lmlab.layers.positions import Rotation


class Block(nn.Module):
    """Attention and a two-layer network, each added to the stream it reads from.

    Parameters, with H heads of queries, K of keys and values, E the width of a head, F hidden units:
        norm_attention, norm_mlp: width. The weights of the norms; `norm_attention_bias`, `norm_mlp_bias`.
        qkv: (H + 2K)E × width. The queries of all heads, then their keys, then their values; `qkv_bias`.
        out: width × HE. Reads what all heads found, side by side; `out_bias`.
        up: F × width, or 2F × width with the gate first; `up_bias`.
        down: width × F; `down_bias`.
    A bias that the composition lacks is None.
    """

    def __init__(self, c: Composition) -> None:
        super().__init__()
        self.c, self.heads, self.has_kernels = c, c.heads, has_kernels(c)
        width, inner, hidden = c.width, c.inner, c.hidden
        self.norm_attention = nn.Parameter(torch.ones(width))
        self.norm_mlp = nn.Parameter(torch.ones(width))
        self.norm_attention_bias = bias_of(width, c.norm == "layer-bias")
        self.norm_mlp_bias = bias_of(width, c.norm == "layer-bias")
        self.qkv = nn.Parameter(torch.randn(c.projected, width) * width**-0.5)
        self.up = nn.Parameter(torch.randn(c.ups * hidden, width) * width**-0.5)
        # What is added to the stream starts small, the more so the more blocks add to it.
        small = (2 * c.layers) ** -0.5 * 0.5
        self.out = nn.Parameter(torch.randn(width, inner) * inner**-0.5 * small)
        self.down = nn.Parameter(torch.randn(width, hidden) * hidden**-0.5 * small)
        self.qkv_bias = bias_of(c.projected, c.biases != "none")
        self.out_bias = bias_of(width, c.biases == "all")
        self.up_bias = bias_of(c.ups * hidden, c.biases == "all")
        self.down_bias = bias_of(width, c.biases == "all")

    @property
    def matrices(self) -> dict[str, int]:
        """The matrices by name, each with the number of equal ones that it packs along its rows."""
        return {"qkv": self.c.heads // self.c.kv_heads + 2, "out": 1, "up": self.c.ups, "down": 1}

    def forward(self, x_BTD: Tensor, rotation: Rotation | None, dtype: torch.dtype, dropout: float) -> Tensor:
        """The whole sequence at once; `dropout` of what is added to the stream."""
        return self.network(self.attend(x_BTD, rotation, dtype, dropout), dtype, dropout)

    def step(
        self, x_BTD: Tensor, rotation: Rotation | None, kv_2BKCE: Tensor, filled: int, dtype: torch.dtype
    ) -> Tensor:
        """T more positions after the `filled` ones whose keys and values are in `kv`, which is written in place.

        dtype: of the products. Without gradients.
        """
        return self.network(self.attend_further(x_BTD, rotation, kv_2BKCE, filled, dtype), dtype, 0.0)

    def attend(self, x_BTD: Tensor, rotation: Rotation | None, dtype: torch.dtype, dropout: float) -> Tensor:
        """The stream with what every position finds in itself and those before it."""
        x_BTD, normed_BTD = self._normed_for_attention(x_BTD, dtype)
        if self.has_kernels:
            attended_BTI = projected_self_attention(normed_BTD, self.qkv.to(dtype), self.heads, rotation)
        else:
            attended_BTI = attended_before(*self._split(normed_BTD, rotation), window=self.c.window)
        found_BTD = F.linear(attended_BTI, self.out.to(dtype), rounded(self.out_bias, dtype))
        return _add(x_BTD, found_BTD, dropout)

    def attend_both_ways(self, x_BTD: Tensor, there_BT: Tensor, dtype: torch.dtype, dropout: float) -> Tensor:
        """The stream with what every position finds in all that are there, before and after it."""
        assert self.has_kernels, "encoders have one composition"
        x_BTD, normed_BTD = self._normed_for_attention(x_BTD, dtype)
        attended_BTD = self_attention(packed(normed_BTD, self.qkv.to(dtype), self.heads), there_BT)
        return _add(x_BTD, F.linear(attended_BTD, self.out.to(dtype)), dropout)

    def attend_further(
        self, x_BTD: Tensor, rotation: Rotation | None, kv_2BKCE: Tensor, filled: int, dtype: torch.dtype
    ) -> Tensor:
        """`attend` for T more positions, as in `step`."""
        x_BTD, normed_BTD = self._normed_for_attention(x_BTD, dtype)
        q_BHTE, k_BKTE, v_BKTE = self._split(normed_BTD, rotation)
        end = filled + x_BTD.shape[1]
        kept = kv_2BKCE[..., :end, :]
        kept[0, :, :, filled:] = k_BKTE
        kept[1, :, :, filled:] = v_BKTE
        keys, values = kept.to(dtype).unbind(0)
        attended_BTI = attended_before(q_BHTE, keys, values, window=self.c.window)
        found_BTD = F.linear(attended_BTI, self.out.to(dtype), rounded(self.out_bias, dtype))
        return _add(x_BTD, found_BTD, 0.0)

    def step_each(
        self, x_1BD: Tensor, rotation: Rotation | None, kv_2BKSE: Tensor, position_B: Tensor, dtype: torch.dtype
    ) -> Tensor:
        """One more position in each of B rows, each at a position of its own; rows stand where time stands elsewhere.

        Args:
            rotation: of the position of each row.
            kv_2BKSE: keys and values, written in place; S positions, as many as the longest row has with the new one.
            dtype: of the products. Without gradients.
        """
        return self.network(self.attend_each(x_1BD, rotation, kv_2BKSE, position_B, dtype), dtype, 0.0)

    def attend_each(
        self, x_1BD: Tensor, rotation: Rotation | None, kv_2BKSE: Tensor, position_B: Tensor, dtype: torch.dtype
    ) -> Tensor:
        """`attend_further` for one more position in each row, as in `step_each`."""
        x_1BD, normed_1BD = self._normed_for_attention(x_1BD, dtype)
        q_1HBE, k_1KBE, v_1KBE = self._split(normed_1BD, rotation)
        rows_B = torch.arange(len(position_B), device=position_B.device)
        kv_2BKSE[0, rows_B, :, position_B] = k_1KBE[0].transpose(0, 1).to(kv_2BKSE.dtype)
        kv_2BKSE[1, rows_B, :, position_B] = v_1KBE[0].transpose(0, 1).to(kv_2BKSE.dtype)
        keys, values = (for_each_head(part.to(dtype), self.heads) for part in kv_2BKSE.unbind(0))
        place_S = torch.arange(kv_2BKSE.shape[3], device=position_B.device)
        seen_BS = place_S <= position_B[:, None]
        if self.c.window is not None:
            seen_BS &= place_S > position_B[:, None] - self.c.window
        queries = q_1HBE.permute(2, 1, 0, 3)
        found_BH1E = F.scaled_dot_product_attention(queries, keys, values, attn_mask=seen_BS[:, None, None])
        attended_1BI = found_BH1E.flatten(1)[None]
        return _add(x_1BD, F.linear(attended_1BI, self.out.to(dtype), rounded(self.out_bias, dtype)), 0.0)

    @torch.no_grad()
    def looks(self, x_BTD: Tensor, rotation: Rotation | None) -> tuple[Tensor, float]:
        """The attention weights of every head, B×H×T×T, and how far the fused kernel is from them at most."""
        q_BHTE, k_BKTE, _ = self._split(self._normed_for_attention(x_BTD, x_BTD.dtype)[1], rotation)
        return looked(q_BHTE, for_each_head(k_BKTE, self.heads), causal=True, window=self.c.window)

    @torch.no_grad()
    def looks_both_ways(self, x_BTD: Tensor, there_BT: Tensor) -> tuple[Tensor, float]:
        """The same of `attend_both_ways`, where all places are there."""
        q_BHTD, k_BHTD, _ = self._split(self._normed_for_attention(x_BTD, x_BTD.dtype)[1], None)
        return looked(q_BHTD, k_BHTD, mask=there_BT[:, None, None])

    @torch.no_grad()
    def unfolded(self, x_1TD: Tensor, rotation: Rotation | None, head: int) -> Unfolded:
        """One head as weights, and one matrix W_o W_v for what it does to each vector it looks at.

        What biases add is left out: it is the same for all that a head looks at, and weights sum to 1.
        """
        c, normed_1TD = self.c, self._normed_for_attention(x_1TD, x_1TD.dtype)[1]
        q_BHTE, k_BKTE, v_BKTE = self._split(normed_1TD, rotation)
        k_BHTE, v_BHTE = for_each_head(k_BKTE, c.heads), for_each_head(v_BKTE, c.heads)
        row = (c.heads + c.kv_heads + head * c.kv_heads // c.heads) * c.head_width  # where its values begin
        mine = slice(head, head + 1)
        found_TE = attended_before(q_BHTE[:, mine], k_BHTE[:, mine], v_BHTE[:, mine], window=c.window)[0]
        if self.qkv_bias is not None:
            found_TE = found_TE - self.qkv_bias[row : row + c.head_width]
        out_DE = self.out[:, head * c.head_width : (head + 1) * c.head_width]
        return Unfolded(
            x_ND=normed_1TD[0],
            weights_NN=written_out(q_BHTE, k_BHTE, causal=True, window=c.window)[0, head],
            value_DD=out_DE @ self.qkv[row : row + c.head_width],
            y_ND=found_TE @ out_DE.T,
            head_width=c.head_width,
        )

    def without_head(self, head: int) -> AbstractContextManager[None]:
        """While it lasts, what this head found is not added to the stream."""
        return silenced(self.out, self.heads, head)

    def network(self, x_BTD: Tensor, dtype: torch.dtype, dropout: float) -> Tensor:
        """The stream with what the two layers make of each position."""
        x_BTD, normed_BTD = self._normed(x_BTD, self.norm_mlp, self.norm_mlp_bias, dtype)
        if self.has_kernels and self.c.activation == "relu2":
            return _add(x_BTD, squared_relu_network(normed_BTD, self.up, self.down), dropout)
        hidden = F.linear(normed_BTD, self.up.to(dtype), rounded(self.up_bias, dtype))
        changed = F.linear(activated(hidden, self.c.activation), self.down.to(dtype), rounded(self.down_bias, dtype))
        return _add(x_BTD, changed, dropout)

    def _normed_for_attention(self, x_BTD: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        return self._normed(x_BTD, self.norm_attention, self.norm_attention_bias, dtype)

    def _normed(
        self, x_BTD: Tensor, weight_D: Tensor, bias_D: Tensor | None, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """The stream to go on with, and its norm rounded to `dtype`."""
        if self.has_kernels:
            return normed_beside(x_BTD, weight_D, dtype)
        return x_BTD, norm(x_BTD, weight_D, bias_D, self.c).to(dtype)

    def _split(self, normed_BTD: Tensor, rotation: Rotation | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries B×H×T×E, keys and values B×K×T×E of the normed stream; queries and keys are turned by their positions."""
        dtype = normed_BTD.dtype
        made_BTX = F.linear(normed_BTD, self.qkv.to(dtype), rounded(self.qkv_bias, dtype))
        return split_groups(made_BTX, self.c.heads, self.c.kv_heads, rotation)


def bias_of(size: int, is_there: bool) -> nn.Parameter | None:
    """Return a bias of zeros, or None."""
    return nn.Parameter(torch.zeros(size)) if is_there else None


def rounded(bias: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Return a bias, if there is one, in the precision of the products."""
    return None if bias is None else bias.to(dtype)


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


def block_parts(c: Composition, shape: Shape, of: str = "") -> list[Part]:
    """Attention and network of all blocks, each with its norm. of: whose, where there are others, such as "encoder "."""
    places, vectors = shape.places, c.norm_vectors * c.width
    pairs = Part("pairs", work=attention_work(shape.tokens, shape.past + shape.tokens, c.inner, shape.rows))
    return [
        joined(
            f"{of}attention",
            linear(places, c.width, c.projected, bias=c.biases != "none"),
            pairs,
            linear(places, c.inner, c.width, bias=c.biases == "all"),
            vectors=vectors,
            times=c.layers,
        ),
        joined(
            f"{of}feed-forward",
            linear(places, c.width, c.ups * c.hidden, bias=c.biases == "all"),
            linear(places, c.hidden, c.width, bias=c.biases == "all"),
            vectors=vectors,
            times=c.layers,
        ),
    ]


def _add(x_BTD: Tensor, change_BTD: Tensor, dropout: float) -> Tensor:
    """The stream and what was read from it, after dropout."""
    if dropout:
        change_BTD = F.dropout(change_BTD, dropout)
    if not x_BTD.is_cuda:  # where adding two precisions at once is slow
        change_BTD = change_BTD.to(x_BTD.dtype)
    return x_BTD + change_BTD


def normed(x_BTD: Tensor, weight_D: Tensor, dtype: torch.dtype) -> Tensor:
    """Layer norm without a bias, computed in float32, then rounded to `dtype`."""
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
        return F.linear(F.linear(x_BTI, up_HI).relu_().square_(), down_OH)
    if fast.enabled and fills_a_gpu(x_BTI, up_HI, down_OH):
        return squared_relu_on_gpu(x_BTI, up_HI, down_OH)
    if fast.enabled and not torch.compiler.is_compiling():
        return squared_relu(x_BTI, up_HI, down_OH)
    return F.linear(F.linear(x_BTI, up_HI).relu().square(), down_OH)
