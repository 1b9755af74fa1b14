"""One completion as the client sees it: text, tokens with log-probabilities, and their places in the text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmlab.engine.certain_text import writer_after

if TYPE_CHECKING:
    from lmlab.engine import Event
    from lmlab.server.prompt_scores import PromptScores
    from lmlab.server.served_model import Prompt, ServedModel

LEAST_LOGPROB = -9999.0  # stands for minus infinity, which JSON cannot write
REASONS = {"length": "length", "stop": "stop", "end": "stop"}


@dataclass
class Logprobs:
    """The `logprobs` object of a choice, or of a piece of it."""

    tokens: list[str] = field(default_factory=list)
    token_logprobs: list[float | None] = field(default_factory=list)
    top_logprobs: list[dict[str, float] | None] = field(default_factory=list)
    text_offset: list[int] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        """The object of the protocol."""
        return dict(vars(self))


class Choice:
    """A completion of one prompt while its tokens arrive.

    Args:
        alternatives: the number of alternatives per token; None: no log-probabilities.
        echo: whether the prompt is part of the text.
    """

    def __init__(self, served: ServedModel, prompt: Prompt, index: int, alternatives: int | None, echo: bool) -> None:
        self.index, self.tokens, self.total_logp = index, 0, 0.0
        self.finish: str | None = None
        self._served, self._prompt, self._alternatives, self._echo = served, prompt, alternatives, echo
        self._text, self._logprobs, self._spelling_nats = list[str](), Logprobs(), 0.0
        self._offset = len(prompt.text) if echo else 0
        self._writer = writer_after(served.tokenizer, prompt.ids, prompt.spellings)

    def add_prompt(self, scores: PromptScores | None) -> dict[str, Any]:
        """Add the prompt of an echo; returns it as a piece. scores: None if no log-probabilities were asked for."""
        logprobs = Logprobs()
        if scores is not None:
            if self._prompt.begins:
                self._append(logprobs, self._served.begin_id, None, (), 0)
            writer, offset = writer_after(self._served.tokenizer, (), ()), 0
            spelled, unknown = iter(self._prompt.spellings), self._served.tokenizer.unknown_id
            nats = iter(self._served.spelling_nats(self._prompt.spellings))
            tops = scores.top or [[] for _ in self._prompt.ids]
            for id, logp, top in zip(self._prompt.ids, scores.logp_T.tolist(), tops, strict=True):
                is_unknown = id == unknown
                logp -= next(nats) if is_unknown else 0.0
                self._append(logprobs, id, logp, top, offset)
                offset += len(writer.write(id, next(spelled) if is_unknown else None))
        return self._piece(self._prompt.text, logprobs if scores is not None else None)

    def add(self, event: Event) -> dict[str, Any]:
        """Add the tokens of an event; returns them as a piece of a stream."""
        logprobs = Logprobs()
        continuation, unknown = event.request.continuation, self._served.tokenizer.unknown_id
        for token in event.tokens:  # where words can be unknown, an event has one token
            is_unknown = token.id == unknown
            logp = token.logprob - (continuation.spelling_nats - self._spelling_nats if is_unknown else 0.0)
            self.total_logp += logp
            if self._alternatives is not None:
                self._append(logprobs, token.id, logp, token.top, self._offset)
                if token.id != self._served.model.end_id:
                    spelling = continuation.spellings[-1] if is_unknown else None
                    self._offset += len(self._writer.write(token.id, spelling))
        self._spelling_nats = continuation.spelling_nats
        self.tokens += len(event.ids)
        if event.finish is not None:
            self.finish = REASONS.get(event.finish, event.finish)
        return self._piece(event.text, logprobs if self._alternatives is not None else None)

    def json(self) -> dict[str, Any]:
        """The whole choice."""
        return {
            "index": self.index,
            "text": "".join(self._text),
            "logprobs": self._logprobs.json() if self._alternatives is not None else None,
            "finish_reason": self.finish,
        }

    @property
    def mean_logp(self) -> float:
        """What the best of several is chosen by: the mean log-probability of its tokens."""
        return self.total_logp / max(1, self.tokens)

    def _piece(self, text: str, logprobs: Logprobs | None) -> dict[str, Any]:
        self._text.append(text)
        if logprobs is not None:
            for name, values in vars(logprobs).items():
                getattr(self._logprobs, name).extend(values)
        return {
            "index": self.index,
            "text": text,
            "logprobs": None if logprobs is None else logprobs.json(),
            "finish_reason": self.finish,
        }

    def _append(
        self, logprobs: Logprobs, id: int, logp: float | None, top: Sequence[tuple[int, float]], offset: int
    ) -> None:
        text = self._served.token_text(id)
        logprobs.tokens.append(text)
        logprobs.token_logprobs.append(_finite(logp))
        logprobs.text_offset.append(offset)
        if logp is None:
            logprobs.top_logprobs.append(None)
            return
        found = {text: _finite(logp)}  # the very same float in both places
        for other, other_logp in top:
            spelled = self._served.token_text(other)
            if other != id:
                found[spelled] = max(found.get(spelled, -math.inf), _finite(other_logp))
        logprobs.top_logprobs.append(found)


def _finite(logp: float | None) -> Any:
    return logp if logp is None else max(float(logp), LEAST_LOGPROB)
