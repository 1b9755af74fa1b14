"""`gpt`: a decoder-only Transformer (Vaswani 2017; Radford 2018).

    x⁰_t = E[token_{t-1}] (+ position),   x^l = Block(x^{l-1}),   p(token_t) = softmax(U norm(x^L)_t)

Windows. The model reads at most `context` inputs, of which the first is its begin symbol ("nothing is known of what came
before"). After `context` predictions it starts a new window with the last `context - stride` tokens. Scoring a text at
once, in chunks or token by token follows this one rule, so the numbers agree; a smaller stride gives every token more
history and costs more.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import Mistake
from lmlab.formulas import ONE_TOKEN, Part, Shape, Size
from lmlab.interface import ContextPolicy, Loss, State, Windows
from lmlab.layers import fast
from lmlab.layers.blocks import Block, bias_of
from lmlab.layers.composition import has_kernels, norm
from lmlab.layers.fast.many_rows import ManyRows
from lmlab.layers.fast.one_row import BlockWeights, Weights
from lmlab.layers.heads import Head, log_probabilities, summed_nats
from lmlab.layers.looking import Looks, Unfolded
from lmlab.layers.positions import Rotation, rotary_tables, sinusoidal_table
from lmlab.layers.row_cache import PlainRowCache, RowCache
from lmlab.models._gpt_config import BATCH_TOKENS, GPTConfig, composition, gpt_parts, refuse_uneven_heads, resolve_gpt
from lmlab.models._gpt_decoder import GPTDecoder
from lmlab.models._gpt_state import GPTMemory, GPTRows, GPTState
from lmlab.models.families.softmax import SoftmaxModel

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts

SCORE_CHUNK = 1 << 15  # inputs scored at once: bounds memory, large enough that matrix products run at full speed
# The length that embeddings begin with where they are the output layer too. The token just read scores this times the root of
# the width above the others at first: with a length of one, a wide model began nearly sure that it comes again.
TIED = 0.35


class GPT(SoftmaxModel):
    """A decoder Transformer with pre-norm blocks.

    Parameters, with V tokens of the vocabulary and D the width:
        embedding: (V + 1) × D. Row V is that of the begin symbol, the first input of every window.
        position: C × D, where positions are learned; row 0 is that of the begin symbol.
        blocks.0, blocks.1, …: as `Block` says.
        norm: D, before the output layer; `norm_bias` where norms have one.
        output: V × D, where it is not tied to the embedding; `output_bias`, V.
    """

    name = "gpt"
    Config = GPTConfig
    context: int
    _decoder: GPTDecoder | None = None  # of the engine that this model was made for; else every text has its own
    cos_CD: Tensor  # of rotary positions
    sin_CD: Tensor
    default_learning_rate: ClassVar[float] = 0.0015
    default_momentum: ClassVar[float] = 0.9  # recurrent and convolutional models do better with more
    logits_follow: ClassVar[tuple[str, ...]] = ("norm",)
    letters: ClassVar[dict[str, str]] = {"layers": "L", "width": "D", "heads": "H", "context": "C", "stride": "s"}
    letters |= {"kv_heads": "K", "head_width": "E", "hidden": "F", "window": "w"}
    decoding_dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.bfloat16)

    def __init__(self, config: GPTConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        layers, width, heads, context = config.layers, config.width, config.heads, config.context
        assert layers is not None, "resolve the config first"
        assert width is not None
        assert heads is not None
        assert context is not None
        assert config.stride is not None
        assert config.dropout is not None
        refuse_uneven_heads(config)
        if not 1 <= config.stride <= context:
            raise Mistake(
                f"stride {config.stride} must be between 1 and the context, {context}", code="stride-out-of-range"
            )
        self.context, self.stride, self.width, self.begin_id = context, config.stride, width, vocab_size
        self.policy = ContextPolicy.windows(context, config.stride)
        self.composition = made_of = composition(config)
        self.has_kernels = has_kernels(made_of) and not config.output_bias
        # The output matrix wants small entries, the stream entries of size one.
        tied_scale = width**0.5 if config.tie else 1.0
        self.scale = tied_scale if config.embedding_scale is None else config.embedding_scale
        size = TIED * width**-0.5 if config.tie else 1.0
        self.embedding = nn.Parameter(torch.randn(self.vocab_size + 1, width) * size)
        self.blocks = nn.ModuleList(Block(made_of) for _ in range(layers))
        self.norm = nn.Parameter(torch.ones(width))
        self.norm_bias = bias_of(width, config.norm == "layer-bias")
        if not config.tie:
            self.output = nn.Parameter(torch.zeros(self.vocab_size, width))
        self.output_bias = bias_of(self.vocab_size, bool(config.output_bias))
        if config.positions == "rotary":
            cos_CD, sin_CD = rotary_tables(context, made_of.rotary_width, config.rotary_base)
            self.register_buffer("cos_CD", cos_CD, persistent=False)
            self.register_buffer("sin_CD", sin_CD, persistent=False)
        elif config.positions == "learned":
            self.position = nn.Parameter(torch.randn(context, width) * 0.02)
        else:
            self.register_buffer("position", sinusoidal_table(context, width), persistent=False)

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """Return the tables, the blocks, a norm and the output layer."""
        return gpt_parts(config, vocab_size, shape)

    @classmethod
    def resolve(cls, config: GPTConfig, facts: TextFacts, budget: Budget) -> GPTConfig:
        """Size the model to what the budget can train and the text can feed; explicit settings are kept."""
        return resolve_gpt(config, facts, budget)

    @property
    def batch_shape(self) -> tuple[int, int]:
        """Windows of the whole context, together BATCH_TOKENS tokens, or one of them if it is longer than that."""
        return max(1, BATCH_TOKENS // self.context), self.context

    @property
    def longest_window(self) -> int:
        """The context: training does not slide the window."""
        return self.context

    def hidden_matrices(self) -> dict[str, int]:
        """The four matrices of each block; queries, keys and values are several in one, as are the two of a gated network."""
        return {f"blocks.{i}.{name}": n for i, block in enumerate(self._stack()) for name, n in block.matrices.items()}

    def loss(self, batch: Windows) -> Loss:
        """Nats of windows that each start afresh; T is at most the context."""
        tokens_BT = batch.tokens_BT
        assert tokens_BT.shape[1] <= self.context, "a window is no longer than the context"
        dtype = self.compute_dtype
        dropout = self.config.dropout if self.training else 0.0
        hidden_BTD = self._hidden(F.pad(tokens_BT[:, :-1], (1, 0), value=self.begin_id), dtype, dropout)
        keep_N = None if batch.mask_BT is None else batch.mask_BT.reshape(-1)
        hidden_ND, output_VD = hidden_BTD.flatten(0, 1).to(dtype), self.output_weight()
        total = summed_nats(hidden_ND, output_VD, self.output_bias, tokens_BT.reshape(-1), keep_N)
        return Loss(total=total, count=batch.count)

    @torch.no_grad()
    def said_by(self, head: Head, numbers: int, tokens_BT: Tensor) -> Tensor:
        """What the head says of each token under the window rule, so many numbers, B×T×F."""
        (rows, length), device = tokens_BT.shape, tokens_BT.device
        found_BTF = torch.empty(rows, length, numbers, device=device)
        kept, starts = self.context - self.stride, self._window_starts(length)
        reach_C = torch.arange(min(self.context, length))
        per_call = max(1, SCORE_CHUNK // max(1, rows * len(reach_C)))
        for group in (starts[i : i + per_call] for i in range(0, len(starts), per_call)):
            start_W1 = torch.tensor(group)[:, None]
            index_WC = start_W1 + reach_C
            # The last window may reach beyond the text; what stands there is not counted and cannot be seen from before.
            windows_BWC = tokens_BT[:, index_WC.clamp(max=length - 1).to(device)]
            hidden_XCD = self._hidden_of_windows(windows_BWC.flatten(0, 1))
            # Each token once, not what windows share: with a large vocabulary the head is the most of it.
            new_WC = ((reach_C >= kept) | (start_W1 == 0)) & (index_WC < length)
            places_N = new_WC.flatten().nonzero()[:, 0].to(device)
            hidden_BND = hidden_XCD.view(rows, index_WC.numel(), self.width).index_select(1, places_N)
            first = group[0] + kept if group[0] else 0
            new_BN = tokens_BT[:, first : first + len(places_N)]
            said_NF = head(hidden_BND.flatten(0, 1), self.output_weight(), self.output_bias, new_BN.flatten())
            found_BTF[:, first : first + len(places_N)] = said_NF.view(*new_BN.shape, numbers)
        return found_BTF

    @torch.no_grad()
    def looks(self, tokens_T: Tensor) -> Iterator[Looks]:
        """What the heads of each block looked at, one block after the other, in the windows of `score`."""
        length, device = len(tokens_T), tokens_T.device
        kept, starts = self.context - self.stride, self._window_starts(length)
        reach_C = torch.arange(min(self.context, length), device=device)
        index_WC = torch.tensor(starts, device=device)[:, None] + reach_C
        windows_WC = tokens_T[index_WC.clamp(max=length - 1)]
        x_WCD, rotation = self._embed(F.pad(windows_WC[:, :-1], (1, 0), value=self.begin_id), 0)
        first_T = torch.tensor([self.policy.resume(t) - 1 for t in range(length)], device=device)
        assert self.config.heads is not None
        for number, block in enumerate(self._stack(), start=1):
            weights_HTC = x_WCD.new_zeros(self.config.heads, length, len(reach_C))
            difference = 0.0
            for window, start in enumerate(starts):
                looks_1HCC, apart = block.looks(x_WCD[window : window + 1], rotation)
                first, end = kept if start else 0, min(start + self.context, length)
                weights_HTC[:, start + first : end] = looks_1HCC[0, :, first : end - start]
                difference = max(difference, apart)
            name = f"block {number}"
            yield Looks(name=name, weights_HTC=weights_HTC, first_T=first_T, begins_T=first_T, difference=difference)
            x_WCD = block(x_WCD, rotation, torch.float32, 0.0)

    @torch.no_grad()
    def unfolded(self, tokens_T: Tensor, layer: int, head: int) -> Unfolded:
        """What one head of one block (both from 0) did with the begin symbol and all of these tokens, in one window."""
        x_1TD, rotation = self._embed(F.pad(tokens_T[None], (1, 0), value=self.begin_id), 0)
        for number, block in enumerate(self._stack()):
            if number == layer:
                return block.unfolded(x_1TD, rotation, head)
            x_1TD = block(x_1TD, rotation, torch.float32, 0.0)
        raise AssertionError(f"there is no block {layer}")

    def without_head(self, layer: int, head: int) -> AbstractContextManager[None]:
        """While it lasts, one head of one block (both from 0) is switched off."""
        return list(self._stack())[layer].without_head(head)

    def _window_starts(self, length: int) -> range:
        """The first token of every window of a text."""
        return range(0, max(length - self.context + self.stride, 1), self.stride)

    def for_decoding(self, dtype: torch.dtype) -> GPT:
        """Return a view of this model with a decoder of its own: kept caches, and weights rounded to `dtype`."""
        view = copy.copy(self)
        view._decoder = GPTDecoder(self._weights, self._new_cache, dtype)
        return view

    def begin(self, rows: int) -> tuple[Tensor, GPTState]:
        """Distribution of the first token of a text."""
        return self.begin_with(torch.empty(rows, 0, dtype=torch.long))

    def begin_with(self, tokens_BT: Tensor) -> tuple[Tensor, GPTState]:
        """With the begin symbol before it: one pass through the layers, not two."""
        empty_L2BHCD = self._empty_caches(len(tokens_BT))
        decoder = self._decoder or GPTDecoder(self._weights, self._new_cache, torch.float32)
        return self._read(self._in_window(GPTState(empty_L2BHCD, tokens_BT.to(empty_L2BHCD.device), 0, decoder)))

    def _empty_caches(self, rows: int) -> Tensor:
        """Never filled with zeros: the memory of positions that are not reached is not touched."""
        return torch.empty(self._cache_shape(rows), device=self.embedding.device, dtype=self.embedding.dtype)

    def _cache_shape(self, rows: int) -> tuple[int, int, int, int, int, int]:
        c = self.composition
        return len(self.blocks), 2, rows, c.kv_heads, self.context, c.head_width

    def _new_cache(self, rows: int, dtype: torch.dtype, selected: bool) -> RowCache:
        """A cache for rows that may have read different numbers of tokens; its step is recorded where there are kernels."""
        if self.has_kernels and fast.enabled:
            return ManyRows(self._weights(), rows, dtype, selected)
        return PlainRowCache(self._read_each, self._cache_shape(rows), dtype, self.embedding.device)

    def _read_each(self, token_B: Tensor, position_B: Tensor, kv_L2BKSE: Tensor, dtype: torch.dtype) -> Tensor:
        """One more token in each row, each at a position of its own; log p of the next, B×V."""
        x_1BD, rotation = self._embed(token_B[None], position_B)
        dtype = dtype if x_1BD.is_cuda else x_1BD.dtype  # a CPU may have no fast products in bf16
        for block, kv_2BKSE in zip(self._stack(), kv_L2BKSE, strict=True):
            x_1BD = block.step_each(x_1BD, rotation, kv_2BKSE, position_B, dtype)
        return log_probabilities(self._normed(x_1BD[0]), self.output_weight(), self.output_bias)

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        """Distribution after these tokens. Windows that are over before the last token are never computed."""
        assert isinstance(state, GPTMemory)
        state.spend()
        if isinstance(state, GPTState) and self._is_one_more(tokens_BT, state):
            return state.one_more(int(tokens_BT))
        several = tokens_BT.shape[1] > 1
        if isinstance(state, GPTRows) and several and state.even:
            state = state.plain()
        elif isinstance(state, GPTRows) or (not several and self._by_rows(state.decoder)):
            rows = state if isinstance(state, GPTRows) else self._rows(state)
            for token_B in tokens_BT.unbind(1):
                logp_BV, rows = self._advance_rows(token_B, rows)
            return logp_BV, rows
        assert isinstance(state, GPTState)
        window_BT = torch.cat([state.window_BT, tokens_BT], dim=1)
        return self._read(self._in_window(GPTState(state.kv_L2BHCD, window_BT, state.filled, state.decoder)))

    def _is_one_more(self, tokens_BT: Tensor, state: GPTState) -> bool:
        """One more token of one text on a CPU, for which the window has room."""
        on_cpu = self.embedding.device.type == "cpu" and self.embedding.dtype == torch.float32
        one = (
            fast.enabled and self.has_kernels and on_cpu and tokens_BT.numel() == 1 and not self._by_rows(state.decoder)
        )
        return one and 0 < state.filled < self.context

    def _in_window(self, state: GPTState) -> GPTState:
        """What the last window has of these tokens; nothing of it is filled if it is not the one that was begun."""
        window_BT, filled = state.window_BT, state.filled
        while window_BT.shape[1] >= self.context:
            window_BT, filled = window_BT[:, self.stride :], 0
        return GPTState(state.kv_L2BHCD, window_BT, filled, state.decoder)

    def _by_rows(self, decoder: GPTDecoder) -> bool:
        """Whether single tokens are read by the step of fixed shape, which a GPU replays: where a window has place for one."""
        wanted = self.embedding.is_cuda or decoder.dtype != torch.float32
        return fast.enabled and self.has_kernels and self.context > 1 and wanted

    def _rows(self, state: GPTMemory) -> GPTRows:
        """The rows of a state in a cache of fixed shape."""
        cache, lease = state.decoder.acquire_cache(state.rows)
        rows = GPTRows(cache, lease, np.zeros(state.rows, dtype=np.int64), state.decoder)
        rows.put(torch.arange(state.rows, device=rows.device), state)
        return rows

    def _advance_rows(self, token_B: Tensor, rows: GPTRows) -> tuple[Tensor, GPTRows]:
        """One more token in each row; rows whose window is over begin the next one."""
        over = np.flatnonzero(rows.lengths_B + 1 >= self.context)
        if not len(over):
            return rows.step(token_B)
        over_N = torch.from_numpy(over).to(token_B.device)
        tokens_NT = torch.cat([rows.cache.tokens_BC[over_N, : self.context - 1], token_B[over_N, None]], dim=1)
        empty_L2NHCD = self._empty_caches(len(over))
        logp_NV, begun = self._read(GPTState(empty_L2NHCD, tokens_NT[:, self.stride :], 0, rows.decoder))
        logp_BV, rows = rows.step(token_B)  # what it makes of the rows that are over is replaced
        rows.put(over_N, begun)
        return logp_BV.index_copy(0, over_N, logp_NV), rows

    @torch.no_grad()
    def _read(self, state: GPTState) -> tuple[Tensor, GPTState]:
        """Feed the inputs of the window that are not in the caches yet; distribution after the last of them."""
        if state.filled:
            inputs_BT = state.window_BT[:, state.filled - 1 :]
        else:
            inputs_BT = F.pad(state.window_BT, (1, 0), value=self.begin_id)
        after = GPTState(state.kv_L2BHCD, state.window_BT, state.filled + inputs_BT.shape[1], state.decoder)
        plain = self.embedding.dtype != torch.float32 or not self.has_kernels
        if fast.enabled and not plain and inputs_BT.numel() == 1 and inputs_BT.device.type == "cpu":
            return state.decoder.read_one(int(inputs_BT), state.filled, state.kv_L2BHCD), after
        x_BTD, rotation = self._embed(inputs_BT, state.filled)
        dtype = state.decoder.dtype if x_BTD.is_cuda else x_BTD.dtype  # a CPU may have no fast products in bf16
        for block, kv_2BHCD in zip(self._stack(), state.kv_L2BHCD, strict=True):
            x_BTD = block.step(x_BTD, rotation, kv_2BHCD, state.filled, dtype)
        return log_probabilities(self._normed(x_BTD[:, -1]), self.output_weight(), self.output_bias), after

    def _stack(self) -> Iterator[Block]:
        for block in self.blocks:
            assert isinstance(block, Block)
            yield block

    def _weights(self) -> Weights:
        """As the kernel for one row wants them."""
        blocks = [BlockWeights(b.norm_attention, b.qkv, b.out, b.norm_mlp, b.up, b.down) for b in self._stack()]
        assert self.config.heads is not None
        return Weights(
            embedding_VD=self.embedding,
            blocks=blocks,
            norm_D=self.norm,
            output_VD=self.output_weight(),
            position_CD=None if self.config.positions == "rotary" else self.position,
            heads=self.config.heads,
            context=self.context,
            scale=self.scale,
            gelu=self.config.activation == "gelu",
        )

    def _hidden_of_windows(self, tokens_BT: Tensor) -> Tensor:
        """What the head reads at every place of windows that start afresh, B×T×D, float32."""
        return self._hidden(F.pad(tokens_BT[:, :-1], (1, 0), value=self.begin_id), torch.float32, 0.0)

    def _hidden(self, inputs_BT: Tensor, dtype: torch.dtype, dropout: float) -> Tensor:
        """The normed output of the last block, B×T×D."""
        x_BTD, rotation = self._embed(inputs_BT, 0)
        if torch.compiler.is_compiling():  # half the traffic between the products, which is what a GPU then waits for
            x_BTD = x_BTD.to(dtype)
        if dropout:  # where a text is read often; without it unseen ones cost far more
            x_BTD = F.dropout(x_BTD, dropout)
        for block in self._stack():
            x_BTD = block(x_BTD, rotation, dtype, dropout)
        return self._normed(x_BTD)

    def _normed(self, x: Tensor) -> Tensor:
        """What the output layer reads of the stream."""
        return norm(x, self.norm, self.norm_bias, self.composition)

    def _embed(self, inputs_BT: Tensor, first: int | Tensor) -> tuple[Tensor, Rotation | None]:
        """Vectors of inputs at positions first, first + 1, … (or at these T positions), and the rotation of those positions."""
        at = slice(first, first + inputs_BT.shape[1]) if isinstance(first, int) else first
        x_BTD = F.embedding(inputs_BT, self.embedding)
        if self.scale != 1.0:
            x_BTD = x_BTD * self.scale
        if self.config.positions != "rotary":
            return x_BTD + self.position[at], None
        return x_BTD, (self.cos_CD[at], self.sin_CD[at])

    @torch.no_grad()
    def multiply_logits(self, factor: float) -> None:
        """By the last norm, and by the bias of the output layer."""
        for weight in (self.norm, self.norm_bias, self.output_bias):
            if weight is not None:
                weight.mul_(factor)

    def output_weight(self) -> Tensor:
        """V×D: the embedding without the begin symbol when tied."""
        return self.embedding[: self.vocab_size] if self.config.tie else self.output
