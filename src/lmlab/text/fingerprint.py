"""A fingerprint of a training text: enough to tell later whether another text is a copy of it, exact or near.

What is kept is a sample of its shingles, the pieces of `WINDOW` bytes that begin at every byte, as hashes of 32 bits. Case and
the width of whitespace do not count. Which shingles are in the sample is decided by their hash, so a copy has the same
ones. A letter that was changed spoils the shingles that hold it and no others: with one letter in 45 changed, six in ten stay.

Texts of one kind share shingles without being copies: phrases, names, formulas. How many is measured on the training text
itself, by how many shingles of a tenth of it occur in the other nine, and by how much its tenths differ in that. What a
held-out text shares beyond that is copied.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lmlab.config import Mistake
from lmlab.text.shared_substrings import window_hashes

if TYPE_CHECKING:
    from lmlab.text.parts import Part

WINDOW = 24  # bytes: longer ones are rarer by chance, and spoiled by fewer changes
BYTES_PER_SHINGLE = 200  # of the text, so that the file has two hundredths of its size
FEWEST, MOST = 1 << 12, 1 << 20  # shingles kept, about
TENTHS = 10

_MIX = 0xBF58476D1CE4E5B9  # of SplitMix64 (Steele, Lea & Flood 2014)
_PLAIN = bytes.maketrans(
    bytes(range(ord("A"), ord("Z") + 1)) + b"\t\n\v\f\r", bytes(range(ord("a"), ord("z") + 1)) + b" " * 5
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Fingerprint:
    """Of one text."""

    every: int  # one shingle in so many is in the sample
    usual: float  # the share of its shingles that a tenth of the text has in common with the others
    spread: float = 0.0  # the standard deviation of that share over the tenths
    shingles: np.ndarray  # uint32, sorted, each once
    is_known: bool = True  # or of a text that nobody knows any more

    @classmethod
    def of(cls, part: Part) -> Self:
        """Of a part of a corpus, read once."""
        kept = int(np.clip(part.bytes // BYTES_PER_SHINGLE, FEWEST, MOST))
        every = max(1, part.bytes // kept)
        found = np.concatenate([np.zeros(0, dtype=np.uint32), *_sample(part, every)])
        usual, spread = _shared_by_tenths(found)
        return cls(every=every, usual=usual, spread=spread, shingles=np.unique(found))

    @classmethod
    def unknown(cls) -> Self:
        """Of a text that nobody knows any more: it says nothing, and keeps others from saying too much."""
        return cls(every=1, usual=1.0, shingles=np.zeros(0, dtype=np.uint32), is_known=False)

    def look_for(self, part: Part) -> tuple[int, int]:
        """(shingles of another text in its sample, how many of them this text has)."""
        found = np.concatenate([np.zeros(0, dtype=np.uint32), *_sample(part, self.every)])
        at = np.searchsorted(self.shingles, found)
        is_there = np.take(self.shingles, at, mode="clip") == found if len(self.shingles) else np.zeros(0, dtype=bool)
        return len(found), int(is_there.sum())

    def to_bytes(self) -> bytes:
        """As a safetensors file."""
        about = {"every": self.every, "usual": self.usual, "spread": self.spread, "window": WINDOW}
        return save({"shingles": self.shingles}, {"about": json.dumps(about)})

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """From such a file; Mistake if it is damaged or of another kind."""
        try:
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            about = json.loads(header["__metadata__"]["about"])
            if about["window"] == WINDOW:
                usual, spread = float(about["usual"]), float(about.get("spread", 0.0))  # older ones have no spread
                return cls(every=int(about["every"]), usual=usual, spread=spread, shingles=load(content)["shingles"])
        except (SafetensorError, KeyError, TypeError, ValueError):
            pass
        raise Mistake(
            "the fingerprint of a training text is damaged, or of another lmlab; a run opens without that file"
        )


@lru_cache(maxsize=2)
def fingerprint_of(part: Part) -> Fingerprint:
    """`Fingerprint.of`, once for several models that are trained on one text."""
    return Fingerprint.of(part)


def _sample(part: Part, every: int) -> Iterator[np.ndarray]:
    """The shingles of a text that are in the sample, in its order, with repetitions."""
    step = np.uint64(every)
    for document in part.documents:
        held = b""
        for block in document.blocks():
            text = held + _plain(block)
            hashes = window_hashes(text, WINDOW)
            hashes ^= hashes >> np.uint64(29)
            hashes *= np.uint64(_MIX)  # all bits take part in all bits
            hashes ^= hashes >> np.uint64(32)
            chosen = hashes[hashes // step * step == hashes]  # division by one number is faster than remainders
            yield (chosen >> np.uint64(32)).astype(np.uint32)
            held = text[len(hashes) :]


def _plain(text: bytes) -> bytes:
    """In lower case, with one space for any whitespace."""
    bytes_T = np.frombuffer(text.translate(_PLAIN), dtype=np.uint8)
    is_space_T = bytes_T == ord(" ")
    return bytes_T[np.append(True, ~(is_space_T[1:] & is_space_T[:-1]))].tobytes() if text else b""


def _shared_by_tenths(shingles: np.ndarray) -> tuple[float, float]:
    """The share of shingles, in the order of the text, that occur in another tenth of it too; how the tenths differ in it."""
    if len(shingles) < TENTHS:
        return 1.0, 0.0
    tenth = np.arange(len(shingles)) * TENTHS // len(shingles)
    order = np.argsort(shingles, kind="stable")  # so that tenths ascend among equal shingles
    found, tenth = shingles[order], tenth[order]
    first = np.flatnonzero(np.append(True, found[1:] != found[:-1]))
    last = np.append(first[1:], len(found)) - 1
    shared = np.repeat(tenth[first] != tenth[last], last - first + 1)
    of_tenths = np.bincount(tenth, weights=shared, minlength=TENTHS) / np.bincount(tenth, minlength=TENTHS)
    return float(shared.mean()), float(of_tenths.std())
