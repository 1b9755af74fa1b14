"""Copies of a model that have seen nothing, and what they say along a route, by begin and advance alone.

A walk shows a copy the tokens before a place, never the token at it or a later one. What it answers there is a probability,
whatever the model does inside: it cannot know what comes.

Shapes: B rows, T tokens, A asks, G of them together, P places, V vocabulary.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, final

import numpy as np
import torch
from torch import nn

from lmlab.measure.route import Route, beginnings, middle
from lmlab.measure.score import device_of, evaluating

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel
    from lmlab.text.stream import TokenStream

Load = Callable[[], "LanguageModel"]
Watch = Callable[[int, int], None]  # (tokens walked, tokens in all)

LAST_BIT = 2.0**-23  # relative size of the last bit of a float32
HEARD = 1 << 20  # numbers, at most, that are kept until they are looked at together


class CopyMaker(Protocol):
    """Makes copies of a model that were shown nothing."""

    way: str  # how, in words
    apart: str | None  # how copies were kept apart from the text and from who is scored, in words; None: they were not

    def new(self) -> LanguageModel:
        """A copy."""

    def shaken(self) -> LanguageModel | None:
        """A copy whose weights differ in their last bit; None for a model that has no weights to shake."""


@final
class Copies:
    """Makes copies of a model as it is now: whatever the model is shown later, they have not seen it.

    load: brings the model from disk; without it, copies are made from what the model would save.
    """

    apart: str | None = None

    def __init__(self, model: LanguageModel, load: Load | None = None) -> None:
        self.device = device_of(model)
        self.way = "from disk" if load is not None else "from what it saves"
        source = load() if load is not None else model
        self._make, self._settings = source.from_tensors, (source.config, source.vocab_size)
        tensors = {name: tensor.detach() for name, tensor in source.tensors().items()}
        # what came from disk is nobody else's
        self._tensors = tensors if load is not None else {name: tensor.clone() for name, tensor in tensors.items()}
        self._whole: LanguageModel | None = None
        try:
            self._ready = [self._made()]
        except Exception:  # it does not keep the promise of from_tensors: then all that it is at this moment is copied
            self.way = "in memory, as it cannot be brought back from what it saves"
            self._whole = copy.deepcopy(source)
            self._ready = []

    def new(self) -> LanguageModel:
        """A copy that nothing was shown."""
        return self._ready.pop() if self._ready else self._made()

    def _made(self) -> LanguageModel:
        if self._whole is not None:
            return copy.deepcopy(self._whole)
        made = self._make(*self._settings, self._tensors)
        return made.to(self.device).eval() if isinstance(made, nn.Module) else made

    def shaken(self) -> LanguageModel | None:
        """A copy whose weights differ in their last bit; None for a model that has no weights to shake."""
        made = self.new()
        if not isinstance(made, nn.Module):
            return None
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in made.parameters():
                bits = torch.randint(-1, 2, parameter.shape, generator=generator)
                parameter.mul_(1.0 + LAST_BIT * bits.to(parameter))
        return made


@dataclass(frozen=True, kw_only=True, eq=False)
class Walked:
    """What a copy said along a route, at the places that count."""

    route: Route
    nats_P: np.ndarray  # -log p of the token that is there
    sums_P: np.ndarray  # of the probabilities of all tokens; inf where one is not a number
    highest_P: np.ndarray  # log-probability


def walk(model: LanguageModel, route: Route, watch: Watch | None = None) -> Walked:
    """Take a copy along a route: every chunk that it reads ends where it is asked. watch: told how far it is."""
    tokens_BT = torch.from_numpy(route.tokens_BT).to(device_of(model))
    said = []
    place, last = 0, int(route.asks_A[-1])
    with evaluating(model), torch.no_grad():
        logp_BV, state = model.begin(len(tokens_BT))
        at_once = max(1, HEARD // logp_BV.numel())
        if watch is not None:
            watch(0, last)
        for first in range(0, len(route.asks_A), at_once):
            asks = route.asks_A[first : first + at_once].tolist()
            heard_GBV = torch.empty(len(asks), *logp_BV.shape)
            for heard_BV, ask in zip(heard_GBV, asks, strict=True):
                if ask > place:
                    logp_BV, state = model.advance(_by_itself(tokens_BT, place, ask), state)
                    place = ask
                    if watch is not None:
                        watch(place, last)
                heard_BV.copy_(logp_BV)  # at once: what a model gave it may write over when it has read the next token
            said.append(_looked_at(heard_GBV, torch.from_numpy(route.tokens_BT[:, asks].T)))
    nats_AB, sums_AB, highest_AB = (np.concatenate(parts) for parts in zip(*said, strict=True))
    counts_BA = route.counts_BA
    return Walked(
        route=route, nats_P=nats_AB.T[counts_BA], sums_P=sums_AB.T[counts_BA], highest_P=highest_AB.T[counts_BA]
    )


def _by_itself(tokens_BT: torch.Tensor, start: int, stop: int) -> torch.Tensor:
    """A chunk in memory of its own: behind a slice of the rows lies what comes next, to be read or written over."""
    return tokens_BT[:, start:stop].clone(memory_format=torch.contiguous_format)


def _looked_at(logp_GBV: torch.Tensor, tokens_GB: torch.Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nats of these tokens, sums of all probabilities, and highest log-probabilities, G×B."""
    return (
        -logp_GBV.gather(2, tokens_GB[..., None])[..., 0].numpy(),
        logp_GBV.double().exp_().sum(dim=2).nan_to_num(nan=torch.inf).numpy(),
        logp_GBV.amax(dim=2).numpy(),
    )


