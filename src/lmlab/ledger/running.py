"""Choosing claims, running them, and what comes out as data."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from lmlab.config import Mistake, nearest
from lmlab.ledger.book import Book, book
from lmlab.ledger.claim import MEANINGS, Claim, Outcome, Verdict

SOURCES = ("week2", "quiz1", "assignment2", "lab11", "bishop12")


@dataclass(frozen=True)
class Entry:
    """A claim that was run."""

    claim: Claim
    outcome: Outcome
    seconds: float


def books(source: str | None = None) -> list[Book]:
    """The source documents with their claims, or one of them."""
    if source is not None and source not in SOURCES:
        raise Mistake(f"there is no source {source!r}; {nearest(source, SOURCES)}")
    return [_opened(name) for name in SOURCES if source in (None, name)]


def _opened(source: str) -> Book:
    """A document with its checks: all modules of its package are imported."""
    package = import_module(f"lmlab.ledger.{source}")
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    unchecked = [name for name in book(source).records if name not in book(source).checked]
    assert not unchecked, f"claims of {source} without a check: {unchecked}"
    return book(source)


def claims(ids: Iterable[str] = (), source: str | None = None) -> list[Claim]:
    """Claims by id, or by the beginning of one (lab11.6: all of problem 6), in the documents' order; all without ids."""
    known = [claim for book in books(source) for claim in book.claims]
    wanted = list(ids)
    if not wanted:
        return known
    chosen: set[str] = set()
    for name in wanted:
        exact = {claim.id for claim in known if claim.id == name}
        found = exact or {
            claim.id for claim in known if name and claim.id.startswith(name) and _at_a_boundary(claim.id, name)
        }
        if not found:
            where = f" in {source}" if source else ""
            raise Mistake(f"there is no claim {name!r}{where}; {nearest(name, [claim.id for claim in known])}")
        chosen |= found
    return [claim for claim in known if claim.id in chosen]


def _at_a_boundary(identifier: str, prefix: str) -> bool:
    """lab11.1 is the beginning of lab11.1a and of lab11.1.x, not of lab11.10."""
    rest = identifier[len(prefix) :]
    return not (rest[:1].isdigit() and prefix[-1:].isdigit())


def run(chosen: Sequence[Claim], each: Callable[[Entry], None] | None = None) -> list[Entry]:
    """Run the checks one after the other; `each` is told of every entry as it is done."""
    from lmlab.compression.codec import one_thread  # torch is slow to import

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
        "claims": [
            {
                "id": entry.claim.id,
                "verdict": entry.outcome.verdict,
                "statement": entry.claim.statement,
                "method": entry.claim.method,
                "evidence": entry.outcome.evidence,
                "steps": list(entry.outcome.steps),
                "corrected": entry.outcome.corrected,
                "source": entry.claim.source,
                "where": entry.claim.where,
                "quote": entry.claim.quote,
                "latex": entry.claim.latex,
            }
            for entry in entries
        ],
        "verdicts": tally(entries),
        "sources": {source: tally(its) for source, its in by_source(entries).items()},
    }
