"""The JSON document of a measured result, as a record: `lmlab eval --json` prints it and comparisons keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lmlab.measure.near_copies import HeldOut
from lmlab.records import JsonRecord

NOT_RECORDED = HeldOut(verdict="unknown", copied=None, detail="")  # older comparisons do not say


@dataclass(frozen=True, kw_only=True)
class IntervalDetails:
    """What the interval is about; see `lmlab.measure.Interval`."""

    level: float
    about: str
    units: int
    freedom: int
    note: str


@dataclass(frozen=True, kw_only=True)
class ResultDocument(JsonRecord):
    """The numbers of one model on one text. A number that is infinite or undefined is None, and `notes` say why.

    Fields with a default are absent from the documents of older comparisons.
    """

    bits_per_byte: float | None
    interval: tuple[float | None, float | None] | None
    interval_details: IntervalDetails | None = None
    nats: float | None = None
    spelling_nats: float | None = None
    bytes: int = 0
    characters: int = 1
    words: int = 1
    tokens: int = 0
    unknown_tokens: int = 0
    fallback_tokens: int = 0
    impossible_tokens: int = 0
    perplexity: Mapping[str, float | None]
    perplexity_units: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    held_out: HeldOut = NOT_RECORDED
    certified: bool
    verdict: str = ""
    certificate: Mapping[str, bool | None]  # check -> whether it passed; None: not known
    certificate_details: Mapping[str, str] = field(default_factory=dict)
    certificate_seconds: float = 0.0
    seconds: float = 0.0
    model: Mapping[str, Any]
    data: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
