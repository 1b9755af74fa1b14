"""Long substrings that the training text shares with a held-out text: what a model may remember instead of predict.

Every window of `WINDOW` bytes of the held-out text is looked for in the training text, by a polynomial hash of all
windows that takes a few array operations: with prefix sums H(i) = Σ_{j<i} t(b_j)·r^j modulo 2^64, the window of n bytes
at i hashes to (H(i + n) - H(i))·r^-i. Time is linear in the text; memory is bounded by the held-out part and what is
shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lmlab.text.parts import Document, Part

WINDOW = 50  # bytes: eight words or so; shorter matches are phrases of the language, longer ones are mostly copies
MOST_BYTES = 1 << 24  # of a held-out part that are searched, so that memory stays bounded
SEPARATOR = b"\xff"  # between documents: a byte that no UTF-8 text has
EXAMPLE_BYTES = 200

_ROOT = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2^64


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """What a held-out part shares with the training part."""

    part: str
    window: int  # bytes: the shortest substring that counts
    searched_bytes: int  # of the held-out part, from its beginning
    shared_bytes: int  # of these, how many lie in a substring of at least `window` bytes that the training part has too
    longest_bytes: int  # the longest such substring; 0 if there is none
    example: str  # its text, or the beginning of it

    @property
    def share(self) -> float:
        """Share of the searched bytes that occur in the training part too."""
        return self.shared_bytes / self.searched_bytes if self.searched_bytes else 0.0

    @property
    def _named(self) -> str:
        return f"the {'validation' if self.part == 'valid' else self.part} part"

    def __str__(self) -> str:
        if not self.shared_bytes:
            return f"{self._named} shares no {self.window} bytes in a row with the training part"
        return (
            f"{self.share:.2%} of {self._named} also stands in the training part, in pieces of {self.window} bytes or more;"
            f" the longest has {self.longest_bytes} bytes: {self.example!r}"
        )


def shared_shares(train: Part, held_out: Part, window: int = WINDOW, *, both_ways: bool = True) -> tuple[float, float]:
    """The shares of the held-out part's bytes that lie in substrings of at least `window` bytes that both parts have.

    The first is of the part as it is, the second of the part with the characters of each document in reverse order. The
    training part is read once for both.

    Args:
        both_ways: False: do not look for the reversed part, whose share is then 0.
    """
    forwards = list(_beginnings(held_out))
    ways = [forwards, [content.decode(errors="ignore")[::-1].encode() for content in forwards]][: 1 + both_ways]
    texts = [SEPARATOR.join(beginnings) for beginnings in ways]
    held = [_windows_of(text, window) for text in texts]
    shared = np.unique(_search(train, np.sort(np.concatenate([one.hashes for one in held])), window).hashes)
    size = max(1, min(held_out.bytes, MOST_BYTES))
    shares = [
        _covered(one.at[np.isin(one.hashes, shared)], len(text), window) / size
        for one, text in zip(held, texts, strict=True)
    ]
    return shares[0], shares[1] if both_ways else 0.0


def find_overlap(train: Part, held_out: Part, window: int = WINDOW) -> Overlap:
    """Look for substrings of at least `window` bytes, within documents, that both parts have."""
    text = SEPARATOR.join(_beginnings(held_out))
    held = _windows_of(text, window)
    shared = _search(train, np.sort(held.hashes), window)
    held = held.only(np.isin(held.hashes, shared.hashes))
    longest, where = _longest(shared, held, window)
    return Overlap(
        part=held_out.name,
        window=window,
        searched_bytes=min(held_out.bytes, MOST_BYTES),
        shared_bytes=_covered(held.at, len(text), window),
        longest_bytes=longest,
        example=text[where : where + min(longest, EXAMPLE_BYTES)].decode("utf-8", errors="ignore"),
    )


def share_in_strings(part: Part, strings: Sequence[str], window: int) -> float:
    """The share of a text's bytes that lie in a substring of at least `window` bytes that one of these strings has too."""
    long = [encoded for string in strings if len(encoded := string.encode()) >= window]
    if not long or not part.bytes:
        return 0.0
    known = np.sort(_windows_of(SEPARATOR.join(long), window).hashes)
    text = SEPARATOR.join(_beginnings(part))
    held = _windows_of(text, window)
    return _covered(held.at[_contains(known, held.hashes)], len(text), window) / min(part.bytes, MOST_BYTES)


def _covered(at: np.ndarray, size: int, window: int) -> int:
    """How many bytes of a text of this size lie in windows at these places."""
    steps = np.zeros(size + 1, dtype=np.int32)  # +1 where a window begins, -1 where it ends
    np.add.at(steps, at, 1)
    np.add.at(steps, at + window, -1)
    return int((np.cumsum(steps) > 0).sum())


@dataclass(frozen=True)
class _Windows:
    """Places in a text (documents end to end, one byte apart) and a number for the window at each: equal iff alike."""

    at: np.ndarray  # int64, ascending
    hashes: np.ndarray

    def only(self, chosen: np.ndarray) -> _Windows:
        return _Windows(self.at[chosen], self.hashes[chosen])


