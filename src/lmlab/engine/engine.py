"""The engine: requests in, tokens out, for every kind of language model.

    engine = Engine(model, tokenizer)
    engine.submit(Request("The cat", max_tokens=20, temperature=0.8, seed=1))
    while engine.busy:
        for event in engine.step():
            print(event.text, end="")

A step reads one token in every running row, after some of the prompts that wait to be read. Requests join and leave between
steps. The log-probabilities of a request differ from those of the request alone by rounding (1e-5 nats in float32 on a CPU,
1e-3 on a GPU), because products of other sizes round otherwise; it draws from random numbers of its own.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, final

import torch
from torch import nn

from lmlab.config import Mistake
from lmlab.engine.batch import Batch
from lmlab.engine.choosing import Chooser
from lmlab.engine.continuation import Continuation
from lmlab.engine.precision import PRECISIONS, dtype_for
from lmlab.engine.prefill import Prefill, Ready, prefills
from lmlab.engine.prompt import encoded_prompt
from lmlab.engine.request import Event, Request
from lmlab.engine.scheduler import Scheduler
from lmlab.engine.step import Added, Chosen, InTransit

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.engine.result import Generated
    from lmlab.interface import LanguageModel
    from lmlab.text.tokenizers import Tokenizer

MAX_ROWS = 64  # few enough for memory, enough to fill a GPU
CHUNK = 512  # tokens of prompts that are read in a step beside running requests
LOOKAHEAD, LOOKAHEAD_IF_STOPPED = 16, 2  # steps that a GPU may be ahead of the text


@final
class Engine:
    """Continues the prompts of many requests side by side.

    `submit` and `cancel` may be called by any thread; `step` and `run` by one thread at a time. The engine owns its caches
    and its precision: the model itself is not changed, and several engines may use one model. The weights of the model must
    not change while an engine exists.

    Args:
        model: a language model in evaluation mode.
        tokenizer: the tokenizer of its tokens.
        max_rows: requests that run side by side at most; others wait.
        precision: of the weights while decoding: "float32", or "bf16" for models that can.
        chunk: tokens of prompts that are read in one step while other requests run.
        lookahead: steps that a GPU may be ahead of the text. An event then holds up to that many tokens.
    """

    def __init__(
        self,
        model: LanguageModel,
        tokenizer: Tokenizer,
        *,
        max_rows: int = MAX_ROWS,
        precision: str = PRECISIONS[0],
        chunk: int = CHUNK,
        lookahead: int = LOOKAHEAD,
    ) -> None:
        if isinstance(model, nn.Module) and model.training:
            raise ValueError(f"this {model.name} is in training, where dropout disturbs it; call model.eval() first")
        if max_rows < 1:
            raise Mistake(f"{{max_rows}} is 1 or more; got {max_rows}", code="max-rows-below-one", max_rows=None)
        self.model, self.tokenizer = model.for_decoding(dtype_for(model, precision)), tokenizer
        self.scheduler = Scheduler(max_rows)
        self._chunk, self._lookahead = chunk, lookahead
        self._batch, self._chooser = Batch(self.model), Chooser(tokenizer)
        self._submitted, self._cancelled = deque[Request](), deque[Request]()
        self._arrived = threading.Event()  # something was submitted or cancelled since the last step
        self._prefills = list[Prefill]()
        self._chosen_B: Tensor | None = None  # tokens that the next step reads
        self._steps, self._sent = list[Chosen](), list[InTransit]()  # of a GPU that is ahead

    def submit(self, request: Request) -> Request:
        """Let a request wait for its turn; returns it. Thread-safe.

        Raises:
            Mistake: the prompt cannot be encoded, or its ids are not of this vocabulary.
        """
        ids, spellings = encoded_prompt(self.tokenizer, request.prompt, self.model.vocab_size)
        stop, end_id = request.options.stop, self.model.end_id
        request.take(ids, Continuation.after(self.tokenizer, ids, spellings, stop, end_id))
        self._submitted.append(request)
        self._arrived.set()
        return request

    def cancel(self, request: Request) -> None:
        """End a request; the next step returns its last event. A request that has ended is left as it is. Thread-safe."""
        self._cancelled.append(request)
        self._arrived.set()

    @property
    def busy(self) -> bool:
        """Whether a request waits or runs."""
        asked = self._submitted or self._cancelled or self.scheduler.waiting or self.scheduler.running
        return bool(asked or self._steps or self._sent)

    def wait(self, timeout: float | None = None) -> bool:
        """Return as soon as there is something to do, or after so many seconds; whether there is."""
        return self.busy or (self._arrived.wait(timeout) and self.busy)

    def run(self, requests: Sequence[Request]) -> list[Generated]:
        """Submit requests and take steps until all requests have ended; returns their texts in order."""
        for request in requests:
            self.submit(request)
        while self.busy:
            self.step()
        return [request.result() for request in requests]

    @torch.inference_mode()
    def step(self) -> list[Event]:
        """Read prompts and one more token in every running row; returns what was added to the requests.

        If the model raises an exception, all running requests are given up and the exception goes on; waiting requests stay.
        """
        try:
            return [*self._receive(), *self._step()]
        except BaseException:
            self._give_up()
            raise

    def _step(self) -> list[Event]:
        batch = self._batch
        if self._chosen_B is not None:
            self._advance(self._chosen_B)
        self._read_prompts()
        if not batch.busy:
            return self._deliver_all()
        ids_B = self._chooser.choose(batch.logp_BV, batch.rows)
        self._steps.append(Chosen.of(batch.rows, ids_B, batch.logp_BV))
        for request in batch.rows:
            if request is not None:
                request.chosen += 1
                if request.chosen == request.options.max_tokens:
                    self._finish(request)  # others may have its row while its tokens are delivered
        if not self._runs_ahead(ids_B):
            self._chosen_B = ids_B
            return self._deliver_all()
        if not batch.busy:
            return self._deliver_all()
        self._advance(ids_B)
        if len(self._steps) < self._ahead:
            return []
        self._send()
        return self._deliver(self._sent.pop(0)) if len(self._sent) > 1 else []

    def _advance(self, ids_B: Tensor) -> None:
        """Read the chosen tokens."""
        self._chosen_B = None
        if not self.scheduler.waiting:
            kept_B = self._batch.shrink(seldom=self._runs_ahead(ids_B))
            ids_B = ids_B if kept_B is None else ids_B[kept_B]
        if self._batch.busy:
            self._batch.advance(ids_B)

    def _runs_ahead(self, ids_B: Tensor) -> bool:
        """Whether the next step is taken before these tokens are looked at; not where spellings are drawn between tokens."""
        return ids_B.is_cuda and self.tokenizer.unknown_id is None

    @property
    def _ahead(self) -> int:
        """Steps that a GPU may be ahead: where a text can stop, few of its tokens should be for nothing."""
        can_stop = self.model.end_id is not None or any(request.options.stop for request in self.scheduler.running)
        return min(self._lookahead, LOOKAHEAD_IF_STOPPED) if can_stop else self._lookahead

    def _receive(self) -> list[Event]:
        """Take over what other threads submitted and cancelled."""
        self._arrived.clear()
        while self._submitted:
            self.scheduler.add(self._submitted.popleft())
        events = []
        while self._cancelled:
            request = self._cancelled.popleft()
            if request.finish is None:
                text = request.continuation.cancel()
                self._finish(request)
                events.append(Event(request, [], [], text, request.finish, []))
        return events

    def _read_prompts(self) -> None:
        """Admit requests, and read some of the prompts, or all of them if nothing else runs."""
        if self.scheduler.waiting:
            self._prefills += prefills(self.model, self.scheduler.admit())
        if not self._prefills:
            return
        alone, left, ready = not self._batch.busy, self._chunk, list[Ready]()
        try:
            while self._prefills and (alone or left > 0):
                prefill = self._prefills[0]
                left -= prefill.read(None if alone else left)
                if prefill.done:
                    ready += prefill.results()
                    self._prefills[:1] = prefill.following()
            self._batch.join(ready)
        except torch.OutOfMemoryError:
            if alone:
                raise
            self._preempt(ready)

    def _preempt(self, ready: Sequence[Ready]) -> None:
        """Let the requests wait again whose prompts are being read; when those that run have ended there is room."""
        reading = [request for prefill in self._prefills for request in prefill.requests]
        self._prefills.clear()
        self.scheduler.preempt([*(request for each in ready for request in each.requests), *reading])

    def _send(self) -> None:
        self._sent.append(InTransit(self._steps))
        self._steps = []

    def _deliver_all(self) -> list[Event]:
        """Add all tokens that were chosen to their requests."""
        if self._steps:
            self._send()
        events = []
        while self._sent:
            events += self._deliver(self._sent.pop(0))
        return events

    def _deliver(self, sent: InTransit) -> list[Event]:
        """Add tokens to their requests. A request that ended before leaves out what it would have had after its end."""
        return [self._event(added) for added in sent.arrived() if added.request.finish is None]

    def _event(self, added: Added) -> Event:
        request, continuation = added.request, added.request.continuation
        before = len(continuation.ids)
        spelled = None if self.tokenizer.unknown_id is None else partial(self._chooser.spelled, request=request)
        text = continuation.extend(added.ids, [-logprob for logprob in added.logprobs], spelled)
        count = len(continuation.ids) - before
        if len(continuation.ids) == request.options.max_tokens:
            text += continuation.end()
        if continuation.finish is not None:
            self._finish(request)
        return Event(request, added.ids[:count], added.logprobs[:count], text, continuation.finish, added.top[:count])

    def _finish(self, request: Request) -> None:
        self._batch.leave(request)
        self.scheduler.finish(request)

    def _give_up(self) -> None:
        """Forget all running requests."""
        self._batch, self._prefills, self._chosen_B = Batch(self.model), [], None
        self._steps, self._sent = [], []
        self.scheduler.running.clear()
