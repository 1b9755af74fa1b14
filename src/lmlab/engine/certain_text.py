"""From tokens to text that is certain: half a character and the beginning of a stop string are held back.

Text is written token by token and never taken back, so it can be shown while a model is still at work. What is written
in all is the text of the tokens as the tokenizer decodes them, cut before the first stop string.
"""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from lmlab.text.tokenizers import Tokenizer


class Writer(ABC):
    """Turns tokens into pieces of text, in order."""

    @abstractmethod
    def write(self, id: int, spelling: str | None) -> str:
        """The text that this token makes certain; `spelling` is that of an unknown word."""

    def write_all(self, ids: Sequence[int]) -> str:
        """`write` for several known tokens."""
        return "".join(self.write(id, None) for id in ids)

    @abstractmethod
    def end(self) -> str:
        """The text that is certain only because nothing follows."""

    @abstractmethod
    def copy(self) -> Writer:
        """A writer that goes on from here by itself."""


def writer_after(tokenizer: Tokenizer, ids: Sequence[int], spellings: Sequence[str]) -> Writer:
    """A writer for what follows these tokens of a prompt."""
    if tokenizer.unknown_id is None:
        return _ByteWriter(_ByteStrings(tokenizer), first=not len(ids))
    last = int(ids[-1]) if len(ids) else None
    return _WordWriter(tokenizer, last, spellings[-1] if last == tokenizer.unknown_id and spellings else None)


@final
class _ByteStrings(dict[int, bytes]):
    """The byte string of each token of a tokenizer without unknown words, looked up when first needed."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.tokenizer = tokenizer

    def __missing__(self, id: int) -> bytes:
        self[id] = self.tokenizer.bytes_of(id)
        return self[id]


@final
class _ByteWriter(Writer):
    """Tokens that are byte strings: holds back the bytes of a character that is not complete."""

    def __init__(self, strings: _ByteStrings, pending: bytes = b"", *, first: bool) -> None:
        self._strings, self._pending, self._first = strings, pending, first

    def write(self, id: int, spelling: str | None) -> str:
        return self.write_all([id])

    def write_all(self, ids: Sequence[int]) -> str:
        found = [self._strings[id] for id in ids]
        if self._first and found:  # which may lack the space that it has inside a text
            found[0], self._first = self._strings.tokenizer.bytes_of(ids[0], first=True), False
        data = self._pending + b"".join(found)
        text, used = codecs.utf_8_decode(data, "replace", False)
        self._pending = data[used:]
        return text

    def end(self) -> str:
        text, self._pending = self._pending.decode("utf-8", errors="replace"), b""
        return text

    def copy(self) -> _ByteWriter:
        return _ByteWriter(self._strings, self._pending, first=self._first)


@final
class _WordWriter(Writer):
    """Tokens that are words: whether a space comes between two of them depends on both."""

    def __init__(self, tokenizer: Tokenizer, last: int | None, last_spelling: str | None) -> None:
        self._tokenizer, self._last, self._last_spelling = tokenizer, last, last_spelling

    def write(self, id: int, spelling: str | None) -> str:
        before = [] if self._last is None else [self._last]
        spelled = [] if self._last_spelling is None else [self._last_spelling]
        start = len(self._tokenizer.decode(before, spelled))
        self._last, self._last_spelling = id, spelling
        return self._tokenizer.decode([*before, id], spelled if spelling is None else [*spelled, spelling])[start:]

    def end(self) -> str:
        return ""

    def copy(self) -> _WordWriter:
        return _WordWriter(self._tokenizer, self._last, self._last_spelling)


@final
class Stopper:
    """Looks for stop strings in a text that arrives in pieces, and holds back what may be the beginning of one.

    The stop string that is complete first counts; of several complete at the same character, the longest. So how the
    text was divided into pieces does not matter.
    """

    def __init__(self, stops: Sequence[str], held: str = "", stopped: bool = False) -> None:
        self.stops, self._held, self.stopped = tuple(stops), held, stopped

    def feed(self, piece: str) -> str:
        """The text that can be shown after this piece; sets `stopped` when a stop string is complete."""
        if not self.stops:
            return piece
        text, self._held = self._held + piece, ""
        found = [(at + len(stop), at) for stop in self.stops if (at := text.find(stop)) >= 0]
        if found:
            self.stopped = True
            return text[: min(found)[1]]
        held = max(map(_overlap, [text] * len(self.stops), self.stops))
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def end(self) -> str:
        """What was held back; no stop string can follow any more."""
        held, self._held = self._held, ""
        return held

    def copy(self) -> Stopper:
        """A stopper that goes on from here by itself."""
        return Stopper(self.stops, self._held, self.stopped)


def _overlap(text: str, stop: str) -> int:
    """The longest end of `text` that begins `stop` without being all of it."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
