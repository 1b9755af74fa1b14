"""Which claims are meant: all of them, those of a document, or those that an id or the beginning of one names."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from lmlab.config import Mistake, nearest
from lmlab.coursework.book import Book, book
from lmlab.coursework.claim import Claim

SOURCES = ("week2", "quiz1", "assignment2", "lab11", "bishop12")


def books(source: str | None = None) -> list[Book]:
    """The source documents with their claims, or one of them."""
    if source is not None and source not in SOURCES:
        raise Mistake(f"there is no source {source!r}; {nearest(source, SOURCES)}", code="course-source-unknown")
    return [_opened(name) for name in SOURCES if source in (None, name)]


def _opened(source: str) -> Book:
    """A document with its checks: all modules of its package are imported."""
    package = import_module(f"lmlab.coursework.{source}")
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
            raise Mistake(
                f"there is no claim {name!r}{where}; {nearest(name, [claim.id for claim in known])}",
                code="claim-unknown",
            )
        chosen |= found
    return [claim for claim in known if claim.id in chosen]


def _at_a_boundary(identifier: str, prefix: str) -> bool:
    """lab11.1 is the beginning of lab11.1a and of lab11.1.x, not of lab11.10."""
    rest = identifier[len(prefix) :]
    return not (rest[:1].isdigit() and prefix[-1:].isdigit())
