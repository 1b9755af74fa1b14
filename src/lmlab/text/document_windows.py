"""Training windows of documents whose ends are predicted: each inside one document, each token predicted once a round.

A short document is a row, padded to the length of the others. A longer one is cut into several rows; where a row begins inside
a document its first token is not predicted, so that the begin symbol of a model stands for the beginning of a document.

Shapes: D documents, W windows, B rows, T tokens.
"""

from __future__ import annotations

import functools

import numpy as np
import torch

from lmlab.interface import Windows
from lmlab.text.stream import TokenStream

WHOLE = 0.99  # of the documents at least fit a row, where the longest row allows it: one long line must not pad all the others
STEP = 4  # lengths of rows are multiples of it


class DocumentWindows:
    """The windows of a stream of documents.

    Args:
        stream: the documents.
        longest: tokens of a row at most.
    """

    def __init__(self, stream: TokenStream, longest: int) -> None:
        self._stream = stream
        self._size_D = np.diff(stream.starts)
        fitting = int(np.quantile(self._size_D, WHOLE, method="inverted_cdf"))
        self.length = max(1, min(longest, -(-fitting // STEP) * STEP, int(self._size_D.max())))
        self._count_D = -(-self._size_D // self.length)
        self._first_D = np.concatenate([[0], np.cumsum(self._count_D)])
        self.count = int(self._first_D[-1])

    @property
    def filled(self) -> float:
        """The share of the places of the windows that hold a token."""
        return self._stream.tokens / (self.count * self.length)

    def rows_of(self, tokens: int) -> int:
        """The rows that hold so many tokens on average."""
        return max(1, round(tokens / (self.length * self.filled)))

    def draw(self, rows: int, seed: int, step: int) -> Windows:
        """Draw windows for a step from (seed, step) alone. All are drawn in a round, each round in an order of its own."""
        first = step * rows
        turns = range(first // self.count, (first + rows - 1) // self.count + 1)
        found = []
        for turn in turns:
            order_W, shift_D = _round(seed, turn, self.count, len(self._size_D))
            here = slice(max(0, first - turn * self.count), first + rows - turn * self.count)
            found.append(self._bounds(order_W[here], shift_D))
        start_B, stop_B, begins_B = (np.concatenate(each) for each in zip(*found, strict=True))
        return self._windows(start_B, stop_B, begins_B)

    def even(self, tokens: int) -> Windows:
        """Windows of about so many tokens, spread evenly over the stream, always the same ones."""
        rows = min(self.count, self.rows_of(tokens))
        window_B = (np.arange(rows) * (self.count / rows)).astype(np.int64)
        return self._windows(*self._bounds(window_B, np.zeros(len(self._size_D), dtype=np.float32)))

    def _bounds(self, window_B: np.ndarray, shift_D: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(first token, token after the last, whether a document begins there) of each window in the stream.

        Args:
            window_B: numbers of windows.
            shift_D: in [0, 1), by how much of what is free in a document's windows they are moved to the left.
        """
        document_B = np.searchsorted(self._first_D, window_B, side="right") - 1
        size_B = self._size_D[document_B]
        free_B = self._count_D[document_B] * self.length - size_B
        moved_B = np.where(self._count_D[document_B] > 1, shift_D[document_B] * (free_B + 1), 0).astype(np.int64)
        within_B = (window_B - self._first_D[document_B]) * self.length - moved_B
        start_B, stop_B = np.maximum(within_B, 0), np.minimum(within_B + self.length, size_B)
        offset_B = self._stream.starts[document_B]
        return offset_B + start_B, offset_B + stop_B, start_B == 0

    def _windows(self, start_B: np.ndarray, stop_B: np.ndarray, begins_B: np.ndarray) -> Windows:
        place_BT = start_B[:, None] + np.arange(self.length)
        mask_BT = place_BT < stop_B[:, None]
        tokens_BT = np.where(mask_BT, self._stream.ids[np.minimum(place_BT, self._stream.tokens - 1)], 0)
        mask_BT[:, 0] &= begins_B | (stop_B - start_B == 1)  # a batch of one row must predict something
        return Windows(torch.from_numpy(tokens_BT.astype(np.int64)), torch.from_numpy(mask_BT))


@functools.lru_cache(maxsize=2)  # a batch may begin in one round and end in the next
def _round(seed: int, turn: int, windows: int, documents: int) -> tuple[np.ndarray, np.ndarray]:
    """In which order a round goes through the windows, and where it cuts each document."""
    random = np.random.default_rng([seed, turn])
    return random.permutation(windows), random.random(documents, dtype=np.float32)
