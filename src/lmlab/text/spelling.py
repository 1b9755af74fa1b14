"""What an unknown word costs: a proper distribution over all strings that are not in the vocabulary.

A spelling is a sequence of symbols: known characters, the UTF-8 bytes of any other character, and an end. Characters
follow an interpolated Kneser-Ney n-gram in which all characters never seen share one outcome, the escape. What an
escape stands for is drawn from the characters never seen: first the length of the UTF-8 form, all lengths alike, then
the character, all alike. The n-gram learns from the words outside the vocabulary, as often as they occur, and from each
word of the vocabulary once: they teach how words are built. An unknown word is none of them, so their probability is
taken out and shared among all others. Every step is exact: the probabilities of all unknown words sum to one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np

from lmlab.text.charngram import CharNgram

ORDER = 7  # characters; on the rare words of novels, plays and speeches 8 gains under 0.3 %, and 6 loses about 1 %
BATCH_WORDS = 50_000
BATCH_CHARS = 1 << 21  # bounds memory where words are enormous

_UTF8_FIRST = np.array([0x00, 0x80, 0x800, 0x10000, 0x110000])  # the first code point of each UTF-8 length, and the end


@final
class Spelling:
    """A character model of unknown words.

    `symbols(word)` is the word as the numbers an arithmetic coder sends, `distribution(prefix)` the probability of each
    next number. Numbers: known characters first, by code point, then the 256 bytes, then `end`.
    """

    def __init__(self, words: Mapping[str, int], known: Iterable[str] = (), order: int = ORDER) -> None:
        """Take in what it learns from; it is fitted when it is first asked, since training a model never asks.

        words: words outside the vocabulary with their numbers of occurrence. known: the vocabulary.
        """
        self.words = dict(sorted(words.items()))
        self.known = sorted(set(known))
        self.order = order
        self._following: dict[tuple[int, int, int], np.ndarray] = {}

    @cached_property
    def characters(self) -> list[str]:
        """The characters that were seen, by code point."""
        return sorted(set().union(*self.words, *self.known))

    @property
    def first_byte(self) -> int:
        """The number of byte 0."""
        return len(self.characters)

    @property
    def _escape(self) -> int:
        """The outcome that all characters never seen share."""
        return len(self.characters)

    @property
    def end(self) -> int:
        """The number of the end of a word."""
        return self.first_byte + 256

    @property
    def symbols_count(self) -> int:
        """How many numbers there are."""
        return self.end + 1

    @cached_property
    def _outcome_of(self) -> np.ndarray:
        """Of every code point."""
        outcome_of = np.full(0x110000, self._escape, dtype=np.int64)
        outcome_of[[ord(c) for c in self.characters]] = np.arange(len(self.characters))
        return outcome_of

    @cached_property
    def _unseen(self) -> _UnseenCharacters:
        return _UnseenCharacters(self.characters)

    @cached_property
    def _ngram(self) -> CharNgram:
        outcomes, lengths, _ = self._outcomes([*self.words, *self.known])
        weights = np.array([*self.words.values(), *(1 for _ in self.known)], dtype=np.int64)
        return CharNgram(outcomes, lengths, weights, self.order, len(self.characters) + 2)

    @cached_property
    def _is_known(self) -> frozenset[str]:
        return frozenset(self.known)

    @cached_property
    def _nats_known(self) -> np.ndarray:
        return self._nats_of_any(self.known) if self.known else np.zeros(0)

    @cached_property
    def _p_known(self) -> np.ndarray:
        return self._products(self.known)

    @cached_property
    def _log_p_unknown(self) -> float:
        return float(np.log1p(-np.exp(-self._nats_known).sum()))

    def to_json(self) -> dict[str, Any]:
        """What is needed, besides the vocabulary, to fit it again."""
        return {"order": self.order, "words": self.words}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any], known: Iterable[str] = ()) -> Spelling:
        """The model whose `to_json` this is, with the same vocabulary."""
        return cls(saved["words"], known, saved["order"])

    def nats(self, words: Sequence[str]) -> np.ndarray:
        """-log p of each unknown word's spelling, its end included (float64); infinite for a word of the vocabulary."""
        parts = [self._nats(words[i : i + BATCH_WORDS]) for i in range(0, len(words), BATCH_WORDS)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _nats(self, words: Sequence[str]) -> np.ndarray:
        if len(words) > 1 and sum(map(len, words)) > BATCH_CHARS:
            half = len(words) // 2
            return np.concatenate([self._nats(words[:half]), self._nats(words[half:])])
        nats = self._nats_of_any(words) + self._log_p_unknown
        nats[[word in self._is_known for word in words]] = np.inf
        return nats

    def _nats_of_any(self, words: Sequence[str]) -> np.ndarray:
        """-log p of words before those of the vocabulary are taken out."""
        outcomes, lengths, escaped = self._outcomes(words)
        nats = -np.log(self._ngram.probabilities(outcomes, lengths))
        nats[outcomes == self._escape] += self._unseen.nats(escaped)
        return np.add.reduceat(nats, np.cumsum(lengths) - lengths)  # no length is 0: each word has its end

    def _products(self, words: Sequence[str]) -> np.ndarray:
        """p of words before those of the vocabulary are taken out, by multiplication alone, letter after letter.

        What a coder sees must come out the same on every machine, and logarithms do not.
        """
        outcomes, lengths, _ = self._outcomes(words)
        p = self._ngram.probabilities(outcomes, lengths)
        starts, product = np.cumsum(lengths) - lengths, np.ones(len(words))
        for letter in range(int(lengths.max(initial=0))):
            long = np.flatnonzero(lengths > letter)
            product[long] *= p[starts[long] + letter]
        return product

    def _outcomes(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The words as outcomes of the n-gram laid end to end, their lengths, and the code points that are escaped."""
        codepoints = np.frombuffer("".join(words).encode("utf-32-le"), dtype=np.uint32)
        lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
        outcomes = self._outcome_of[codepoints]
        escaped = codepoints[outcomes == self._escape]
        return np.insert(outcomes, np.cumsum(lengths), self._escape + 1), lengths + 1, escaped

    def symbols(self, word: str) -> list[int]:
        """The word as numbers, `end` last."""
        numbers = []
        for character in word:
            outcome = int(self._outcome_of[ord(character)])
            numbers += [outcome] if outcome != self._escape else [self.first_byte + b for b in character.encode()]
        return [*numbers, self.end]

    def word(self, symbols: Sequence[int]) -> str:
        """The word of these numbers; the inverse of `symbols`, with or without the `end`."""
        encoded = [
            self.characters[s].encode() if s < self.first_byte else bytes([s - self.first_byte])
            for s in symbols
            if s != self.end
        ]
        return b"".join(encoded).decode()

    def distribution(self, prefix: Sequence[int]) -> np.ndarray:
        """Probability of each number after these (float64, `symbols_count` of them), which begin an unknown word."""
        outcomes, pending = self._read(prefix)
        p = np.zeros(self.symbols_count)
        if pending:
            p[self.first_byte : self.end] = self._unseen.next_byte(pending)
            return p
        p_K = self._ngram.distribution(outcomes)
        if self._escape not in outcomes:
            p_K = self._without_known(p_K, outcomes)
        p[: self.first_byte] = p_K[: self._escape]
        p[self.first_byte : self.end] = p_K[self._escape] * self._unseen.next_byte(b"")
        p[self.end] = p_K[self._escape + 1]
        return p

    def _without_known(self, p_K: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
        """Take the words of the vocabulary that begin like this out of the distribution of the next outcome."""
        begins = "".join(self.characters[outcome] for outcome in outcomes)
        first = bisect_left(self.known, begins)
        last = bisect_left(self.known, True, lo=first, key=lambda word: not word.startswith(begins))
        if first == last:
            return p_K
        shares = np.multiply.accumulate(
            self._ngram.probabilities(np.array(outcomes, dtype=np.int64), np.array([len(outcomes)]))
        )
        if len(shares) and shares[-1] == 0.0:  # a beginning so long that no number is small enough for it
            return p_K
        # as a share of all words that begin like this
        taken = self._p_known[first:last] / shares[-1] if len(shares) else self._p_known[first:last]
        left_K = np.maximum(p_K - np.bincount(self._next(first, last, len(outcomes)), taken, len(p_K)), 0.0)
        return left_K / left_K.sum()

    def _next(self, first: int, last: int, here: int) -> np.ndarray:
        """The outcome at place `here` of the known words `first` to `last`."""
        if (first, last, here) in self._following:
            return self._following[first, last, here]
        end = self._escape + 1
        words = self.known[first:last]
        outcomes = np.array([self._outcome_of[ord(word[here])] if len(word) > here else end for word in words])
        if last - first > 100:  # few beginnings have so many words, and they are asked for again and again
            self._following[first, last, here] = outcomes
        return outcomes

    def _read(self, prefix: Sequence[int]) -> tuple[list[int], bytes]:
        """The prefix as outcomes of the n-gram, and the bytes of a character that is not complete yet."""
        outcomes: list[int] = []
        pending = b""
        for symbol in prefix:
            if symbol < self.first_byte:
                outcomes.append(symbol)
                continue
            assert symbol != self.end, "nothing comes after the end"
            pending += bytes([symbol - self.first_byte])
            if len(pending) == _utf8_length(pending[0]):
                outcomes.append(self._escape)
                pending = b""
        return outcomes, pending

    def sample(self, generator: np.random.Generator) -> str:
        """Draw an unknown word."""
        symbols: list[int] = []
        while not symbols or symbols[-1] != self.end:
            p = self.distribution(symbols)
            symbols.append(int(generator.choice(len(p), p=p / p.sum())))
        return self.word(symbols)


class _UnseenCharacters:
    """The characters that were never seen: all UTF-8 lengths alike, then all characters of that length alike."""

    def __init__(self, seen: Sequence[str]) -> None:
        unseen = np.ones(0x110000, dtype=bool)
        unseen[0xD800:0xE000] = False  # surrogates are no characters
        unseen[[ord(c) for c in seen]] = False
        self._before = np.concatenate([[0], np.cumsum(unseen)])  # unseen characters below each code point
        self._of_length = np.diff(self._before[_UTF8_FIRST])
        self._lengths = int((self._of_length > 0).sum())
        self._next_byte: dict[bytes, np.ndarray] = {}

    def nats(self, codepoints: np.ndarray) -> np.ndarray:
        """-log p of unseen characters."""
        length = np.searchsorted(_UTF8_FIRST, codepoints, side="right") - 1
        return np.log(self._lengths) + np.log(self._of_length[length])

    def next_byte(self, prefix: bytes) -> np.ndarray:
        """Probability of each of the 256 bytes after the first bytes of a character."""
        if prefix not in self._next_byte:
            self._next_byte[prefix] = self._count_next_byte(prefix)
        return self._next_byte[prefix]

    def _count_next_byte(self, prefix: bytes) -> np.ndarray:
        counts = np.array([self._count(prefix + bytes([byte])) for byte in range(256)], dtype=np.float64)
        if prefix:
            return counts / counts.sum()
        length = np.array([_utf8_length(byte) for byte in range(256)])
        return counts / np.maximum(self._of_length[length - 1], 1) / self._lengths

    def _count(self, prefix: bytes) -> int:
        """How many unseen characters have a UTF-8 form that begins with these bytes."""
        first, *rest = prefix
        length = _utf8_length(first)
        if 0x80 <= first < 0xC0 or first >= 0xF8 or any(not 0x80 <= byte < 0xC0 for byte in rest):
            return 0
        value = first if length == 1 else first & (0x7F >> length)
        for byte in rest:
            value = value << 6 | byte & 0x3F
        shift = 6 * (length - len(prefix))
        low, high = np.clip([value << shift, (value + 1) << shift], _UTF8_FIRST[length - 1], _UTF8_FIRST[length])
        return int(self._before[high] - self._before[low])


def _utf8_length(first: int) -> int:
    """Bytes of the UTF-8 form that this byte begins."""
    return 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)
