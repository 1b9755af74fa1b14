"""The records of an entry: what is asked of one run, what was trained, what was measured.

Each is a frozen record and one JSON file, written when it exists. A comparison and a sweep are sets of `EntrySpec`; what is
left to do follows from which records are on disk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lmlab.comparison.score_found import Score
from lmlab.measure import Spread, spread
from lmlab.text.corpus import Corpus


@dataclass(frozen=True, kw_only=True)
class TextChoice:
    """Which bytes of a corpus are measured: about `bytes` of a part, spread over it."""

    part: str
    bytes: int
    history_bytes: int  # read before each stretch; they are not counted

    def spread(self, corpus: Corpus) -> Spread:
        """The bytes themselves."""
        return spread(corpus.parts[self.part], self.bytes, history_bytes=self.history_bytes)


@dataclass(frozen=True, kw_only=True)
class EntrySpec:
    """What is asked of one run. Its size and its schedule are for the whole budget, however often it is stopped."""

    name: str  # of its folder
    model: str
    tokenizer: str
    text: dict[str, str]  # the hash of each part of the corpus
    settings: dict[str, Any]
    learning: dict[str, Any]
    budget: str
    seed: int
    device: str


@dataclass(frozen=True, kw_only=True)
class TrainedEntry:
    """A run that came to the end of its budget. Everything else about it stands in the run's own record."""

    status: str
    weights_sha256: str
    seconds: float  # in all: to get ready, to train and to save
    peak_memory_bytes: int = 0  # of the whole process; 0: not known
    message: str = ""  # how its training ended


@dataclass(frozen=True, kw_only=True)
class MeasuredEntry:
    """The result of a trained entry on one text."""

    weights_sha256: str  # of what was measured
    text: TextChoice
    read_sha256: str  # of the bytes that were read, history included
    result: Score
    seconds: float
    peak_memory_bytes: int = 0
    scores_sha256: str = ""  # of the file with the nats of every token; empty: they are not kept
    on_cpu: bool = False  # because it is faster there than on the device that was asked for
    validated: bool = False  # whether the validation part was measured too
    valid_bits_per_byte: float | None = None  # None, where it was: infinite

    @property
    def bits_per_byte(self) -> float:
        """Of the text; infinite where the model holds some of it impossible."""
        return _or_infinite(self.result.bits_per_byte)

    @property
    def token_perplexity(self) -> float:
        """Per token, spelling included."""
        return _or_infinite(self.result.document["perplexity"]["token"])

    @property
    def validation(self) -> float | None:
        """Bits per byte of the validation part; None: it was not measured."""
        return _or_infinite(self.valid_bits_per_byte) if self.validated else None


def _or_infinite(number: float | None) -> float:
    """JSON has null for a number that is infinite."""
    return math.inf if number is None else number
