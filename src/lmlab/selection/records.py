"""The records of a search: what is planned, what each candidate reached, what was chosen, and what was found.

OUT/ run.json …  the chosen model: OUT is a run      best.json  best.html
     search/ corpus.json  plan.json  selection.json  choice.json  models/NAME/
             entries/NAME/ spec.json  trained.json  rungs.json     entries/best/ measured.json  scores.safetensors
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from lmlab.comparison.score_found import Score

SEARCH, SELECTION, RUNGS, CHOICE, FOUND, PAGE = (
    "search",
    "selection.json",
    "rungs.json",
    "choice.json",
    "best.json",
    "best.html",
)
BEST = "best"  # the entry of the chosen model
Ended = Literal["finished", "stopped", "failed", "counted"]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One candidate: a kind of model with a tokenizer and a size.

    Attributes:
        width: the width in relation to the one that the model chooses by itself, which the candidate `like` has.
    """

    name: str
    model: str
    tokenizer: str
    counts: bool = False
    width: float = 1.0
    like: str = ""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The plan of a search: candidates, rungs, and the final budget of each candidate in seconds."""

    candidates: tuple[Candidate, ...]
    rungs: tuple[float, ...]
    train_s: float
    reserve_s: float  # for choosing, measuring and the page


@dataclass(frozen=True, kw_only=True)
class Rung:
    """What a candidate reached: bits per byte of the validation part after a share of its budget."""

    share: float
    bits_per_byte: float
    seconds: float  # of training until then


@dataclass(frozen=True, kw_only=True)
class Rungs:
    """All rungs of a candidate, in order."""

    rungs: tuple[Rung, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Part:
    """A model that is part of the chosen one, and its mean weight."""

    name: str
    weight: float


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The choice by validation.

    Attributes:
        run: the folder of the chosen run, below the folder of models.
        sha256: the hash of its weights.
        parts: the models it is made of; a single one, unless it is a mix.
        bits_per_byte: of the validation part, by the name of each finalist.
    """

    run: str
    sha256: str
    tokenizer: str
    parts: tuple[Part, ...]
    bits_per_byte: dict[str, float]
    why: str


@dataclass(frozen=True, kw_only=True)
class FoundCandidate:
    """A row of the table of a search."""

    name: str
    model: str
    tokenizer: str
    ended: Ended
    rungs: tuple[Rung, ...]
    settings: dict[str, Any]
    parameters: int | None
    seconds: float
    weight: float | None = None  # in the chosen model; None: not a part of it
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search found; the page and the terminal show only this."""

    text: str
    division: str
    train_bytes: int
    valid_bytes: int
    test_bytes: int
    budget_s: float
    seconds: float
    train_s: float
    shares: tuple[float, ...]
    candidates: tuple[FoundCandidate, ...]
    choice: Choice
    result: Score
    folder: str
    command: str = ""
    machine: str = ""
