"""A completion request at work: the call that the worker does, and the responses made of what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool

from lmlab.config import Mistake
from lmlab.engine import Event, Request
from lmlab.server.choice import Choice
from lmlab.server.errors import ApiError
from lmlab.server.worker import Call

if TYPE_CHECKING:
    from lmlab.server.completion_request import CompletionRequest
    from lmlab.server.metrics import Metrics
    from lmlab.server.prompt_scores import PromptScores
    from lmlab.server.served_model import Prompt, ServedModel
    from lmlab.server.worker import Worker

Piece = dict[str, Any]


class Completion:
    """One POST /v1/completions, from the parsed request to the response."""

    def __init__(
        self, served: ServedModel, worker: Worker, request: CompletionRequest, prompts: list[Prompt], metrics: Metrics
    ) -> None:
        self._served, self._worker, self._request, self._metrics = served, worker, request, metrics
        self._id, self._created, self._begun = f"cmpl-{secrets.token_hex(12)}", int(time.time()), time.monotonic()
        self._prompts = prompts
        self._check_size()
        self._choices = self._make_choices()
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[Any] = asyncio.Queue()
        self._choice_of: dict[Request, Choice] = {}
        self._call = self._make_call()

    def _check_size(self) -> None:
        """Raise for an answer whose log-probabilities or echoed prompts could fill the memory."""
        asked, most = self._request, self._served.limits.answered
        echoed = sum(prompt.tokens for prompt in self._prompts) if asked.echo else 0
        tokens = echoed + (len(self._prompts) * asked.max_tokens if asked.logprobs is not None else 0)
        entries = tokens * asked.best_of * (1 + (asked.logprobs or 0))
        if entries > most:
            message = (
                f"the answer could have {entries:,} log-probabilities or echoed tokens, and at most {most:,} are allowed; "
                "send fewer or shorter prompts, or ask for fewer logprobs or tokens"
            )
            raise ApiError(400, message, param="prompt" if echoed else "max_tokens", code="answer_too_large")

    def _make_choices(self) -> list[Choice]:
        asked = self._request
        return [
            Choice(self._served, prompt, index, asked.logprobs, asked.echo)
            for index, prompt in enumerate(p for p in self._prompts for _ in range(asked.best_of))
        ]

    def _make_call(self) -> Call:
        asked, requests = self._request, deque[Request]()
        seed = secrets.randbits(32) if asked.seed is None else asked.seed % (1 << 32)
        for i, prompt in enumerate(self._prompts):
            for sample in range(asked.best_of if asked.max_tokens else 0):
                request = self._engine_request(prompt, seed, sample)
                self._choice_of[request] = self._choices[i * asked.best_of + sample]
                requests.append(request)
        scored = asked.echo and asked.logprobs is not None

        def hand_over(thing: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, so nobody waits
                self._loop.call_soon_threadsafe(self._arrived.put_nowait, thing)

        return Call(
            requests=requests,
            to_score=[prompt.ids for prompt in self._prompts] if scored else (),
            alternatives=asked.logprobs or 0,
            on_event=hand_over,
            on_scores=hand_over,
            on_error=hand_over,
            size=max(len(requests), len(self._prompts)),
        )

    def _engine_request(self, prompt: Prompt, seed: int, sample: int) -> Request:
        asked = self._request
        greedy = asked.temperature == 0
        try:
            return Request(
                prompt.text if prompt.spellings else list(prompt.ids),  # ids spell no unknown words
                logprobs=asked.logprobs,
                sample=sample,
                max_tokens=asked.max_tokens,
                temperature=asked.temperature,
                top_k=None if greedy else asked.top_k,
                top_p=None if greedy else asked.top_p,
                min_p=None if greedy else asked.min_p,
                stop=asked.stop,
                seed=seed,
            )
        except Mistake as mistake:
            raise ApiError.of(mistake) from None

    async def pieces(self) -> AsyncIterator[Piece]:
        """Yield the pieces of all choices as they come. Gives the work up if it is closed before the end.

        Raises:
            ApiError: the model failed, or the time is over.
        """
        asked = self._request
        deadline = self._begun + self._served.limits.request_s
        try:
            self._worker.submit(self._call)
            waiting_for_scores, unfinished = bool(self._call.to_score), len(self._choice_of)
            held: list[Event] = []  # of an echo, until the prompt is scored
            if asked.echo and not waiting_for_scores:
                for choice in self._choices:
                    yield self._end_if_nothing_follows(choice, choice.add_prompt(None))
            while waiting_for_scores or unfinished:
                thing = await self._next(deadline)
                if isinstance(thing, ApiError):
                    raise thing
                if isinstance(thing, Event):
                    unfinished -= thing.finish is not None
                    if waiting_for_scores:
                        held.append(thing)
                    else:
                        yield self._added(thing)
                    continue
                waiting_for_scores = False
                for choice, scores in zip(self._choices, self._for_each_choice(thing), strict=True):
                    # In a thread, because a long prompt takes seconds, and other streams go on.
                    piece = await run_in_threadpool(choice.add_prompt, scores)
                    yield self._end_if_nothing_follows(choice, piece)
                for event in held:
                    yield self._added(event)
        finally:
            self.give_up()
            self._metrics.finished(self._begun, self.usage)

    def give_up(self) -> None:
        """End the work, if any is left."""
        self._worker.cancel(self._call)

    async def _next(self, deadline: float) -> Any:
        try:
            # Not wait_for: that of Python 3.11 forgets a cancellation where something arrives at the same moment.
            async with asyncio.timeout(deadline - time.monotonic()):
                return await self._arrived.get()
        except TimeoutError:
            message = f"not finished in {self._served.limits.request_s:g} s; ask for fewer tokens, or try again later"
            raise ApiError(503, message, code="timeout", retry_after_s=10) from None

    def _for_each_choice(self, scores: list[PromptScores]) -> list[PromptScores]:
        return [one for one in scores for _ in range(self._request.best_of)]

    def _end_if_nothing_follows(self, choice: Choice, piece: Piece) -> Piece:
        if not self._request.max_tokens:
            choice.finish = piece["finish_reason"] = "length"
        return piece

    def _added(self, event: Event) -> Piece:
        choice = self._choice_of[event.request]
        if not choice.tokens:
            self._metrics.first_token(self._begun)
        return choice.add(event)

    async def whole(self) -> dict[str, Any]:
        """Return the response of a request that is not streamed."""
        async for _ in self.pieces():
            pass
        return {**self._head(), "choices": [choice.json() for choice in self._best()], "usage": self.usage}

    def _best(self) -> list[Choice]:
        """The n of best_of completions of each prompt whose tokens are likeliest on average, numbered anew."""
        n, best_of = self._request.n, self._request.best_of
        if n == best_of:
            return self._choices
        found: list[Choice] = []
        for first in range(0, len(self._choices), best_of):
            found += sorted(self._choices[first : first + best_of], key=lambda c: -c.mean_logp)[:n]
        for index, choice in enumerate(found):
            choice.index = index
        return found

    def chunk(self, piece: Piece) -> dict[str, Any]:
        """Return a piece as an event of a stream."""
        return {**self._head(), "choices": [piece]}

    def last_chunk(self) -> dict[str, Any]:
        """Return the event that tells the usage."""
        return {**self._head(), "choices": [], "usage": self.usage}

    def _head(self) -> dict[str, Any]:
        return {"id": self._id, "object": "text_completion", "created": self._created, "model": self._served.name}

    @property
    def usage(self) -> dict[str, int]:
        """The tokens of all prompts, each counted once, and of all completions."""
        prompt, completion = sum(p.tokens for p in self._prompts), sum(choice.tokens for choice in self._choices)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
