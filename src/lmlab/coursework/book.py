"""The documents: what each of them claims, read from its claims.toml, and the checks that belong to these claims."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from lmlab.coursework.claim import Claim, Judge


@dataclass(frozen=True, kw_only=True)
class Book:
    """A source document: its claims as records in the order of the document, and those that have their check."""

    source: str
    title: str
    about: str
    records: dict[str, dict[str, str]] = field(default_factory=dict)  # by name: where, quote, says, latex, how
    checked: dict[str, Claim] = field(default_factory=dict)

    @property
    def claims(self) -> list[Claim]:
        """The claims in the order of the document."""
        return [self.checked[name] for name in self.records if name in self.checked]

    def claim(self, name: str, **tested: Any) -> Callable[[Judge], Claim]:
        """Decorator: make a claim of its record and of the function that judges it; keywords are the formulas under test."""

        def register(judge: Judge) -> Claim:
            made = Claim(
                id=f"{self.source}.{name}", source=self.source, judge=judge, tested=tested, **self.records[name]
            )
            self.checked[name] = made
            return made

        return register


@cache
def book(source: str) -> Book:
    """The document of this name. Its checks are there once the modules of its package are imported."""
    text = files(f"lmlab.coursework.{source}").joinpath("claims.toml").read_text(encoding="utf-8")
    records = tomllib.loads(text)
    return Book(source=source, title=records.pop("title"), about=records.pop("about"), records=records)
