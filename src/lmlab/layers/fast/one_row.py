"""One more token of one text on a CPU: what writing does all the time.

A product of a small matrix with a vector takes a few microseconds, and so does asking torch for it; everything around the
products is smaller still. NumPy is asked several times faster. So the norms, the rotation, the nonlinearity and the sums
are NumPy here, the products and attention are torch's, and both work on the same buffers (bench/bench_decoding.py). The plain
twin is `Block.step` in `layers/blocks.py`, which `gpt` takes for everything else.

Shapes: D width of the stream, H heads, C context, R half the width of a head, V vocabulary.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.layers.positions import rotary_tables

EPSILON = 1e-5  # of the norms, as in F.layer_norm


class BlockWeights(NamedTuple):
    """Of one block of a decoder Transformer."""

    norm_attention_D: Tensor
    qkv: Tensor
    out: Tensor
    norm_mlp_D: Tensor
    up: Tensor
    down: Tensor


class Weights(NamedTuple):
    """Of a decoder Transformer, in float32 on a CPU."""

    embedding_VD: Tensor
    blocks: Sequence[BlockWeights]
    norm_D: Tensor
    output_VD: Tensor
    position_CD: Tensor | None  # None: positions are rotary
    heads: int
    context: int
    scale: float  # of the embedding
    gelu: bool  # else the squared ReLU


class OneRow:
    """The weights as they lie in memory, and the buffers of one step. Not for two threads at once."""

    def __init__(self, weights: Weights) -> None:
        self.width, heads = weights.norm_D.shape[0], weights.heads
        self.heads, self.gelu, self.scale = heads, weights.gelu, weights.scale
        self.embedding_VD = _array(weights.embedding_VD)
        rotary = weights.position_CD is None
        self.position_CD = None if weights.position_CD is None else _array(weights.position_CD)
        self.turns = _turns(weights.context, heads, self.width // heads) if rotary else None
        self.blocks = [_Weights(block) for block in weights.blocks]
        self.norm_D, self.output_VD = _array(weights.norm_D), weights.output_VD.detach()
        with torch.inference_mode(False):  # buffers that may be written to in any mode
            self.normed_D, self.added_D = (torch.empty(self.width, dtype=torch.float32) for _ in range(2))
            self.qkv, self.hidden = (torch.empty(n * self.width, dtype=torch.float32) for n in (3, 4))
            self.query_BH1D = self.qkv[: self.width].view(1, heads, 1, -1)
        self.normed_np, self.added_np, self.hidden_np = map(_array, (self.normed_D, self.added_D, self.hidden))
        self.qkv_3HD = _array(self.qkv).reshape(3, heads, -1)
        self.halves = self.qkv_3HD[:2].reshape(2 * heads, 2, -1)  # of queries and keys
        self.swapped, self.turned = self.halves[:, ::-1], np.empty_like(self.halves)

    def log_probabilities(self, token: int, position: int, kv_L2BHCD: Tensor) -> Tensor:
        """What the model expects after this input at this position, 1×V. Writes the caches."""
        refuse_outside(token, position, len(self.embedding_VD), kv_L2BHCD.shape[-2])
        kv_L2HCD = kv_L2BHCD.numpy()[:, :, 0]
        past = kv_L2BHCD.flatten(0, 1).narrow(3, 0, position + 1).unbind(0)
        stream_D = self.embedding_VD[token] * np.float32(self.scale)
        if self.position_CD is not None:
            stream_D += self.position_CD[position]
        for i, weights in enumerate(self.blocks):
            self._norm(stream_D, weights.norm_attention)
            torch.mv(weights.qkv, self.normed_D, out=self.qkv)
            self._rotate(position)
            kv_L2HCD[i, :, :, position] = self.qkv_3HD[1:]
            attended = F.scaled_dot_product_attention(self.query_BH1D, past[2 * i], past[2 * i + 1])
            torch.mv(weights.out, attended.view(self.width), out=self.added_D)
            stream_D += self.added_np
            self._norm(stream_D, weights.norm_mlp)
            torch.mv(weights.up, self.normed_D, out=self.hidden)
            torch.mv(weights.down, self._activated(), out=self.added_D)
            stream_D += self.added_np
        self._norm(stream_D, self.norm_D)
        return torch.log_softmax(torch.mv(self.output_VD, self.normed_D), dim=-1)[None]

    def _norm(self, x_D: np.ndarray, weight_D: np.ndarray) -> None:
        """Layer norm without a bias, into `normed`."""
        out = self.normed_np
        np.subtract(x_D, np.add.reduce(x_D) / self.width, out=out)
        np.multiply(out, 1.0 / math.sqrt(float(out.dot(out)) / self.width + EPSILON), out=out)
        np.multiply(out, weight_D, out=out)

    def _rotate(self, position: int) -> None:
        """Turn queries and keys by their position."""
        if self.turns is not None:
            cos, sin = self.turns
            np.multiply(self.swapped, sin[position], out=self.turned)
            np.multiply(self.halves, cos[position], out=self.halves)
            np.add(self.halves, self.turned, out=self.halves)

    def _activated(self) -> Tensor:
        if self.gelu:
            return F.gelu(self.hidden, approximate="tanh")
        np.maximum(self.hidden_np, 0.0, out=self.hidden_np)
        np.multiply(self.hidden_np, self.hidden_np, out=self.hidden_np)
        return self.hidden


def refuse_outside(token: int, position: int, inputs: int, context: int) -> None:
    """An IndexError, as torch has one, for what there is no row of: C would read whatever lies there, NumPy from the end."""
    if not (0 <= token < inputs and 0 <= position < context):
        raise IndexError(f"token {token} of {inputs} at position {position} of {context}: there is none")


class _Weights:
    """Of one block: matrices for torch, vectors for NumPy."""

    def __init__(self, block: BlockWeights) -> None:
        self.qkv, self.out, self.up, self.down = (w.detach() for w in (block.qkv, block.out, block.up, block.down))
        self.norm_attention, self.norm_mlp = _array(block.norm_attention_D), _array(block.norm_mlp_D)


def _array(tensor: Tensor) -> np.ndarray:
    """The same memory as NumPy sees it."""
    array: np.ndarray = tensor.detach().numpy()
    return array


@functools.lru_cache(maxsize=4)
def _turns(context: int, heads: int, head_width: int) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin of every position, C×2H×2×R: halves ∘ cos + swapped halves ∘ sin turns all queries and keys at once."""
    cos, sin = (table.numpy().reshape(context, 1, 2, -1) for table in rotary_tables(context, head_width))
    return np.repeat(cos, 2 * heads, axis=1), np.repeat(sin, 2 * heads, axis=1)
