"""Running claims, and what comes out as data."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmlab import records
from lmlab.coursework.choosing import SOURCES
from lmlab.coursework.claim import MEANINGS, Claim, Outcome, Verdict
from lmlab.records import NOT_IN_JSON, json_key


@dataclass(frozen=True)
class Entry:
    """A claim that was run."""

    claim: Claim = field(metadata=json_key(flat=True))
    outcome: Outcome = field(metadata=json_key(flat=True))
    seconds: float = field(metadata=NOT_IN_JSON)


def run(chosen: Sequence[Claim], each: Callable[[Entry], None] | None = None) -> list[Entry]:
    """Run the checks one after the other; `each` is told of every entry as it is done."""
    from lmlab.compression.text_codec import one_thread  # torch is slow to import

    entries = []
    with one_thread():  # small tensors are slower on many threads, and results must not depend on their number
        for claim in chosen:
            started = time.perf_counter()
            entry = Entry(claim, claim.check(), time.perf_counter() - started)
            entries.append(entry)
            if each is not None:
                each(entry)
    return entries


def tally(entries: Iterable[Entry]) -> dict[Verdict, int]:
    """How many of each verdict, in the order of `MEANINGS`."""
    found = Counter(entry.outcome.verdict for entry in entries)
    return {verdict: found[verdict] for verdict in MEANINGS if found[verdict]}


def by_source(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """The entries of each document, documents in their order."""
    found: dict[str, list[Entry]] = {source: [] for source in SOURCES}
    for entry in entries:
        found.setdefault(entry.claim.source, []).append(entry)
    return {source: its for source, its in found.items() if its}


def to_json(entries: Sequence[Entry]) -> dict[str, Any]:
    """The claims with everything known of them, and how many of each verdict, in all and by source."""
    return {
        "claims": records.to_json(entries),
        "verdicts": tally(entries),
        "sources": {source: tally(its) for source, its in by_source(entries).items()},
    }
