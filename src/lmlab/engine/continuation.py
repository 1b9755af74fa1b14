"""A continuation in the making: its tokens, what they cost, and the text that is certain so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, final

from lmlab.engine.certain_text import Stopper, Writer, writer_after
from lmlab.engine.result import Finish, Generated

if TYPE_CHECKING:
    from lmlab.text.spelling import Spelling
    from lmlab.text.tokenizers import Tokenizer


class Spelled(NamedTuple):
    """How an unknown word was spelled, and what that costs."""

    word: str
    nats: float


@lru_cache(maxsize=4)
def likeliest_spelling(spelling: Spelling) -> Spelled:
    """The spelling that searches give an unknown word: of the words the spelling model learned from, the likeliest.

    (The likeliest of all strings has no simple search, and need not be a word of the language.)
    """
    words = list(spelling.words) or [""]
    nats = spelling.nats(words)
    return Spelled(words[int(nats.argmin())], float(nats.min()))


@final
class Continuation:
    """One continuation. Tokens are added until `finish` says why no more are needed."""

    def __init__(self, writer: Writer, stopper: Stopper, end_id: int | None = None) -> None:
        self.ids: list[int] = []
        self.spellings: list[str] = []
        self.nats = self.spelling_nats = 0.0
        self.finish: Finish | None = None
        self._writer, self._stopper, self._text, self._end_id = writer, stopper, [""], end_id

    @classmethod
    def after(
        cls,
        tokenizer: Tokenizer,
        ids: Sequence[int],
        spellings: Sequence[str],
        stop: Sequence[str],
        end_id: int | None = None,
    ) -> Continuation:
        """An empty continuation of a prompt. end_id: of the token that ends a text, where there is one."""
        return cls(writer_after(tokenizer, ids, spellings), Stopper(stop), end_id)

    def add(self, id: int, nats: float, spelled: Spelled | None = None) -> str:
        """Add a token that costs `nats`, its spelling not included; returns the text that is now certain."""
        self.ids.append(id)
        self.nats += nats
        if spelled is not None:
            self.spellings.append(spelled.word)
            self.spelling_nats += spelled.nats
        if id == self._end_id:
            return self._close("end")
        piece = self._stopper.feed(self._writer.write(id, spelled.word if spelled else None))
        if self._stopper.stopped:
            self.finish = "stop"
        self._text.append(piece)
        return piece

    def extend(self, ids: Sequence[int], nats: Sequence[float], spelled: Callable[[int], Spelled | None] | None) -> str:
        """`add` one after the other, until it is finished; returns the text that is now certain.

        spelled: how an unknown word is spelled; None: there are none, and what cannot stop either is added at once.
        """
        if spelled is None and self._end_id is None and not self._stopper.stops:
            self.ids += ids
            for cost in nats:
                self.nats += cost
            self._text.append(self._writer.write_all(ids))
            return self._text[-1]
        pieces = []
        for id, cost in zip(ids, nats, strict=True):
            if self.finish is not None:
                break
            pieces.append(self.add(id, cost, None if spelled is None else spelled(id)))
        return "".join(pieces)

    def end(self) -> str:
        """Nothing follows: returns the text that was held back."""
        if self.finish is not None:
            return ""
        return self._close("length")

    def cancel(self) -> str:
        """Nothing follows, because nobody wants it: returns the text that was held back."""
        return self._close("cancelled") if self.finish is None else ""

    def _close(self, finish: Finish) -> str:
        piece = self._stopper.feed(self._writer.end()) + self._stopper.end()
        self.finish = finish
        self._text.append(piece)
        return piece

    def copy(self) -> Continuation:
        """A continuation that goes on from here by itself."""
        copy = Continuation(self._writer.copy(), self._stopper.copy(), self._end_id)
        copy.ids, copy.spellings, copy._text = self.ids[:], self.spellings[:], self._text[:]
        copy.nats, copy.spelling_nats, copy.finish = self.nats, self.spelling_nats, self.finish
        return copy

    @property
    def total_nats(self) -> float:
        """Tokens and spellings."""
        return self.nats + self.spelling_nats

    def score(self, length_penalty: float) -> float:
        """What searches rank by: log p / tokens^length_penalty."""
        return -self.total_nats / len(self.ids) ** length_penalty

    def result(self, score: float | None = None) -> Generated:
        """The finished continuation."""
        assert self.finish is not None, "a result is finished"
        return Generated(
            text="".join(self._text),
            ids=tuple(self.ids),
            spellings=tuple(self.spellings),
            nats=self.total_nats,
            spelling_nats=self.spelling_nats,
            finish=self.finish,
            score=score,
        )
