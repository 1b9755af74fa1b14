"""Where models agree and differ: one paragraph token by token, and the passages where one beats another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from lmlab.interface import LanguageModel
from lmlab.measure import Scored
from lmlab.text.parts import Part
from lmlab.text.tokenizers import Tokenizer

PREFIX_BYTES = 1_000  # of history before the excerpt
EXCERPT_BYTES = 600
FAVOURITES = 5
PASSAGE_BYTES = 160


def excerpt_bounds(part: Part) -> tuple[int, int]:
    """(first byte, end) of a paragraph in the first document: from a line start, after some history."""
    text = part.documents[0].pieces().__next__().encode()[: PREFIX_BYTES + 4 * EXCERPT_BYTES]
    start = text.rfind(b"\n", 0, min(PREFIX_BYTES, max(0, len(text) - EXCERPT_BYTES))) + 1
    end = text.rfind(b"\n", start + EXCERPT_BYTES // 2, start + EXCERPT_BYTES) + 1
    return start, end if end > start else min(len(text), start + EXCERPT_BYTES)


def read_closely(
    model: LanguageModel, tokenizer: Tokenizer, scored: Scored, bounds: tuple[int, int]
) -> list[dict[str, Any]]:
    """The excerpt token by token: its text, its bits, and what the model would rather have seen.

    Keys are short because the page holds thousands of these: t text, b bits, f favourites as [text, probability].
    """
    ids = scored.stream.document(0)
    ends = scored.byte_ends[: len(ids)]
    first, last = (
        int(np.searchsorted(ends, bounds[0], side="right")),
        int(np.searchsorted(ends, bounds[1], side="left")),
    )
    raw = scored.part.documents[0].pieces().__next__().encode()
    tokens_1T = torch.from_numpy(ids[: last + 1].astype(np.int64))[None]
    logp_1V, state = model.begin(1)
    if first:
        logp_1V, state = model.advance(tokens_1T[:, :first], state)
    found = []
    for place in range(first, min(last + 1, len(ids))):
        begin = int(ends[place - 1]) if place else 0
        top = logp_1V[0].topk(min(FAVOURITES, model.vocab_size))
        favourites = [
            [tokenizer.piece(i), round(math.exp(p), 4)]
            for p, i in zip(top.values.tolist(), top.indices.tolist(), strict=True)
        ]
        bits = float(scored.nats_per_token[place]) / math.log(2)
        shown = raw[begin : int(ends[place])].decode(errors="replace")
        found.append({"t": shown, "b": round(bits, 3) if math.isfinite(bits) else None, "f": favourites})
        logp_1V, state = model.advance(tokens_1T[:, place : place + 1], state)
    return found


def differing_passages(a: Scored, b: Scored, count: int = 3) -> list[dict[str, Any]]:
    """The passages in which `a` saves most bits over `b`, not overlapping, with the bits each needed."""
    size = min(a.bytes, 1 << 20)
    bits_a, bits_b = (_bits_per_byte_position(s, size) for s in (a, b))
    gain = np.convolve(bits_b - bits_a, np.ones(min(PASSAGE_BYTES, size)), mode="valid")
    text = "".join(piece for _, piece in _until(a.part, size)).encode()[:size]
    found: list[dict[str, Any]] = []
    gain = np.where(np.isfinite(gain), gain, -np.inf)
    while len(found) < count and gain.max() > 0:
        start = int(gain.argmax())
        stop = start + PASSAGE_BYTES
        found.append(
            {
                "text": text[start:stop].decode(errors="ignore"),
                "start": start,
                "bits": [round(float(bits_a[start:stop].sum()), 1), round(float(bits_b[start:stop].sum()), 1)],
            }
        )
        gain[max(0, start - PASSAGE_BYTES) : stop] = -np.inf
    return found


def _until(part: Part, size: int) -> list[tuple[int, str]]:
    """The pieces of a part that hold its first `size` bytes."""
    found, held = [], 0
    for index, piece in part.pieces():
        found.append((index, piece))
        held += len(piece.encode())
        if held >= size:
            break
    return found


def _bits_per_byte_position(scored: Scored, size: int) -> np.ndarray:
    """Bits of each byte of the text: a token's bits are spread evenly over its bytes."""
    lengths = np.diff(scored.byte_ends, prepend=0)
    each = np.where(lengths > 0, scored.nats_per_token / np.maximum(lengths, 1) / math.log(2), 0.0)
    return np.repeat(each, lengths)[:size]
