"""A request for one text, and the events in which its tokens come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from lmlab.config import Mistake, make
from lmlab.engine.options import Options

if TYPE_CHECKING:
    from lmlab.engine.continuation import Continuation
    from lmlab.engine.result import Finish, Generated
    from lmlab.interface import LanguageModel

MOST_LOGPROBS = 1000  # alternatives of a token


@final
class Request:
    """One prompt to continue by greedy decoding or sampling. It can be submitted once.

    Args:
        prompt: the beginning of the text, or its token ids.
        logprobs: the number of likeliest tokens to return beside every token (0 to 1000). None: none.
        sample: the number of this text among several with the same seed. Each text draws from its own random numbers, which
            depend on (seed, sample) alone.
        model: the model that reads the prompt, if it is not the model of the engine but one whose states can go on with it,
            such as a translator that was given another source.
        settings: the settings of `Options`: max_tokens, temperature (0: greedy), top_k, top_p, min_p, stop, seed.
    """

    def __init__(
        self,
        prompt: str | Sequence[int] = "",
        *,
        logprobs: int | None = None,
        sample: int = 0,
        model: LanguageModel | None = None,
        **settings: Any,
    ) -> None:
        self.prompt, self.logprobs, self.sample, self.model = prompt, logprobs, sample, model
        self.options = make(Options, settings, "generate")
        if self.options.method not in ("sample", "greedy") or self.options.samples > 1:
            raise Mistake(
                "a request is one text, sampled or greedy; for others use lmlab.engine.generate",
                code="request-of-a-search",
            )
        whole = isinstance(logprobs, int) and not isinstance(logprobs, bool)
        if logprobs is not None and not (whole and 0 <= logprobs <= MOST_LOGPROBS):
            raise Mistake(
                f"{{logprobs}} is a whole number from 0 to {MOST_LOGPROBS}; got {logprobs!r}",
                code="logprobs-out-of-range",
                logprobs=None,
            )
        self.greedy = not self.options.draws
        self.rng = np.random.default_rng([self.options.seed, sample])
        self.prompt_ids: list[int] = []  # set when it is submitted, as is the continuation
        self._continuation: Continuation | None = None
        self.chosen = 0  # tokens that were chosen; on a GPU some of them may not have been read back yet

    @classmethod
    def of(cls, prompt: str | Sequence[int], options: Options, sample: int = 0) -> Request:
        """Return a request with these settings for one of its samples."""
        fields = ("max_tokens", "method", "temperature", "top_k", "top_p", "min_p", "stop", "seed")
        return cls(prompt, sample=sample, **{name: getattr(options, name) for name in fields})

    def take(self, prompt_ids: list[int], continuation: Continuation) -> None:
        """Begin with this continuation of the prompt; an engine calls it.

        Raises:
            ValueError: it was submitted already.
        """
        if self._continuation is not None:
            raise ValueError("this request was submitted already; make another one for another text")
        self.prompt_ids, self._continuation = prompt_ids, continuation

    @property
    def continuation(self) -> Continuation:
        """The text so far; of a request that was submitted."""
        assert self._continuation is not None, "a request is submitted first"
        return self._continuation

    @property
    def finish(self) -> Finish | None:
        """Why it ended; None while it waits or runs."""
        return self.continuation.finish

    def result(self) -> Generated:
        """Return the whole continuation of a finished request."""
        return self.continuation.result()


class Token(NamedTuple):
    """A token of an answer: its id, its natural log-probability, and the likeliest tokens in its place with theirs."""

    id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Event:
    """What one step added to a request: usually one token; several on a GPU, which runs ahead of the text.

    ids, logprobs: the tokens and their natural log-probabilities under the model, whatever the temperature and the filters.
    top: the likeliest tokens for each of `ids` with their log-probabilities; empty if the request asked for none.
    text: the text that is certain now: incomplete characters and beginnings of stop strings are held back. The texts of all
        events of a request together are the text of its result.
    finish: why the request ended: "length", "stop", "end" or "cancelled"; None if it goes on. The last event has a reason.
    """

    request: Request
    ids: list[int]
    logprobs: list[float]
    text: str
    finish: Finish | None
    top: list[tuple[tuple[int, float], ...]]

    @property
    def tokens(self) -> list[Token]:
        """The tokens with their log-probabilities and alternatives."""
        tops = self.top or [()] * len(self.ids)
        return [Token(*each) for each in zip(self.ids, self.logprobs, tops, strict=True)]
