"""Reading prompts: in chunks beside running requests, those of equal length together, and a shared beginning once.

Shapes: N different prompts, T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, final

import torch

from lmlab.interface import advance

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.engine.request import Request
    from lmlab.interface import LanguageModel, State

LEAST_SHARED = 16  # tokens of a beginning that is worth a call of its own
Ids = tuple[int, ...]


class Ready(NamedTuple):
    """Requests whose prompts were read: the distribution after each prompt, and a state with a row of each."""

    requests: list[Request]
    logp_NV: Tensor
    state: State


@final
class Prefill:
    """Prompts of equal length that are being read; several requests may have the same prompt."""

    def __init__(self, model: LanguageModel, prompts: Sequence[Ids], requests: Sequence[Sequence[Request]]) -> None:
        self._model, self._requests = model, requests
        self._ids_NT = torch.tensor(prompts, dtype=torch.long)
        self._read = 0
        self._state: State | None = None
        self._logp_NV: Tensor
        self._rest: list[Prefill] = []  # what follows a shared beginning

    @property
    def requests(self) -> list[Request]:
        """All requests whose prompts are read here that were not cancelled."""
        own = [request for row in self._requests for request in row if request.finish is None]
        return own + [request for rest in self._rest for request in rest.requests]

    @property
    def done(self) -> bool:
        """Whether all tokens were read."""
        return self._state is not None and self._read == self._ids_NT.shape[1]

    def read(self, most: int | None) -> int:
        """Read up to so many tokens (None: all), but at least one of each prompt. Returns the number of tokens."""
        rows, length = self._ids_NT.shape
        count = length if most is None else max(1, most // rows)
        part_NT = self._ids_NT[:, self._read : self._read + count]
        if self._state is None:
            self._logp_NV, self._state = self._model.begin_with(part_NT)
        else:
            self._logp_NV, self._state = advance(self._model, part_NT.to(self._logp_NV.device), self._state)
        self._read += part_NT.shape[1]
        return max(1, part_NT.numel())

    def following(self) -> list[Prefill]:
        """Return what is to be read after this shared beginning, each with a copy of its state."""
        assert self._state is not None, "the beginning was read"
        for rest in self._rest:
            rows_N = torch.zeros(len(rest._ids_NT), dtype=torch.long, device=self._logp_NV.device)
            rest._state, rest._logp_NV = self._state.select(rows_N), self._logp_NV[rows_N]
        return [rest for rest in self._rest if rest.requests]

    def results(self) -> list[Ready]:
        """Return the requests that go on from here: none from a shared beginning, nor if all were cancelled."""
        assert self._state is not None, "the prompts were read"
        pairs = [
            (row, request) for row, each in enumerate(self._requests) for request in each if request.finish is None
        ]
        if not pairs:
            return []
        rows, requests = [row for row, _ in pairs], [request for _, request in pairs]
        if rows == list(range(len(self._ids_NT))):
            return [Ready(requests, self._logp_NV, self._state)]
        rows_N = torch.tensor(rows, device=self._logp_NV.device)
        return [Ready(requests, self._logp_NV[rows_N], self._state.select(rows_N))]


def prefills(model: LanguageModel, admitted: Sequence[Request]) -> list[Prefill]:
    """Return how the prompts of these requests are read."""
    found = []
    by_model: dict[int, list[Request]] = {}
    for request in admitted:
        by_model.setdefault(id(request.model or model), []).append(request)
    for requests in by_model.values():
        first = requests[0].model or model
        by_prompt: dict[Ids, list[Request]] = {}
        for request in requests:
            seen = first.policy.resume(len(request.prompt_ids))  # what stands before it changes nothing any more
            by_prompt.setdefault(tuple(request.prompt_ids[seen:]), []).append(request)
        shared = _shared(list(by_prompt))
        rest = _by_length(first, by_prompt, shared)
        if shared:
            beginning = Prefill(first, [next(iter(by_prompt))[:shared]], [])
            beginning._rest = rest
            rest = [beginning]
        found += rest
    return found


def _shared(prompts: Sequence[Ids]) -> int:
    """The number of tokens that all of several prompts begin with, 0 if it is not worth a call; each has more than that."""
    least, most = min(prompts), max(prompts)  # in lexical order, so all others lie between these
    shortest = min(map(len, prompts)) - 1
    same = next((i for i, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), min(len(least), len(most)))
    shared = min(same, shortest)
    return shared if len(prompts) > 1 and shared >= LEAST_SHARED else 0


def _by_length(model: LanguageModel, by_prompt: dict[Ids, list[Request]], shared: int) -> list[Prefill]:
    ordered = sorted(by_prompt, key=len)
    groups = [list(group) for _, group in groupby(ordered, key=len)]
    return [Prefill(model, [p[shared:] for p in group], [by_prompt[p] for p in group]) for group in groups]
