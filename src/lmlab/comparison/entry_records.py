"""The records of one run of a comparison or sweep: its specification, its training and its score.

Each record is a frozen dataclass in one JSON file, written when its step is complete. The work that remains follows from
the records on disk.
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
    """A choice of corpus bytes to score: about `bytes` bytes, spread over one part."""

    part: str
    bytes: int
    history_bytes: int  # context before each stretch, not scored

    def spread(self, corpus: Corpus) -> Spread:
        """Return the chosen sample of a corpus."""
        return spread(corpus.parts[self.part], self.bytes, history_bytes=self.history_bytes)


@dataclass(frozen=True, kw_only=True)
class EntrySpec:
    """The specification of one run.

    The budget is that of the whole run, however often the run is interrupted. Model size and schedule are chosen for it.
    """

    name: str  # of the run folder
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
    """The record of a run whose training is complete; the run's own record holds the details."""

    status: str
    weights_sha256: str
    seconds: float  # of preparation, training and saving
    peak_memory_bytes: int = 0  # of the whole process; 0: unknown
    message: str = ""  # at the end of training
    valid_bits_per_byte: float | None = (
        None  # of a count model, which has no validation curve; None: a curve tells, or unknown
    )


@dataclass(frozen=True, kw_only=True)
class MeasuredEntry:
    """The result of a trained run on one text."""

    weights_sha256: str  # of the scored model
    text: TextChoice
    read_sha256: str  # of the bytes read, context included
    result: Score
    seconds: float
    peak_memory_bytes: int = 0
    scores_sha256: str = ""  # of the file of nats per token; empty: not saved
    on_cpu: bool = False  # scored on the CPU, which is faster than the requested device
    validated: bool = False  # whether the validation part was scored too
    valid_bits_per_byte: float | None = None  # None although validated: infinite

    @property
    def bits_per_byte(self) -> float:
        """Bits per byte of the text; infinite if the model gives some of it probability zero."""
        return _or_infinite(self.result.bits_per_byte)

    @property
    def token_perplexity(self) -> float:
        """Perplexity per token, including the cost of spelling unknown words."""
        return _or_infinite(self.result.document["perplexity"]["token"])

    @property
    def validation(self) -> float | None:
        """Bits per byte of the validation part; None: not scored."""
        return _or_infinite(self.valid_bits_per_byte) if self.validated else None


def _or_infinite(number: float | None) -> float:
    """Return a number read from JSON, where null stands for infinity."""
    return math.inf if number is None else number
