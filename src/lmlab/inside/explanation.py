"""One text, read by one or several models, aligned on its characters whatever their tokens are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from lmlab.inside.surprisal import Reading
from lmlab.records import JsonRecord, brief, in_json


@dataclass(frozen=True, kw_only=True)
class Span:
    """The shortest stretch of text that is whole tokens for every model, and the bits it costs each of them."""

    text: str
    start: int  # bytes of the text
    end: int
    bits: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Explanation(JsonRecord):
    """A text under one or several models."""

    __repr__ = brief  # not a page of numbers

    name: str  # of the text
    text: str
    readings: tuple[Reading, ...]

    @cached_property
    @in_json
    def spans(self) -> tuple[Span, ...]:
        """The text cut wherever all models, and its characters, have a boundary: there their bits can be compared."""
        raw = self.text.encode()
        characters, at = {0}, 0
        for character in self.text:
            characters.add(at := at + len(character.encode()))
        ends = [{token.end for token in reading.tokens} for reading in self.readings]
        cuts = [0, *sorted(characters.intersection(*ends) - {0})]
        walks = [iter(reading.tokens) for reading in self.readings]
        found = []
        for start, end in pairwise(cuts):
            bits = []
            for walk in walks:
                here = []
                for token in walk:
                    here.append(token.bits)
                    if token.end >= end:
                        break
                bits.append(math.fsum(here))
            found.append(Span(text=raw[start:end].decode(), start=start, end=end, bits=tuple(bits)))
        return tuple(found)