def after_chunks(model: LanguageModel, tokens_BT: np.ndarray, ends: Sequence[int]) -> np.ndarray:
    """Log-probabilities after these tokens, read in chunks that end there, B×V."""
    rows_BT = torch.from_numpy(tokens_BT).to(device_of(model))
    with evaluating(model), torch.no_grad():
        logp_BV, state = model.begin(len(rows_BT))
        for start, end in pairwise([0, *ends]):
            logp_BV, state = model.advance(_by_itself(rows_BT, start, end), state)
    return logp_BV.float().cpu().numpy().copy()  # a copy: a model may answer in the same memory every time


@dataclass(frozen=True, kw_only=True, eq=False)
class Walks:
    """The walks through a text: from beginnings of documents, and where there are any, in the middle of long ones."""

    copies: CopyMaker
    unbounded: bool  # the model's history is
    beginnings: Walked
    middle: Walked | None
    seconds: float

    @property
    def all(self) -> list[Walked]:
        """Both."""
        return [self.beginnings] if self.middle is None else [self.beginnings, self.middle]


def walk_through(copies: CopyMaker, stream: TokenStream, seed: int, watch: Watch | None = None) -> Walks:
    """Draw the routes by `seed` and walk them, each with a copy of its own."""
    started = time.perf_counter()
    generator = np.random.Generator(np.random.PCG64(seed))
    model = copies.new()
    first = beginnings(stream, model.policy, generator)
    then = middle(stream, model.policy, generator)
    sizes = [0 if route is None else int(route.asks_A[-1]) for route in (first, then)]
    return Walks(
        copies=copies,
        unbounded=model.policy.window is None,
        beginnings=walk(model, first, _of_both(watch, 0, sizes)),
        middle=None if then is None else walk(copies.new(), then, _of_both(watch, sizes[0], sizes)),
        seconds=time.perf_counter() - started,
    )


def _of_both(watch: Watch | None, before: int, sizes: Sequence[int]) -> Watch | None:
    """One of two walks, after so many tokens of the other, told as a part of both."""
    return None if watch is None else lambda done, _: watch(before + done, sum(sizes))
