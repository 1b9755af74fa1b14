"""One more token of each of many texts, which may be of different lengths: what writing does all the time on a GPU.

There a step is mostly asking for kernels. Here everything has a fixed shape (caches as long as the context, where each row
stands is a number on the device), so that on a GPU the step is recorded once and replayed, and what lies between the products
is few kernels (`layers/fast/row_kernels.py`, where triton is there). Their plain twins are below; that of the whole step is
`Block.step` in `layers/blocks.py`, which `gpt` takes for everything else.

Weights, keys and values are in the precision asked for; the stream, the softmax and the logits are float32.

Shapes: B rows, D width of the stream (of a head in caches), H heads, C context, L layers, V vocabulary.
"""

from __future__ import annotations

import functools
from typing import final

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.layers.fast.one_row import EPSILON, BlockWeights, Weights
from lmlab.layers.fast.triton_here import HAS_TRITON
from lmlab.layers.positions import Rotation, rotary_tables
from lmlab.layers.row_cache import RowCache

WARM_STEPS = 2
FEW = 4  # rows that read the weights one after the other, from the cache
MOST_INPUTS = 1024  # that a kernel can norm
_WARMED: set[object] = set()  # kinds of steps that were taken in this process: their kernels are loaded


def plain_add_norm(stream_BD: Tensor, change_BD: Tensor | None, weight_D: Tensor, dtype: torch.dtype) -> Tensor:
    """Layer norm without a bias."""
    if change_BD is not None:
        stream_BD += change_BD.float()
    return F.layer_norm(stream_BD, weight_D.shape, weight_D, eps=EPSILON).to(dtype)


def plain_attend(qkv_B3HD: Tensor, position_B: Tensor, cache_2BHCD: Tensor, rotation_CD: Rotation | None) -> Tensor:
    """Over the whole cache, with a mask."""
    q_BHD, k_BHD, v_BHD = qkv_B3HD.float().unbind(1)
    if rotation_CD is not None:
        cos, sin = (table_CD[position_B][:, None] for table_CD in rotation_CD)
        half = q_BHD.shape[-1] // 2
        q_BHD, k_BHD = (x * cos + x.roll(half, -1) * sin for x in (q_BHD, k_BHD))
    rows = torch.arange(len(position_B), device=position_B.device)
    cache_2BHCD[0, rows, :, position_B] = k_BHD.to(cache_2BHCD.dtype)
    cache_2BHCD[1, rows, :, position_B] = v_BHD.to(cache_2BHCD.dtype)
    seen_BC = torch.arange(cache_2BHCD.shape[3], device=position_B.device) <= position_B[:, None]
    keys, values = cache_2BHCD.float().unbind(0)
    found = F.scaled_dot_product_attention(q_BHD[:, :, None], keys, values, attn_mask=seen_BC[:, None, None])
    return found.flatten(1).to(qkv_B3HD.dtype)


def plain_enter(token_B: Tensor, position_B: Tensor, now_B: Tensor, tokens_BC: Tensor, weights: Weights) -> Tensor:
    """The stream of the tokens at their positions. They are written down, and every row is one position further then.

    Rows that nobody uses any more stay at the end, where they do no harm.
    """
    now_B.copy_(position_B)
    tokens_BC.scatter_(1, now_B[:, None] - 1, token_B[:, None])
    position_B.add_(1).clamp_(max=weights.context - 1)
    stream_BD = F.embedding(token_B, weights.embedding_VD) * weights.scale
    return stream_BD if weights.position_CD is None else stream_BD + weights.position_CD[now_B]


def plain_activate(x: Tensor, gelu: bool) -> Tensor:
    """GELU, or the squared ReLU."""
    return F.gelu(x, approximate="tanh") if gelu else x.relu_().square_()


