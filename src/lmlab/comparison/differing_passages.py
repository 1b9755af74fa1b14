"""Finds the passages of a scored text where two models differ most, one block of the text at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lmlab.comparison.close_look import line_is_cut
from lmlab.comparison.findings import Passage
from lmlab.measure import Scored
from lmlab.text.parts import Part

PASSAGE_BYTES = 160
WORD_REACH = 24  # bytes by which a passage may grow on each side to include whole words
LEAST_GAIN_BITS = 8.0  # minimum gain of a passage; smaller ones occur by chance
BLOCK_BYTES = 1 << 20  # processed together: the values per byte of a long text would not fit into memory
AROUND_BYTES = PASSAGE_BYTES + WORD_REACH + 1  # beyond a block that a passage may reach


@dataclass(frozen=True, kw_only=True)
class _Block:
    """One block of a part: passages may begin at bytes `low` to `high`.

    `text` begins at byte `start` and includes some bytes on each side of the block, since passages may reach beyond it.
    """

    low: int
    high: int
    start: int
    text: bytes

    @property
    def stop(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A passage, the bits saved in it, and its core, by which similar passages are recognized."""

    passage: Passage
    gain: float
    bounds: tuple[int, int]  # before extension to whole words
    core: bytes

    @property
    def stop(self) -> int:
        return self.passage.start + len(self.passage.text.encode())


def differing_passages(a: Scored, b: Scored, count: int = 3) -> tuple[Passage, ...]:
    """Return up to `count` passages in which `a` needs fewest bits compared with `b`, best first.

    No two passages are alike, and two share at most a word at their ends. Each lies within one document and within the
    scored bytes.
    """
    starts_U, stops_U = _stretches(a)
    candidates: list[_Found] = []  # only the best of a block can be among the best of the text
    for block in _blocks(a.part):
        candidates += _in_block(a, b, block, starts_U, stops_U, count)
    found: list[_Found] = []
    for one in sorted(candidates, key=lambda candidate: -candidate.gain):
        apart = all(one.bounds[0] >= old.stop or one.bounds[1] <= old.passage.start for old in found)
        if len(found) < count and apart and not _is_like(one, found):
            found.append(one)
    return tuple(one.passage for one in found)


def _in_block(
    a: Scored, b: Scored, block: _Block, starts_U: np.ndarray, stops_U: np.ndarray, count: int
) -> list[_Found]:
    bits_a, bits_b = (_bits_of_bytes(scored, block) for scored in (a, b))
    gain = _gains(bits_b - bits_a, block, starts_U, stops_U)
    found: list[_Found] = []
    while len(found) < count and gain.max() >= LEAST_GAIN_BITS:
        start = int(gain.argmax())
        saved = float(gain[start])
        unit = int(np.searchsorted(starts_U, block.start + start, side="right")) - 1
        low, high = max(0, int(starts_U[unit]) - block.start), min(len(block.text), int(stops_U[unit]) - block.start)
        stop = min(high, start + PASSAGE_BYTES)
        edge = (stop - start) // 4
        core, bounds = block.text[start + edge : stop - edge], (block.start + start, block.start + stop)
        grown = max(low, _outward(block.text, start, -1)), min(high, _outward(block.text, stop, 1))
        if np.isfinite(bits_a[slice(*grown)] + bits_b[slice(*grown)]).all():  # no added word has probability zero
            start, stop = grown
        # bytes before a stretch belong to its document, and bytes before a document to another one
        begin, end = (low, high) if a.counted is None else (0, len(block.text))
        passage = Passage(
            text=block.text[start:stop].decode(errors="ignore"),
            start=block.start + start,
            bits=(round(float(bits_a[start:stop].sum()), 1), round(float(bits_b[start:stop].sum()), 1)),
            cut=line_is_cut(block.text[begin:end], start - begin, stop - begin),
        )
        one = _Found(passage=passage, gain=saved, bounds=bounds, core=core)
        if not _is_like(one, found):
            found.append(one)
        gain[max(0, start - PASSAGE_BYTES) : stop] = -np.inf
    return found