@cache
def _hash_tables(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(a random number for each byte, powers of the root, powers of its inverse), all modulo 2^64."""
    of_byte = np.random.PCG64(0).random_raw(256)
    inverse = pow(_ROOT, -1, 1 << 64)
    powers = [np.cumprod(np.full(size, root, dtype=np.uint64)) for root in (_ROOT, inverse)]
    return of_byte, powers[0], powers[1]


def window_hashes(text: bytes, window: int) -> np.ndarray:
    """The hash of every window of a text (uint64)."""
    if len(text) < window:
        return np.zeros(0, dtype=np.uint64)
    of_byte, powers, inverses = _hash_tables(1 << len(text).bit_length())
    sums = np.zeros(len(text) + 1, dtype=np.uint64)
    of_place = of_byte.take(np.frombuffer(text, dtype=np.uint8))
    of_place *= powers[: len(text)]
    np.cumsum(of_place, out=sums[1:])
    hashes: np.ndarray = sums[window:] - sums[:-window]
    hashes *= inverses[: len(hashes)]
    return hashes


def substring_hashes(text: bytes, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The hashes of these substrings of a text (uint64), by the polynomial of `window_hashes`."""
    of_byte, powers, inverses = _hash_tables(1 << len(text).bit_length())
    sums = np.zeros(len(text) + 1, dtype=np.uint64)
    np.cumsum(of_byte.take(np.frombuffer(text, dtype=np.uint8)) * powers[: len(text)], out=sums[1:])
    hashes: np.ndarray = (sums[ends] - sums[starts]) * inverses[starts]
    return hashes


def _beginnings(part: Part) -> Iterator[bytes]:
    """The documents of a part as far as its first MOST_BYTES go."""
    left = MOST_BYTES
    for document in part.documents:
        content = b"".join(_first_blocks(document, left))[:left]
        left -= len(content)
        yield content


def _first_blocks(document: Document, size: int) -> Iterator[bytes]:
    for block in document.blocks():
        if size <= 0:
            return
        size -= len(block)
        yield block


def _windows_of(text: bytes, window: int) -> _Windows:
    """All windows of a text that hold no separator."""
    separators = np.concatenate([[0], np.cumsum(np.frombuffer(text, dtype=np.uint8) == SEPARATOR[0])])
    at = np.flatnonzero(separators[window:] == separators[:-window]) if len(text) >= window else np.zeros(0, np.int64)
    return _Windows(at, window_hashes(text, window)[at])


def _search(train: Part, wanted: np.ndarray, window: int) -> _Windows:
    """The windows of the training part whose hash is among `wanted`, which is sorted."""
    at, hashes, offset = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)], 0
    bits = min(26, max(16, len(wanted).bit_length() + 4))
    shift = np.uint64(64 - bits)
    maybe = np.zeros(1 << bits, dtype=bool)  # says no to nearly all windows before the exact search
    maybe[wanted >> shift] = True
    for document in train.documents:
        if document.size < window:  # as names are: no need to open the file for each
            offset += document.size + len(SEPARATOR)
            continue
        held = b""
        for block in document.blocks():
            held += block
            here = window_hashes(held, window)
            chosen = np.flatnonzero(maybe[here >> shift])
            chosen = chosen[_contains(wanted, here[chosen])]
            at.append(offset + chosen)
            hashes.append(here[chosen])
            held, offset = held[len(here) :], offset + len(here)
        offset += len(held) + len(SEPARATOR)
    return _Windows(np.concatenate(at), np.concatenate(hashes))


def _contains(sorted_values: np.ndarray, values: np.ndarray) -> np.ndarray:
    at = np.minimum(np.searchsorted(sorted_values, values), len(sorted_values) - 1)
    return sorted_values[at] == values


def _longest(train: _Windows, held: _Windows, window: int) -> tuple[int, int]:
    """(length, place in the held-out text) of the longest common substring, given the shared windows of both sides.

    A substring of n + d bytes, d <= n, is the windows of n bytes at its beginning and d further on. So lengths are
    doubled while both sides share such a pair, and the rest is found by bisection; only places still shared are kept.
    """
    if len(held.at) == 0:
        return 0, 0
    length = window
    while (both := _extend(train, held, length)) is not None:
        train, held = both
        length *= 2
    low, high, where = 0, length, int(held.at[0])
    while high - low > 1:
        middle = (low + high) // 2
        both = _extend(train, held, middle)
        if both is None:
            high = middle
        else:
            low, where = middle, int(both[1].at[0])
    return length + low, where


def _extend(train: _Windows, held: _Windows, by: int) -> tuple[_Windows, _Windows] | None:
    """The places where windows longer by `by` bytes are shared; None if there are none."""
    names = np.unique(np.concatenate([train.hashes, held.hashes]))
    pairs = [_pairs(side, names, by) for side in (train, held)]
    common = np.intersect1d(pairs[0].hashes, pairs[1].hashes)
    if len(common) == 0:
        return None
    kept = [side.only(np.isin(side.hashes, common)) for side in pairs]
    return kept[0], kept[1]


def _pairs(side: _Windows, names: np.ndarray, by: int) -> _Windows:
    """The windows that have another shared window `by` bytes further on, named by both."""
    number = np.searchsorted(names, side.hashes)
    after = np.minimum(np.searchsorted(side.at, side.at + by), len(side.at) - 1)
    paired = side.at[after] == side.at + by
    return _Windows(side.at[paired], (number * len(names) + number[after])[paired])
