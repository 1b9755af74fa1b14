"""The ledger: every claim of the course documents, executable, with the verdict that running its check reaches.

    from lmlab.coursework import claims, run
    for entry in run(claims(source="lab11")):
        print(entry.claim.id, entry.outcome.verdict, entry.outcome.evidence)

One package a source document: claims.toml holds what it says, the modules beside it the checks. `claim` is what a claim is,
`book` reads the documents, `running` runs them, `page` writes them for a class.
"""

from lmlab.coursework.book import Book
from lmlab.coursework.choosing import SOURCES, books, claims
from lmlab.coursework.claim import Claim, Outcome
from lmlab.coursework.running import Entry, run, to_json

__all__ = ["SOURCES", "Book", "Claim", "Entry", "Outcome", "books", "claims", "run", "to_json"]
