"""What strings cost under a model, token by token and word by word: each from its own beginning, thousands side by side.

No certificate stands behind these numbers, and no interval: a string is what it is. For how well a model predicts a text
there is `evaluate`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from textwrap import shorten
from typing import TYPE_CHECKING, NamedTuple, final, overload

import numpy as np

from lmlab.config import Mistake
from lmlab.measure.score import nats_of_tokens
from lmlab.page.numbers import counted
from lmlab.records import NOT_IN_JSON, JsonRecord, in_json, json_key
from lmlab.text.codings import Encoded

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel
    from lmlab.text.tokenizers import Tokenizer

WORD = re.compile(r"\S+")
SHORT = 60  # characters of a text that a console is shown


class Costs(NamedTuple):
    """A token or a word, and its bits: -log2 p, infinite where the model holds it impossible."""

    text: str
    bits: float


@dataclass(frozen=True, kw_only=True)
class ScoredWord(JsonRecord):
    """A word with the white space before it, and the tokens it is made of."""

    text: str = field(metadata=json_key("word"))
    tokens: tuple[Costs, ...]

    @property
    @in_json
    def bits(self) -> float:
        """The surprise of the word given everything before it."""
        return math.fsum(token.bits for token in self.tokens)


@dataclass(frozen=True, kw_only=True)
class ScoredText(JsonRecord):
    """One string and what it costs. An unknown word costs its symbol and its spelling.

    The last word is the end of the string, where the model predicts ends and it was asked for.
    """

    text: str
    words: tuple[ScoredWord, ...]
    separator_bytes: int = field(default=0, metadata=NOT_IN_JSON)  # that the end stands for, where it is scored

    def __repr__(self) -> str:
        return f"ScoredText({shorten(self.text, SHORT)!r}, {self.bits:.2f} bits, {counted(len(self.words), 'word')})"

    def _repr_html_(self) -> str:
        """The string in a notebook: its words, what each costs, and what its tokens cost."""
        from lmlab.page.notebook import panel

        per = f"{self.bits / max(1, len(self.words)):.2f} a word, {self.bits / max(1, self.bytes):.4f} a byte"
        rows = [
            (word.text, f"{word.bits:.2f} bits: " + "  ".join(f"{t.text!r} {t.bits:.2f}" for t in word.tokens))
            for word in self.words
        ]
        return panel(f"{self.bits:.2f} bits: {shorten(self.text, SHORT)}", rows, notes=per)

    @property
    def tokens(self) -> tuple[Costs, ...]:
        """All tokens in order."""
        return tuple(token for word in self.words for token in word.tokens)

    @property
    @in_json
    def bits(self) -> float:
        """-log2 of the probability that the model gives the string."""
        return math.fsum(word.bits for word in self.words)

    @property
    @in_json
    def bytes(self) -> int:
        """Of the string, in UTF-8, and of the separator that its end stands for."""
        return len(self.text.encode()) + self.separator_bytes


@final
class ScoredTexts(Sequence[ScoredText]):
    """Many strings and what they cost: a sequence, of which each item is worked out when it is asked for."""

    def __init__(
        self, texts: Sequence[str], tokenizer: Tokenizer, encoded: Encoded, starts: np.ndarray, nats: np.ndarray
    ) -> None:
        self._texts, self._tokenizer, self._encoded, self._starts, self._nats = texts, tokenizer, encoded, starts, nats

    def __repr__(self) -> str:
        return f"<{len(self)} scored texts, {math.fsum(self.bits):.1f} bits>"

    def __len__(self) -> int:
        return len(self._texts)

    @cached_property
    def bits(self) -> list[float]:
        """Of each string: -log2 of its probability."""
        has_tokens = np.diff(self._starts) > 0
        nats = np.zeros(len(self))
        if has_tokens.any():  # reduceat knows no empty stretches
            nats[has_tokens] = np.add.reduceat(self._nats, self._starts[:-1][has_tokens], dtype=np.float64)
        bits: list[float] = (nats / math.log(2)).tolist()
        return bits

    @overload
    def __getitem__(self, index: int) -> ScoredText: ...
    @overload
    def __getitem__(self, index: slice) -> list[ScoredText]: ...
    def __getitem__(self, index: int | slice) -> ScoredText | list[ScoredText]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        first, last = (int(start) for start in self._starts[index : index + 2])
        spelled = self._encoded.spellings[slice(*np.searchsorted(self._unknown, [first, last]).tolist())]
        return _in_words(
            self._texts[index], self._tokenizer, self._encoded.ids[first:last], spelled, self._nats[first:last]
        )

    @cached_property
    def _unknown(self) -> np.ndarray:
        """Where the unknown words are."""
        is_unknown: np.ndarray = self._encoded.ids == self._tokenizer.unknown_id
        return np.flatnonzero(is_unknown)


def score_texts(model: LanguageModel, tokenizer: Tokenizer, texts: Sequence[str], *, end: bool = True) -> ScoredTexts:
    """Score each string as a text of its own, from its beginning.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        texts: the strings.
        end: whether the end of each string is scored too, where the model predicts ends: then 2^-bits is the probability of
            this string, else that of all strings that begin so.
    """
    texts = list(texts)
    try:
        "".join(texts).encode()
    except TypeError:
        wrong = next(text for text in texts if not isinstance(text, str))
        raise Mistake(f"only text can be scored; got {wrong!r}", code="score-not-text") from None
    except UnicodeEncodeError as error:  # half a surrogate pair, or a byte of a command line that is not UTF-8
        raise Mistake(
            f"a text is not valid Unicode ({error.reason}); give text in UTF-8", code="score-not-unicode"
        ) from None
    encoded, lengths = tokenizer.encode_each(texts)
    tokenizer.require_lossless(texts, encoded, lengths)
    if end and tokenizer.end_id is not None:
        ids = np.insert(encoded.ids, np.cumsum(lengths), tokenizer.end_id)
        encoded, lengths = Encoded(ids, encoded.spellings), lengths + 1
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    nats = nats_of_tokens(model, encoded.ids, starts)
    if encoded.spellings:
        assert tokenizer.spelling is not None, "what is spelled has a spelling model"
        nats[encoded.ids == tokenizer.unknown_id] += tokenizer.spelling.nats(encoded.spellings)
    return ScoredTexts(texts, tokenizer, encoded, starts, nats)


def _in_words(
    text: str, tokenizer: Tokenizer, ids: np.ndarray, spellings: Sequence[str], nats: np.ndarray
) -> ScoredText:
    """A token belongs to the word it ends in or, being white space, stands before; white space at the end to the last."""
    if len(ids) and ids[-1] == tokenizer.end_id:
        found = _in_words(text, tokenizer, ids[:-1], spellings, nats[:-1])
        end = Costs(tokenizer.piece(int(ids[-1])), float(nats[-1]) / math.log(2))
        size = len((tokenizer.separator or "").encode())
        return replace(found, words=(*found.words, ScoredWord(text=end.text, tokens=(end,))), separator_bytes=size)
    left = iter(spellings)
    pieces = [next(left, "") if id == tokenizer.unknown_id else tokenizer.piece(id) for id in ids.tolist()]
    costs = [
        Costs(piece, bits) for piece, bits in zip(pieces, (nats.astype(float) / math.log(2)).tolist(), strict=True)
    ]
    words = list(WORD.finditer(text))
    if not words:
        return ScoredText(text=text, words=(ScoredWord(text=text, tokens=tuple(costs)),) if costs else ())
    ends = np.array([len(text[: word.end()].encode()) for word in words])
    token_ends = np.cumsum(tokenizer.token_bytes(ids, spellings))
    token_ends += (
        len(text.encode()) - token_ends[-1]
    )  # a space that goes without saying before a line is not in the text
    of_word = np.minimum(np.searchsorted(ends, token_ends), len(words) - 1)
    bounds = np.searchsorted(of_word, np.arange(len(words) + 1)).tolist()
    return ScoredText(
        text=text,
        words=tuple(
            ScoredWord(text=word[0], tokens=tuple(costs[first:last]))
            for word, first, last in zip(words, bounds, bounds[1:], strict=False)
        ),
    )
