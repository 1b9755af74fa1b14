"""One more token of one text on a CPU, as one call of a function in C (`one_row.c`).

Between the products of a small model lie some thirty things to ask for in a block; even NumPy takes longer to be asked than to
do them. In C the whole step is asked for once, its threads meet at barriers of a fraction of a microsecond, and it takes
little more than reading the weights (bench/bench_decoding.py). Where no compiler is, `OneRow` does the same.
"""

from __future__ import annotations

import ctypes
import time
from pathlib import Path

import torch
from torch import Tensor

from lmlab.hardware.c_kernels import decided_on
from lmlab.hardware.kept_figures import thread_counts
from lmlab.hardware.races import Race, Work
from lmlab.hardware.threads import Trial
from lmlab.layers import fast
from lmlab.layers.fast.one_row import BlockWeights, OneRow, Weights, refuse_outside
from lmlab.layers.positions import rotary_tables

SOURCE = Path(__file__).with_name("one_row.c")
PART = 1024  # of the vocabulary, as in one_row.c
ALIGNED = 16  # floats: what is written together lies in lines of its own


class _Block(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("norm_attention", "qkv", "out", "norm_mlp", "up", "down")]


class _Model(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("layers", "width", "heads", "context", "hidden", "vocab", "gelu")),
        ("scale", ctypes.c_float),
        *((name, ctypes.c_void_p) for name in ("embedding", "position", "cosines", "sines", "norm", "output")),
        ("blocks", ctypes.POINTER(_Block)),
    ]


class _Buffers(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_void_p) for name in ("stream", "attended", "qkv", "hidden", "scores", "normed", "parts")
    ]


def one_row(weights: Weights) -> Row:
    """The fastest way there is here to read one token of one text after another with these weights."""
    fits = fast.enabled and all(w.dtype == torch.float32 and w.is_contiguous() for w in _tensors(weights))
    return OneRowInC(weights, decided_on(SOURCE)) if fits and RACE.taken(torch.float32) else OneRow(weights)


class OneRowInC:
    """Does what `OneRow` does, in C; like `OneRow`, it serves one thread of Python at a time.

    The first tokens of a text are a trial of 1, 2, 4, … threads; the fastest number reads all others.
    """

    def __init__(self, weights: Weights, library: ctypes.CDLL) -> None:
        self._step, self._most = library.lmlab_one_row, torch.get_num_threads()
        self._kept = _tensors(weights)  # what the pointers point to lives as long as they
        width, context = weights.norm_D.shape[0], weights.context
        self._vocab, hidden = len(weights.output_VD), len(weights.blocks[0].up)
        rotary = rotary_tables(context, width // weights.heads) if weights.position_CD is None else ()
        self._kept += [table.contiguous() for table in rotary]
        cosines, sines = self._kept[-2:] if rotary else (None, None)
        self._model = _Model(
            layers=len(weights.blocks),
            width=width,
            heads=weights.heads,
            context=context,
            hidden=hidden,
            vocab=self._vocab,
            gelu=weights.gelu,
            scale=weights.scale,
            embedding=_pointer(weights.embedding_VD),
            position=_pointer(weights.position_CD),
            cosines=_pointer(cosines),
            sines=_pointer(sines),
            norm=_pointer(weights.norm_D),
            output=_pointer(weights.output_VD),
            blocks=(_Block * len(weights.blocks))(*(_Block(*map(_pointer, block)) for block in weights.blocks)),
        )
        self._inputs, self._cached = len(weights.embedding_VD), len(weights.blocks) * 2 * context * width
        scores = weights.heads * _aligned(context)
        parts = 2 * -(-self._vocab // PART)
        sizes = (width, width, 3 * width, hidden, scores, width * self._most, parts)
        self._buffers = _Buffers(*(self._room(size) for size in sizes))
        self._arguments = ctypes.byref(self._model), ctypes.byref(self._buffers)
        self._threads, self._trial = self._most, Trial(thread_counts(self._most)[::-1])

    def _room(self, size: int) -> int:
        with torch.inference_mode(False):
            buffer = torch.empty(_aligned(size) + ALIGNED, dtype=torch.float32)
        self._kept.append(buffer)
        return -(-buffer.data_ptr() // (4 * ALIGNED)) * 4 * ALIGNED

    def log_probabilities(self, token: int, position: int, kv_L2BHCD: Tensor) -> Tensor:
        """What the model expects after this input at this position, 1×V. Writes the caches."""
        refuse_outside(token, position, self._inputs, self._model.context)
        assert kv_L2BHCD.is_contiguous(), "the caches of one row lie in one piece"
        assert (kv_L2BHCD.numel(), kv_L2BHCD.dtype) == (self._cached, torch.float32), "the caches are of this model"
        found_1V = torch.empty(1, self._vocab, dtype=torch.float32)
        wanted = self._threads if self._trial.is_over else self._trial.next_step()
        threads = min(wanted, torch.get_num_threads())
        started = time.perf_counter()
        caches, found = ctypes.c_void_p(kv_L2BHCD.data_ptr()), ctypes.c_void_p(found_1V.data_ptr())
        self._step(*self._arguments, token, position, caches, found, threads)
        if not self._trial.is_over:
            self._trial.took(time.perf_counter() - started)
            self._threads = self._trial.fastest
        return found_1V


Row = OneRow | OneRowInC


def _ways(dtype: torch.dtype) -> tuple[Work, Work]:
    """The last of 128 tokens by a small model."""
    layers, width, heads, context, vocabulary = 6, 192, 6, 128, 512
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype) / shape[-1] ** 0.5

    norm_D, table_VD = torch.ones(width, dtype=dtype), drawn(vocabulary, width)
    shapes = (3 * width, width), (width, width), (4 * width, width), (width, 4 * width)
    blocks = [
        BlockWeights(norm_D, qkv, out, norm_D, up, down)
        for qkv, out, up, down in ([drawn(*shape) for shape in shapes] for _ in range(layers))
    ]
    weights = Weights(table_VD, blocks, norm_D, table_VD, None, heads, context, scale=1.0, gelu=False)
    kv_L2BHCD = torch.zeros(layers, 2, 1, heads, context, width // heads, dtype=dtype)

    def read_by(row: Row) -> Work:
        return lambda: row.log_probabilities(0, context - 1, kv_L2BHCD)

    return read_by(OneRowInC(weights, decided_on(SOURCE))), read_by(OneRow(weights))


RACE = Race("a token after others", SOURCE, _ways, precisions=(torch.float32,), shared=False)


def _tensors(weights: Weights) -> list[Tensor]:
    outside = [weights.embedding_VD, weights.norm_D, weights.output_VD]
    outside += [] if weights.position_CD is None else [weights.position_CD]
    return [tensor.detach() for tensor in (*outside, *(tensor for block in weights.blocks for tensor in block))]


def _pointer(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED
