"""A measured sample of a text: stretches spread over it, each read with the history that it has in its document.

A stretch is scored as part of a reading: the document from some way before the stretch up to its end. What comes before is
read so that starting in the middle costs nothing, and does not count. How much that must be: a model of bounded history needs
as many tokens as it looks back (an n-gram then costs exactly what it costs in the whole document; a Transformer that moves
its window on by strides sees as much history as anywhere in the document, cut at other places); recurrent nets need as
much as they remember, some dozens to hundreds of tokens. `enough_history` says how much that is for the models at hand.

Stretches begin and end where a word ends, because there no tokenizer of the lab has a token across the cut. In text
without whitespace they end between characters. A token counts if all of its bytes lie in stretches, else it does not,
and the bytes that count are those of the tokens that do.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmlab.interface import ContextPolicy
from lmlab.measure.chosen_places import Places, draw_places
from lmlab.records import NOT_IN_JSON, JsonRecord, in_json
from lmlab.text.parts import Document, Part

HISTORY_BYTES = 1024  # at least: recurrent nets forget their start within it
NEARLY_ALL = 0.8  # of the text: where so much would be read for the sample, all of it is measured
WORD_REACH = 256  # bytes within which the end of a word is looked for
_WHITESPACE = frozenset(b" \t\n\v\f\r")


@dataclass(frozen=True)
class Reading:
    """Bytes `start` to `stop` of a document that are scored in one go, and the stretches of them that count."""

    document: int
    start: int
    stop: int
    stretches: tuple[tuple[int, int], ...]  # (start, stop), from the document's beginning like those above


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread(JsonRecord):
    """What is measured of a part: all of it, or stretches of it, and what must be read for that."""

    whole: Part = field(metadata=NOT_IN_JSON)
    part: Part = field(metadata=NOT_IN_JSON)  # what is read and scored: a document for each reading, or `whole` itself
    readings: tuple[Reading, ...] = field(metadata=NOT_IN_JSON)
    share: float = field(metadata=NOT_IN_JSON)  # of the places of the text; 1: all of it

    @property
    @in_json
    def everything(self) -> bool:
        """Whether the whole part is measured."""
        return self.part is self.whole

    @property
    @in_json
    def stretches(self) -> int:
        """How many stretches count; documents, where everything does."""
        return sum(len(reading.stretches) for reading in self.readings)

    @property
    @in_json
    def documents(self) -> int:
        """How many documents have a stretch."""
        return len({reading.document for reading in self.readings})

    @property
    @in_json
    def bytes(self) -> int:
        """Bytes in the stretches. A token across a cut, in text without whitespace, takes its bytes away from them."""
        return sum(stop - start for reading in self.readings for start, stop in reading.stretches)

    @property
    @in_json
    def of_bytes(self) -> int:
        """Bytes of the whole part."""
        return self.whole.bytes

    @property
    @in_json
    def of_documents(self) -> int:
        """Documents of the whole part."""
        return len(self.whole.documents)

    @property
    @in_json
    def read_bytes(self) -> int:
        """Bytes that are read, the history of the stretches included."""
        return self.part.bytes

    def bounds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(starts, stops, documents) of the stretches; the first two in bytes from the beginning of `part`."""
        starts, stops, documents = [], [], []
        offset = 0
        for reading in self.readings:
            for start, stop in reading.stretches:
                starts.append(offset + start - reading.start)
                stops.append(offset + stop - reading.start)
                documents.append(reading.document)
            offset += reading.stop - reading.start
        return np.array(starts, dtype=np.int64), np.array(stops, dtype=np.int64), np.array(documents, dtype=np.int64)

    def counted(self) -> Part:
        """The stretches as a part of their own: the text that counts, for its words, characters and hash."""
        if self.everything:
            return self.whole
        of = self.whole.documents
        pieces = [(r.document, start, stop) for r in self.readings for start, stop in r.stretches]
        return Part(self.whole.name, [of[document].piece(start, stop) for document, start, stop in pieces])

    @property
    @in_json
    def sentence(self) -> str:
        """What was measured, in words."""
        what = "document" if self.whole.block_share is None else "block"
        text = f"{self.whole.bytes:,} bytes in {_count(len(self.whole.documents), what)}"
        if self.everything:
            return f"All of the {self.whole.name} part was measured: {text}."
        return (
            f"Measured: {self.bytes:,} bytes in {self.stretches} stretches, spread evenly over {self.documents} of"
            f" {_count(len(self.whole.documents), what)}, out of the {self.whole.bytes:,} bytes of the"
            f" {self.whole.name} part; drawn by the hash of the text."
        )


