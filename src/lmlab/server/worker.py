"""The thread that runs one model: it decodes and scores in turns, so that no client waits for all of another's work."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from lmlab.engine import Engine, Event, Request
from lmlab.server.errors import ApiError
from lmlab.server.prompt_scores import PromptScores, Work, score_prompts

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel
    from lmlab.server.limits import Limits
    from lmlab.text.tokenizers import Tokenizer

LOG = logging.getLogger("lmlab.server")
IDLE_S = 0.5  # between looks at whether the server ends
FAILED = "the model failed; the server's log says why"


@final
@dataclass(eq=False)
class Call:
    """The work of one HTTP request: prompts to score, then completions to decode.

    Attributes:
        requests: completions that the engine has not been given yet, in order.
        to_score: token ids of prompts whose log-probabilities are wanted.
        alternatives: the number of likeliest tokens to return beside each.
        on_event, on_scores, on_error: called by the worker's thread.
        deadline: when it is given up, in seconds of time.monotonic().
    """

    requests: deque[Request]
    to_score: Sequence[Sequence[int]]
    alternatives: int
    on_event: Callable[[Event], None]
    on_scores: Callable[[list[PromptScores]], None]
    on_error: Callable[[ApiError], None]
    size: int = 0  # completions that it counts for in the queue
    cancelled: bool = False
    in_engine: set[Request] = field(default_factory=set)
    scoring: Work | None = None

    @property
    def done(self) -> bool:
        """Whether nothing of it is left to do."""
        return not (self.requests or self.in_engine or self.to_score or self.scoring)


@final
class Worker:
    """Runs one model for all clients. `submit` and `cancel` may be called by any thread.

    The engine is given completions of the calls in turn, one of each, and no more than it can run, so that a client that sends
    hundreds of prompts does not hold up one that sends a single prompt.
    """

    def __init__(
        self, model: LanguageModel, tokenizer: Tokenizer, limits: Limits, max_rows: int, precision: str
    ) -> None:
        self._model, self._limits, self._max_rows = model, limits, max_rows
        self.engine = Engine(model, tokenizer, max_rows=max_rows, precision=precision)
        self._calls: dict[Call, None] = {}  # in the order of their next turn
        self._of: dict[Request, Call] = {}
        self._lock, self._wake, self._ends = threading.Lock(), threading.Event(), False
        self._new = deque[Call]()
        self._queued = 0
        self._thread = threading.Thread(target=self._run, name="lmlab-worker", daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        """The completions that wait or run."""
        return self._queued

    @property
    def running(self) -> int:
        """The completions that run."""
        return len(self._of)

    @property
    def works(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def submit(self, call: Call) -> None:
        """Let a call wait for its turn.

        Raises:
            ApiError: as many completions wait as the server allows (429), or the server ends (503).
        """
        with self._lock:
            if self._ends:
                raise ApiError(503, "the server is shutting down", code="shutting_down", retry_after_s=5)
            if self._queued + call.size > self._limits.queued:
                message = (
                    f"{self._queued} completions wait or run, and at most {self._limits.queued} may; try again later"
                )
                raise ApiError(429, message, code="queue_full", retry_after_s=1)
            self._queued += call.size
            self._new.append(call)
        self._wake.set()

    def cancel(self, call: Call) -> None:
        """Give up a call: what runs of it ends before the next step."""
        call.cancelled = True
        self._wake.set()

    def end(self) -> None:
        """Let the thread end; calls that are left get an error."""
        with self._lock:
            self._ends = True
        self._wake.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        try:
            while not self._ends:
                try:
                    self._turn()
                except Exception as error:  # without this thread, clients would wait for nothing
                    self._fail(list(self._calls), error)
        finally:
            with self._lock:
                self._ends = True
                left = [*self._calls, *self._new]
            for call in left:
                call.on_error(ApiError(503, "the server is shutting down", code="shutting_down"))

    def _turn(self) -> None:
        if not self._calls and not self.engine.busy:
            self._wake.wait(IDLE_S)
        self._wake.clear()
        while self._new:
            self._calls[self._new.popleft()] = None
        self._drop_cancelled()
        self._feed()
        try:
            if self.engine.busy:
                self._deliver(self.engine.step())
        except Exception as error:  # the engine dropped all that ran; the calls that wait go on
            self._fail(list(dict.fromkeys(self._of.values())), error)
        self._score_a_piece()
        for call in [call for call in self._calls if call.done]:
            self._remove(call)

    def _remove(self, call: Call) -> None:
        if call in self._calls:
            del self._calls[call]
            with self._lock:
                self._queued -= call.size

    def _drop_cancelled(self) -> None:
        for call in [call for call in self._calls if call.cancelled]:
            for request in call.in_engine:
                self.engine.cancel(request)
                self._of.pop(request, None)
            call.in_engine.clear()
            self._remove(call)

    def _feed(self) -> None:
        """Give the engine one completion of each call in turn, as long as it has rows for them."""
        while len(self._of) < self._max_rows:
            call = next((call for call in self._calls if call.requests), None)
            if call is None:
                return
            del self._calls[call]  # behind the others
            self._calls[call] = None
            request = call.requests.popleft()
            try:
                self.engine.submit(request)
            except Exception as error:
                self._fail([call], error)
                continue
            self._of[request] = call
            call.in_engine.add(request)

    def _deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            call = self._of.get(event.request)
            if call is None:  # cancelled
                continue
            if event.finish is not None:
                del self._of[event.request]
                call.in_engine.discard(event.request)
            call.on_event(event)

    def _fail(self, calls: Sequence[Call], error: Exception) -> None:
        """Give up calls with an error; others go on."""
        LOG.error("the model failed", exc_info=error)
        for call in calls:
            call.on_error(ApiError(500, FAILED, code="model_failed"))
            call.cancelled = True
        self._drop_cancelled()

    def _score_a_piece(self) -> None:
        """Score a piece of the call whose turn it is, and let the next call have the next turn."""
        call = next((call for call in self._calls if call.to_score or call.scoring), None)
        if call is None:
            return
        del self._calls[call]
        self._calls[call] = None
        try:
            if call.scoring is None:
                call.scoring, call.to_score = score_prompts(self._model, call.to_score, call.alternatives), ()
            next(call.scoring)
        except StopIteration as end:
            call.scoring = None
            call.on_scores(end.value)
        except Exception as error:
            self._fail([call], error)
