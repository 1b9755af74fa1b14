"""A fingerprint of a training text: enough to tell later whether another text is a copy of it, exact or near.

Two samples are kept, and a third of texts of many documents, as hashes of 32 bits:

    pieces   strings of `PIECE` bytes, one beginning at every byte; case and the width of whitespace do not count.
             A changed letter spoils the pieces that hold it and no others: with one letter in 45 changed, six in ten stay.
    words    sets of `WORDS` neighbouring words, in any order; case and punctuation do not count.
             Text cut into short pieces and shuffled keeps the sets inside its pieces.
    documents  whole documents whose end is predicted; case and the width of whitespace do not count.
             Only these tell of documents that are shorter than a piece, of which the other samples hold nothing.

Whether a hash is in the sample depends on the hash alone, so a copy has the same ones.

Texts of one kind share pieces without being copies: phrases, names, formulas. How many is measured on the training text
itself: the share of a tenth of it that occurs in the other nine, and how much the tenths differ in that share.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lmlab.config import Mistake
from lmlab.text.parts import Document, read_documents
from lmlab.text.shared_substrings import substring_hashes, window_hashes

if TYPE_CHECKING:
    from lmlab.text.parts import Part

PIECE = 24  # bytes: longer ones are rarer by chance, and spoiled by fewer changes
WORDS = 4
BYTES_PER_HASH = {"pieces": 200, "words": 400}  # of the text, kept: the file has three hundredths of its size
BYTES_APART = {"pieces": 1, "words": 6}  # about, from one hash of a text to the next
FEWEST, MOST = 1 << 12, 1 << 20  # hashes kept of each sample, about
TENTHS = 10

_MIX = 0xBF58476D1CE4E5B9  # of SplitMix64 (Steele, Lea & Flood 2014)
_SEEN_AS = {  # in UTF-8: wide and unbreakable spaces look like spaces, others like nothing
    **{character.encode(): b" " for character in "\u00a0\u2002\u2003\u2009\u202f\u3000"},
    **{character.encode(): b"" for character in "\u00ad\u200b\u200c\u200d\u2060\ufeff"},
}
_PLAIN = bytes.maketrans(
    bytes(range(ord("A"), ord("Z") + 1)) + b"\t\n\v\f\r", bytes(range(ord("a"), ord("z") + 1)) + b" " * 5
)


_IS_WORD = np.array([chr(byte).isalnum() or byte >= 0x80 for byte in range(256)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """A sample of the hashes of one text."""

    every: int  # one hash in so many is in the sample
    usual: float  # the share of a tenth of the text's hashes that the other tenths have too
    spread: float  # the standard deviation of that share over the tenths
    hashes: np.ndarray  # uint32, sorted, each once

    @classmethod
    def of(cls, hashes: Iterator[np.ndarray], every: int) -> Self:
        """From all hashes of a text, in its order."""
        found = _sampled(hashes, every)
        usual, spread = _shared_by_tenths(found)
        return cls(every=every, usual=usual, spread=spread, hashes=np.unique(found))

    @classmethod
    def empty(cls) -> Self:
        """Of no text."""
        return cls(every=1, usual=1.0, spread=0.0, hashes=np.zeros(0, dtype=np.uint32))

    def look_for(self, hashes: Iterator[np.ndarray]) -> tuple[int, int]:
        """(hashes of another text that belong in the sample, how many of them this text has)."""
        found = _sampled(hashes, self.every)
        at = np.searchsorted(self.hashes, found)
        is_there = np.take(self.hashes, at, mode="clip") == found if len(self.hashes) else np.zeros(0, dtype=bool)
        return len(found), int(is_there.sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class Fingerprint:
    """The samples of one text. sha256: of the text; empty in files of older versions."""

    pieces: Sample
    words: Sample
    documents: Sample | None = None  # None: the ends of documents are not predicted
    sha256: str = ""
    is_known: bool = True  # False: the text is not known

    @classmethod
    def of(cls, part: Part) -> Self:
        """Of a part of a corpus."""

        def sample(name: str) -> Sample:
            kept = int(np.clip(part.bytes // BYTES_PER_HASH[name], FEWEST, MOST))
            return Sample.of(HASHES[name](part), max(1, part.bytes // BYTES_APART[name] // kept))

        documents = None
        if part.has_ends:
            documents = Sample.of(_documents(part), max(1, len(part.documents) // MOST))
        return cls(pieces=sample("pieces"), words=sample("words"), documents=documents, sha256=part.sha256)

    @classmethod
    def unknown(cls) -> Self:
        """Of a text that is not known, so that no other text can be told from it."""
        return cls(pieces=Sample.empty(), words=Sample.empty(), is_known=False)

    def look_for(self, part: Part, *, backwards: bool = False) -> dict[str, tuple[int, int]]:
        """For each sample: (hashes of another text that belong in it, how many of them this text has).

        backwards: look for the other text with its characters in reverse order.
        """
        found = {name: getattr(self, name).look_for(hashes(part, backwards)) for name, hashes in HASHES.items()}
        if self.documents is not None and part.has_ends:
            found["documents"] = self.documents.look_for(_documents(part, backwards))
        return found

    def to_bytes(self) -> bytes:
        """As a safetensors file."""
        samples = {name: getattr(self, name) for name in HASHES}
        samples |= {} if self.documents is None else {"documents": self.documents}
        about: dict[str, object] = {"window": PIECE, "set": WORDS, "sha256": self.sha256}
        if not self.is_known:
            about["is_known"] = False
        for name, sample in samples.items():
            about[name] = {"every": sample.every, "usual": sample.usual, "spread": sample.spread}
        return save({name: sample.hashes for name, sample in samples.items()}, {"about": json.dumps(about)})

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """From such a file; Mistake if it is damaged or of another kind."""
        try:
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            about, hashes = json.loads(header["__metadata__"]["about"]), load(content)
            if about["window"] == PIECE:
                if "shingles" in hashes:  # a file of an older version, without sets of words
                    return cls(pieces=_read(about, hashes["shingles"]), words=Sample.empty())
                if about["set"] == WORDS:
                    pieces, words = (_read(about[name], hashes[name]) for name in HASHES)
                    documents = _read(about["documents"], hashes["documents"]) if "documents" in hashes else None
                    known = about.get("is_known", True)
                    return cls(
                        pieces=pieces, words=words, documents=documents, sha256=str(about["sha256"]), is_known=known
                    )
        except (SafetensorError, KeyError, TypeError, ValueError):
            pass
        raise Mistake(
            "the fingerprint of a training text is damaged, or of another lmlab; a run opens without that file",
            code="fingerprint-damaged",
        )


def _read(about: Mapping[str, Any], hashes: np.ndarray) -> Sample:
    usual, spread = float(about["usual"]), float(about.get("spread", 0.0))  # the oldest files have no spread
    return Sample(every=int(about["every"]), usual=usual, spread=spread, hashes=hashes)


@lru_cache(maxsize=2)
def fingerprint_of(part: Part) -> Fingerprint:
    """`Fingerprint.of`, once for several models that are trained on one text."""
    return Fingerprint.of(part)


def _pieces(part: Part, backwards: bool = False) -> Iterator[np.ndarray]:
    """The hashes of all pieces of a text, in its order."""
    held, before = b"", -1
    for index, block in read_documents(_long_enough(part)):
        held, before = held if index == before else b"", index
        text = held + _plain(_backwards(block) if backwards else block)
        hashes = window_hashes(text, PIECE)
        yield hashes
        held = text[len(hashes) :]


def _word_sets(part: Part, backwards: bool = False) -> Iterator[np.ndarray]:
    """The hashes of all sets of neighbouring words of a text, in its order."""
    held, before = b"", -1
    for index, block in read_documents(_long_enough(part)):
        held, before = held if index == before else b"", index
        text = held + _plain(_backwards(block) if backwards else block)
        is_word_T = np.concatenate([[False], _IS_WORD[np.frombuffer(text, dtype=np.uint8)], [False]])
        edges = np.flatnonzero(is_word_T[1:] != is_word_T[:-1])
        starts, ends = edges[::2], edges[1::2]
        if len(starts) < WORDS:
            held = text
            continue
        sums = np.zeros(len(starts) + 1, dtype=np.uint64)
        np.cumsum(_mixed(substring_hashes(text, starts, ends)), out=sums[1:])
        yield sums[WORDS:] - sums[:-WORDS]  # a sum is the same in any order
        held = text[starts[len(starts) - WORDS + 1] :]


def _long_enough(part: Part) -> Iterator[Document]:
    """The documents that can hold a piece, where whole documents are looked at too; else all."""
    return (document for document in part.documents if not 0 < document.separator_bytes <= document.size < PIECE)


def _documents(part: Part, backwards: bool = False) -> Iterator[np.ndarray]:
    """The hashes of all documents of a text, in its order; empty ones are passed over."""
    hashes: list[int] = []
    for _, text in groupby(part.document_texts(), key=itemgetter(0)):
        content = "".join(piece for _, piece in text)
        words = (content[::-1] if backwards else content).lower().split()
        if words:
            digest = hashlib.blake2b(" ".join(words).encode(), digest_size=8).digest()
            hashes.append(int.from_bytes(digest, "little"))
    yield np.array(hashes, dtype=np.uint64)


def _backwards(block: bytes) -> bytes:
    return block.decode()[::-1].encode()


HASHES: Mapping[str, Callable[..., Iterator[np.ndarray]]] = {"pieces": _pieces, "words": _word_sets}


def _sampled(hashes: Iterator[np.ndarray], every: int) -> np.ndarray:
    """Those of these hashes that are in the sample (uint32), in order, with repetitions."""
    step, found = np.uint64(every), [np.zeros(0, dtype=np.uint32)]
    for some in hashes:
        mixed = _mixed(some)
        chosen = mixed[mixed // step * step == mixed]  # division by one number is faster than remainders
        found.append((chosen >> np.uint64(32)).astype(np.uint32))
    return np.concatenate(found)


def _mixed(hashes: np.ndarray) -> np.ndarray:
    """The same hashes with all bits taking part in all bits; the array is written over."""
    hashes ^= hashes >> np.uint64(29)
    hashes *= np.uint64(_MIX)
    hashes ^= hashes >> np.uint64(32)
    return hashes


def _plain(text: bytes) -> bytes:
    """In lower case, with one space for any whitespace, and without characters that nobody sees."""
    for written, read in _SEEN_AS.items():
        text = text.replace(written, read)
    bytes_T = np.frombuffer(text.translate(_PLAIN), dtype=np.uint8)
    is_space_T = bytes_T == ord(" ")
    return bytes_T[np.append(True, ~(is_space_T[1:] & is_space_T[:-1]))].tobytes() if text else b""


def _shared_by_tenths(hashes: np.ndarray) -> tuple[float, float]:
    """The share of hashes, in the order of the text, that occur in another tenth of it too; how the tenths differ in it."""
    if len(hashes) < TENTHS:
        return 1.0, 0.0
    tenth = np.arange(len(hashes)) * TENTHS // len(hashes)
    order = np.argsort(hashes, kind="stable")  # so that tenths ascend among equal hashes
    found, tenth = hashes[order], tenth[order]
    first = np.flatnonzero(np.append(True, found[1:] != found[:-1]))
    last = np.append(first[1:], len(found)) - 1
    shared = np.repeat(tenth[first] != tenth[last], last - first + 1)
    of_tenths = np.bincount(tenth, weights=shared, minlength=TENTHS) / np.bincount(tenth, minlength=TENTHS)
    return float(shared.mean()), float(of_tenths.std())
