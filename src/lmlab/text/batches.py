"""Training batches: windows of a token stream, drawn afresh for every step from (seed, step) alone.

Nothing is remembered between draws, so a resumed run sees exactly the batches an uninterrupted one would have seen.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lmlab.interface import Windows
from lmlab.text.stream import TokenStream


def draw_windows(stream: TokenStream, rows: int, length: int, seed: int, step: int) -> Windows:
    """`rows` windows of `length` tokens, each inside one document, their places uniform over the stream.

    A document shorter than `length` fills its row from the left; the mask is
    False behind it.
    """
    random = np.random.default_rng([seed, step])
    return windows_at(stream, random.integers(0, stream.tokens, rows), length)


def draw_stretches(stream: TokenStream, rows: int, length: int, seed: int, step: int) -> Tensor:
    """As `draw_windows`, but across document bounds: for models that read long stretches and carry a state along."""
    random = np.random.default_rng([seed, step])
    start_B = random.integers(0, stream.tokens - length + 1, rows)
    return torch.from_numpy(np.stack([stream.ids[s : s + length] for s in start_B]).astype(np.int64))


def windows_at(stream: TokenStream, places_B: np.ndarray, length: int) -> Windows:
    """The windows that contain these places, moved to lie inside their documents."""
    document_B = np.searchsorted(stream.starts, places_B, side="right") - 1
    first_B, end_B = stream.starts[document_B], stream.starts[document_B + 1]
    start_B = np.maximum(first_B, np.minimum(places_B, end_B - length))
    tokens_BT = np.zeros((len(places_B), length), dtype=np.int64)
    sizes_B = np.minimum(length, end_B - start_B)
    for row, (start, size) in enumerate(zip(start_B, sizes_B, strict=True)):
        tokens_BT[row, :size] = stream.ids[start : start + size]
    if (sizes_B == length).all():
        return Windows(torch.from_numpy(tokens_BT))
    return Windows(torch.from_numpy(tokens_BT), torch.from_numpy(np.arange(length) < sizes_B[:, None]))


def even_windows(stream: TokenStream, rows: int, length: int) -> Windows:
    """At most `rows` windows spread evenly over the stream, always the same ones: what validation looks at."""
    rows = max(1, min(rows, stream.tokens // length))
    places_B = (np.arange(rows) * (stream.tokens / rows)).astype(np.int64)
    return windows_at(stream, places_B, length)
