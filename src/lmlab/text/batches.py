"""Training batches: windows of a token stream, drawn for every step from (seed, step) alone.

Nothing is remembered between draws, so a resumed run sees exactly the batches an uninterrupted one would have seen.
"""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import Tensor

from lmlab.interface import Windows
from lmlab.text.document_windows import DocumentWindows
from lmlab.text.stream import TokenStream


def draw_windows(stream: TokenStream, rows: int, length: int, seed: int, step: int) -> Windows:
    """`rows` windows of `length` tokens, each inside one document, their places uniform over the stream.

    The stream is gone through in rounds, each in an order of its own, that leave out no more than a window: places drawn one by
    one would leave out a third of it while as much is read as there is of it, and models learn measurably less from the rest.
    A document shorter than `length` fills its row from the left; the mask is False behind it.
    """
    slots = max(1, stream.tokens // length)
    place_B = np.empty(rows, dtype=np.int64)
    for row in range(rows):
        turn, which = divmod(step * rows + row, slots)
        order_S, offset = _round(seed, turn, slots, stream.tokens)
        place_B[row] = (int(order_S[which]) * length + offset) % stream.tokens
    return windows_at(stream, place_B, length)


@functools.lru_cache(maxsize=2)  # a batch may begin in one round and end in the next
def _round(seed: int, turn: int, slots: int, tokens: int) -> tuple[np.ndarray, int]:
    """In which order a round goes through the slots that a stream is cut into, and where the first of them lies."""
    random = np.random.default_rng([seed, turn])
    return random.permutation(slots).astype(np.uint32), int(random.integers(0, tokens))


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


def filled(stream: TokenStream, length: int) -> float:
    """The share of the places of such windows that hold a token: a document shorter than they are leaves the rest empty."""
    sizes_D = np.diff(stream.starts).astype(np.float64)
    return float((sizes_D * np.minimum(sizes_D, length)).sum() / (stream.tokens * length))


def even_windows(stream: TokenStream, rows: int, length: int) -> Windows:
    """At most `rows` windows spread evenly over the stream, always the same ones: what validation looks at.

    Where the ends of documents are predicted, as many tokens in windows of documents, which may be shorter and more.
    """
    if stream.has_ends:
        return DocumentWindows(stream, length).even(max(1, rows) * length)
    rows = max(1, min(rows, stream.tokens // length))
    places_B = (np.arange(rows) * (stream.tokens / rows)).astype(np.int64)
    return windows_at(stream, places_B, length)