def spread(part: Part, limit_bytes: int, *, history_bytes: int = HISTORY_BYTES, seed: int = 0) -> Spread:
    """Choose about `limit_bytes` bytes of a part, or all of it where that is hardly more to read.

    The choice depends on the text (by its hash) and on `seed`; another seed draws other places. history_bytes: read before
    each stretch, as far as its document goes back.
    """
    drawn = derived_seed(part, seed)
    if limit_bytes < part.bytes:
        places = draw_places(np.array([d.size for d in part.documents]), limit_bytes, drawn)
        readings = _readings(part.documents, places, history_bytes)
        if sum(r.stop - r.start for r in readings) < NEARLY_ALL * part.bytes:
            read = [part.documents[r.document].piece(r.start, r.stop) for r in readings]
            return Spread(whole=part, part=Part(part.name, read), readings=tuple(readings), share=places.share)
    return everything(part)


def everything(part: Part) -> Spread:
    """All of a part."""
    readings = [Reading(i, 0, d.size, ((0, d.size),)) for i, d in enumerate(part.documents) if d.size]
    return Spread(whole=part, part=part, readings=tuple(readings), share=1.0)


def enough_history(models: Iterable[tuple[ContextPolicy, float]]) -> int:
    """Bytes to read before each stretch, for models given by their context policy and the average bytes of a token."""
    windows = [math.ceil(policy.window * token_bytes) for policy, token_bytes in models if policy.window is not None]
    return max([HISTORY_BYTES, *windows])


def derived_seed(part: Part, seed: int) -> int:
    """A seed that nobody chose: from the hash of the text."""
    return int.from_bytes(hashlib.sha256(f"places {part.sha256} {seed}".encode()).digest()[:8], "little")


def _readings(documents: Sequence[Document], places: Places, history_bytes: int) -> list[Reading]:
    """The places, cut at word ends, with what is read before them; readings that would overlap are one."""
    readings: list[Reading] = []
    drawn = zip(places.document_U.tolist(), places.starts_U.tolist(), places.stops_U.tolist(), strict=True)
    for index, nominal_start, nominal_stop in drawn:
        document = documents[index]
        start, stop = word_end(document, nominal_start), word_end(document, nominal_stop)
        begin = word_end(document, max(0, start - history_bytes))
        last = readings[-1] if readings else None
        if last is not None and last.document == index and begin <= last.stop:
            readings[-1] = Reading(index, last.start, stop, (*last.stretches, (start, stop)))
        else:
            readings.append(Reading(index, min(begin, start), stop, ((start, stop),)))
    return readings


def word_end(document: Document, place: int) -> int:
    """The first end of a word at or after a place in a document, or the next character where no word ends nearby.

    Never inside the separator of a document, which is one token.
    """
    if place <= 0 or place > document.size - max(1, document.separator_bytes):
        return 0 if place <= 0 else document.size
    with open(document.path, "rb") as file:
        file.seek(document.start + place - 1)
        block = file.read(min(WORD_REACH + 1, document.size - place + 1))
    for i in range(1, len(block)):
        if block[i] in _WHITESPACE and block[i - 1] not in _WHITESPACE:
            return place + i - 1
    for i in range(1, len(block)):
        if block[i] & 0xC0 != 0x80:
            return place + i - 1
    return document.size


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' if number != 1 else ''}"
