"""Small exact language models for claims about words and characters: counts with Witten-Bell back-off, spelling included.

They run on the documentation that comes with Python, so that the ledger needs no data; where the environment variable
LMLAB_BENCH_DATA names a folder of corpora, some claims measure on those as well.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

UNKNOWN = 0  # the id of every word a model does not know


class Counts:
    """An n-gram model interpolated down to the uniform distribution (Witten and Bell), over symbols 0 .. symbols - 1.

    p(x | c) = (count(c, x) + followers(c) p(x | shorter c)) / (count(c) + followers(c)), which sums to 1 in every context.
    Contexts are told apart by 64-bit keys, so that a whole text is counted and scored by sorting.
    """

    def __init__(self, rows: Iterable[Sequence[int]], order: int, symbols: int) -> None:
        self.order, self.symbols = order, symbols
        self.levels: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        for context, gram in self._keys(rows):
            grams, first, counts = np.unique(gram, return_index=True, return_counts=True)
            contexts, totals = np.unique(context, return_counts=True)
            kinds = np.unique(context[first], return_counts=True)[1]
            self.levels.append((contexts, totals, kinds, grams, counts))

    def _keys(self, rows: Iterable[Sequence[int]]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Keys of the context and of context + symbol at every place of the rows, for contexts of 0 to order - 1 symbols."""
        pad = self.order - 1
        begin = np.full(pad, self.symbols, dtype=np.uint64)
        parts = [np.concatenate([begin, np.asarray(row, dtype=np.uint64)]) for row in rows]
        symbols = np.concatenate(parts) + np.uint64(1)
        places = np.flatnonzero(np.concatenate([np.arange(len(part)) >= pad for part in parts]))
        for length in range(self.order):
            key = np.zeros(len(places), dtype=np.uint64)
            for back in range(length, 0, -1):
                key = _mix(key, symbols[places - back])
            yield key, _mix(key, symbols[places])

    def nats(self, rows: Iterable[Sequence[int]]) -> np.ndarray:
        """-log p of every symbol of the rows given those before it in its row, one after the other."""
        p: np.ndarray | float = 1.0 / self.symbols
        for (context, gram), (contexts, totals, kinds, grams, counts) in zip(
            self._keys(rows), self.levels, strict=True
        ):
            at = np.minimum(np.searchsorted(contexts, context), len(contexts) - 1)
            seen = contexts[at] == context
            place = np.minimum(np.searchsorted(grams, gram), len(grams) - 1)
            count = np.where(grams[place] == gram, counts[place], 0)
            p = np.where(seen, (count + kinds[at] * p) / (totals[at] + kinds[at]), p)
        return -np.log(p)


def _mix(key: np.ndarray, symbol: np.ndarray) -> np.ndarray:
    """A 64-bit key of a key and one more symbol (multiplication by odd constants; overflow is meant)."""
    mixed = (key ^ (symbol * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xD6E8FEB86659FD93)
    return mixed ^ (mixed >> np.uint64(29))


@dataclass(frozen=True)
class Score:
    """What a text costs under a model."""

    nats: float  # of the tokens
    spelling_nats: float  # of the words the model does not know; 0 for character models
    tokens: int
    unknown: int
    bytes: int

    @property
    def perplexity(self) -> float:
        """Per token of the model, unknown words counted as one symbol: what is usually reported."""
        return math.exp(self.nats / self.tokens)

    @property
    def bits_per_byte(self) -> float:
        """Bits of the text itself, spelling included, a byte."""
        return (self.nats + self.spelling_nats) / math.log(2) / self.bytes

    @property
    def unknown_share(self) -> float:
        """Share of tokens that are the unknown symbol."""
        return self.unknown / self.tokens

    def __str__(self) -> str:
        unknown = f", {100 * self.unknown_share:.0f} % unknown" if self.unknown else ""
        return f"perplexity {self.perplexity:.1f} a token{unknown}, {self.bits_per_byte:.2f} bits a byte"


class Characters:
    """A character model: n-grams over the bytes of the text, so that any text has a positive probability."""

    def __init__(self, text: str, order: int = 4) -> None:
        self.counts = Counts([list(text.encode())], order, symbols=256)

    def score(self, text: str) -> Score:
        """The cost of a text. Perplexity is a byte (a character, in English)."""
        data = list(text.encode())
        return Score(float(self.counts.nats([data]).sum()), 0.0, len(data), 0, len(data))


class Words:
    """A bigram model over the most frequent words; any other word is one unknown symbol and is spelled beside it."""

    def __init__(self, text: str, vocabulary: int = 2000, order: int = 2) -> None:
        words = text.split(" ")
        self.ids = {word: i + 1 for i, (word, _) in enumerate(Counter(words).most_common(vocabulary))}
        rare = sorted({word for word in words if word not in self.ids}) or sorted(self.ids)
        self.counts = Counts([self.tokens(text)], order, symbols=len(self.ids) + 1)
        self.spelling = Counts([list(word.encode() + b" ") for word in rare], 4, symbols=256)  # the space ends the word

    def tokens(self, text: str) -> list[int]:
        """The words of the text as ids; `UNKNOWN` for any other word."""
        return [self.ids.get(word, UNKNOWN) for word in text.split(" ")]

    def score(self, text: str) -> Score:
        """The cost of a text, its unknown words spelled."""
        tokens = self.tokens(text)
        spelled = [list(word.encode() + b" ") for word in text.split(" ") if word not in self.ids]
        spelling = float(self.spelling.nats(spelled).sum()) if spelled else 0.0
        nats = float(self.counts.nats([tokens]).sum())
        return Score(nats, spelling, len(tokens), len(spelled), len(text.encode()))


def plain(text: str) -> str:
    """The text with every run of white space as one space, so that words and spaces tell all of it."""
    return re.sub(r"\s+", " ", text).strip()


@lru_cache(maxsize=1)
def documentation() -> tuple[str, str]:
    """Python's own documentation, (training part, held-out part): 85 % and 15 %, different topics."""
    from pydoc_data import topics

    text = plain("\n".join(topics.topics[name] for name in sorted(topics.topics)))
    cut = text.index(" ", len(text) * 85 // 100)
    return text[:cut], text[cut + 1 :]


@lru_cache(maxsize=4)
def words_of_documentation(vocabulary: int = 2000) -> Words:
    """The word bigram of the training part."""
    return Words(documentation()[0], vocabulary)


@lru_cache(maxsize=1)
def characters_of_documentation() -> Characters:
    """The character 4-gram of the training part."""
    return Characters(documentation()[0])


def scrambled(text: str) -> str:
    """The text with every letter moved 13 places on: the same length and shape, and no word left to be known."""
    import codecs

    return codecs.encode(text, "rot13")


def bench(*parts: str) -> str | None:
    """A file of the bench corpora as plain text, or None where they are not at hand."""
    folder = os.environ.get("LMLAB_BENCH_DATA")
    if not folder or not (path := Path(folder, *parts)).exists():
        return None
    return plain(path.read_text(encoding="utf-8"))