def _is_like(one: _Found, found: list[_Found]) -> bool:
    """Return whether a passage found earlier contains the core of this one, because the text repeats itself."""
    return any(one.core in old.passage.text.encode() for old in found)


def _blocks(part: Part) -> Iterator[_Block]:
    """Yield all blocks of a part, in order."""
    held, start = bytearray(), 0  # text in memory, and its first byte
    pieces = part.pieces()
    for low in range(0, part.bytes, BLOCK_BYTES):
        high = min(part.bytes, low + BLOCK_BYTES)
        dropped = max(0, low - AROUND_BYTES - start)
        held, start = held[dropped:], start + dropped
        while start + len(held) < min(part.bytes, high + AROUND_BYTES):
            held += next(pieces)[1].encode()
        yield _Block(low=low, high=high, start=start, text=bytes(held[: high + AROUND_BYTES - start]))


def _stretches(scored: Scored) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts and stops, in bytes, of the contiguous scored ranges, each within one document."""
    if scored.counted is None:
        stops_U = np.cumsum([document.size for document in scored.part.documents])
        starts_U, document_U = np.append(0, stops_U[:-1]), np.arange(len(stops_U))
    else:
        starts_U, stops_U, document_U = scored.counted.chosen.bounds()
    goes_on = (starts_U[1:] == stops_U[:-1]) & (document_U[1:] == document_U[:-1])
    return starts_U[np.append(True, ~goes_on)], stops_U[np.append(~goes_on, True)]


def _gains(saved_T: np.ndarray, block: _Block, starts_U: np.ndarray, stops_U: np.ndarray) -> np.ndarray:
    """Return the bits saved in the passage that begins at each byte.

    The value is -inf where no passage may begin, or where the saved bits are infinite.
    """
    finite_T = np.isfinite(saved_T)
    sums, holes = (np.append(0.0, np.cumsum(values)) for values in (np.where(finite_T, saved_T, 0.0), ~finite_T))
    gain = np.full(len(saved_T), -np.inf)
    here = (starts_U < block.high) & (stops_U > block.low)
    for begin, end in zip(starts_U[here].tolist(), stops_U[here].tolist(), strict=True):
        length = min(PASSAGE_BYTES, end - begin)
        first, last = max(begin, block.low) - block.start, min(end - length, block.high - 1) - block.start
        if length > 0 and last >= first:
            at, behind = slice(first, last + 1), slice(first + length, last + 1 + length)
            gain[at] = np.where(holes[behind] == holes[at], sums[behind] - sums[at], -np.inf)
    return gain


def _bits_of_bytes(scored: Scored, block: _Block) -> np.ndarray:
    """Return the bits of each byte of a block: the bits of a token are divided evenly among its bytes."""
    first = int(np.searchsorted(scored.byte_ends, block.start, side="right"))
    last = int(np.searchsorted(scored.byte_ends, block.stop, side="left"))
    begin = int(scored.byte_ends[first - 1]) if first else 0
    lengths = np.diff(scored.byte_ends[first : last + 1], prepend=begin)
    nats = scored.nats_per_token[first : last + 1]
    each = np.where(lengths > 0, nats / np.maximum(lengths, 1) / math.log(2), 0.0)
    return np.repeat(each, lengths)[block.start - begin :][: len(block.text)]


def _outward(text: bytes, place: int, step: Literal[-1, 1]) -> int:
    """Return the nearest word boundary in the direction of `step`; if none is near, the nearest character boundary."""
    near = [p for p in range(place, place + step * (WORD_REACH + 1), step) if 0 <= p <= len(text)]
    for is_between in (_between_words, _between_characters):
        for found in near:
            if is_between(text, found):
                return found
    return place


def _between_words(text: bytes, place: int) -> bool:
    around = text[place - 1 : place], text[place : place + 1]
    return place in (0, len(text)) or any(byte.isspace() for byte in around)


def _between_characters(text: bytes, place: int) -> bool:
    return place == len(text) or text[place] & 0xC0 != 0x80