def plain_project(
    x_BK: Tensor,
    weight_NK: Tensor,
    *,
    norm_K: Tensor | None = None,
    gelu: bool | None = None,
    onto_BN: Tensor | None = None,
    dtype: torch.dtype,
) -> Tensor:
    """x Wᵀ in float32, of the normed x where a norm is given, then activated, or added to something in place."""
    x_BK = x_BK.float() if norm_K is None else plain_add_norm(x_BK, None, norm_K, torch.float32)
    out_BN = F.linear(x_BK, weight_NK.float())
    if gelu is not None:
        out_BN = plain_activate(out_BN, gelu)
    return out_BN.to(dtype) if onto_BN is None else onto_BN.add_(out_BN)


@final
class ManyRows(RowCache):
    """Weights, a cache of fixed shape, and a step that a GPU records once and replays."""

    def __init__(self, weights: Weights, rows: int, dtype: torch.dtype, selected: bool = False) -> None:
        device, width = weights.norm_D.device, weights.norm_D.shape[0]
        self.source, self.dtype, self.heads = weights, dtype, weights.heads
        places, head_width = self.capacity_for(rows), width // weights.heads
        shape = (len(weights.blocks), 2, places, weights.heads, weights.context, head_width)
        super().__init__(shape, dtype, device)
        self.made = self.on_gpu and HAS_TRITON
        self.few = self.made and places <= FEW and width <= MOST_INPUTS
        with torch.inference_mode(False), torch.no_grad():  # buffers that may be written to in any mode
            self.blocks = [_converted(block, dtype) for block in weights.blocks]
            self.output_VD = weights.output_VD.detach().to(dtype)
            self.token_B = torch.zeros(places, dtype=torch.long, device=device)
            self.now_B = torch.zeros(places, dtype=torch.long, device=device)  # of the input that is being read
            has_places = weights.position_CD is not None
            self.rotation_CD = None if has_places else _tables(weights.context, shape[-1], device)
        # Before a step is recorded some are taken kernel by kernel: the first of its kind, and those of rows that were just
        # selected, for beams select again after every step.
        kind = (dtype, device, shape, weights.output_VD.shape, weights.gelu, weights.position_CD is None)
        self.warm_steps = 0 if kind in _WARMED and not selected else WARM_STEPS
        _WARMED.add(kind)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._logits_BV: Tensor | None = None
        self._taken = 0

    @staticmethod
    def capacity_for(rows: int) -> int:
        """Return as many rows or a few more: products are fastest in multiples of eight rows."""
        return 1 << (rows - 1).bit_length() if rows <= 8 else -(-rows // 8) * 8

    @torch.no_grad()
    def step(self, token_B: Tensor, longest: int) -> Tensor:
        """log p of what follows these tokens, B×V, float32. Every row is one position further then."""
        rows = len(token_B)
        self.token_B[:rows] = token_B
        self._taken += 1
        if not self.on_gpu or self._taken <= self.warm_steps:
            # A CPU computes no more than it must.
            size = (self.capacity, self.context) if self.on_gpu else (rows, longest)
            return self._logp(self._logits(*size)[:rows])
        if self._graph is None:
            self._graph, self._logits_BV = self._record()
        self._graph.replay()
        assert self._logits_BV is not None
        return self._logp(self._logits_BV[:rows])

    def _logp(self, logits_BV: Tensor) -> Tensor:
        """In memory of its own: what was returned stays what it was when the next step is taken."""
        if self.made:
            from lmlab.layers.fast.row_kernels import log_softmax

            return log_softmax(logits_BV)
        return torch.log_softmax(logits_BV, dim=-1)

    def _record(self) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        graph, side, here = torch.cuda.CUDAGraph(), torch.cuda.Stream(), torch.cuda.current_stream()
        side.wait_stream(here)
        with torch.cuda.stream(side):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                logits_BV = self._logits(self.capacity, self.context)
            finally:
                graph.capture_end()
        here.wait_stream(side)
        return graph, logits_BV

    def _logits(self, rows: int, longest: int) -> Tensor:
        """The step itself: reads `token`, writes caches, `tokens` and `position`, always in the same places."""
        enter = plain_enter
        if self.made:
            from lmlab.layers.fast.row_kernels import enter
        now_B = self.now_B[:rows]
        stream_BD = enter(self.token_B[:rows], self.position_B[:rows], now_B, self.tokens_BC[:rows], self.source)
        if self.few:
            return self._few(stream_BD)
        return self._many(stream_BD, now_B, self.cache_L2BKCE[:, :, :rows, :, :longest])

    def _many(self, stream_BD: Tensor, now_B: Tensor, cache_L2BKCE: Tensor) -> Tensor:
        """Products by the library; norms and what comes between the products by kernels made for it, if they are there."""
        add_norm, attend, activate = plain_add_norm, plain_attend, plain_activate
        if self.made:
            from lmlab.layers.fast.row_kernels import activate, add_norm, attend
        change_BD: Tensor | None = None
        for block, cache_2BKCE in zip(self.blocks, cache_L2BKCE, strict=True):
            normed_BD = add_norm(stream_BD, change_BD, block.norm_attention_D, self.dtype)
            qkv_B3HD = F.linear(normed_BD, block.qkv).view(len(stream_BD), 3, self.heads, -1)
            attended_BD = attend(qkv_B3HD, now_B, cache_2BKCE, self.rotation_CD)
            change_BD = F.linear(attended_BD, block.out)
            normed_BD = add_norm(stream_BD, change_BD, block.norm_mlp_D, self.dtype)
            change_BD = F.linear(activate(F.linear(normed_BD, block.up), self.source.gelu), block.down)
        return _wide_product(add_norm(stream_BD, change_BD, self.source.norm_D, self.dtype), self.output_VD)

    def _few(self, stream_BD: Tensor) -> Tensor:
        """Few rows are all waiting for weights and for kernels to begin: every product does what is around it too."""
        from lmlab.layers.fast.row_kernels import attend, project

        dtype, gelu = self.dtype, self.source.gelu
        for block, cache_2BKCE in zip(self.blocks, self.cache_L2BKCE, strict=True):
            qkv_BX = project(stream_BD, block.qkv, norm_K=block.norm_attention_D, dtype=dtype)
            qkv_B3HD = qkv_BX.view(len(stream_BD), 3, self.heads, -1)
            attended_BD = attend(qkv_B3HD, self.now_B, cache_2BKCE, self.rotation_CD)
            project(attended_BD, block.out, onto_BN=stream_BD, dtype=dtype)
            hidden = project(stream_BD, block.up, norm_K=block.norm_mlp_D, gelu=gelu, dtype=dtype)
            project(hidden, block.down, onto_BN=stream_BD, dtype=dtype)
        return project(stream_BD, self.output_VD, norm_K=self.source.norm_D, dtype=torch.float32)


@functools.lru_cache(maxsize=8)
def _tables(context: int, width: int, device: torch.device) -> Rotation:
    cos_CD, sin_CD = rotary_tables(context, width)
    return cos_CD.to(device), sin_CD.to(device)


def _wide_product(x_BD: Tensor, weight_VD: Tensor) -> Tensor:
    """x Wᵀ in float32, from factors that may have less."""
    if x_BD.dtype == torch.float32:
        return F.linear(x_BD, weight_VD)
    if x_BD.is_cuda:
        try:
            return torch.mm(x_BD, weight_VD.t(), out_dtype=torch.float32)
        except TypeError:  # a torch that cannot: eight bits of mantissa, as in training
            return F.linear(x_BD, weight_VD).float()
    return F.linear(x_BD.float(), weight_VD.float())


def _converted(block: BlockWeights, dtype: torch.dtype) -> BlockWeights:
    """Matrices in the precision asked for; norms stay float32."""
    qkv, out, up, down = (w.detach().to(dtype) for w in (block.qkv, block.out, block.up, block.down))
    return BlockWeights(block.norm_attention_D.detach(), qkv, out, block.norm_mlp_D.detach(), up, down)
