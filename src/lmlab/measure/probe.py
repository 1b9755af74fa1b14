"""A sample of text, read in every way the interface allows: at once, in one chunk, in many, token by token.

Shapes: B rows, T tokens, V vocabulary, P places (a place p is where token p is predicted from the tokens before it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lmlab.measure.score import ContextPolicy, device_of, largest_difference, score_rows

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel, State
    from lmlab.measure.score import Scored

ROWS = 3
LEAST_TOKENS, MOST_TOKENS = 129, 4096  # of a row; long enough for three windows of the model where that is not too long
DEEP_PLACES = 4  # places further inside the text where the recorded score is compared, one row each
DEEP_TOKENS = {True: 1 << 14, False: 1 << 11}  # how deep, for models of bounded and of unbounded history


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe:
    """What the sample showed."""

    tokens_BT: np.ndarray
    nats_BT: np.ndarray  # `score` of the sample
    places_P: list[int]
    lowest_sum: float  # of the probabilities of the full vocabulary, over all places and rows
    highest_sum: float
    highest_logp: float
    score_difference: float  # between `score` and the distribution of begin/advance, nats
    recorded_places: int
    recorded_difference: float  # between the scores in the total and that distribution
    chunk_difference: float  # between distributions after one chunk and after many, over the vocabulary, nats

    @property
    def distributions(self) -> int:
        """How many distributions were summed."""
        return len(self.places_P) * len(self.tokens_BT)


def take_probe(model: LanguageModel, scored: Scored, seed: int) -> Probe:
    """Draw the sample, and read it."""
    generator = np.random.Generator(np.random.PCG64(seed))
    policy = ContextPolicy.of(model)
    starts_B, length = _sample_rows(scored, policy, generator)
    tokens_BT = np.stack([scored.stream.ids[s : s + length] for s in starts_B]).astype(np.int64)
    nats_BT = score_rows(model, tokens_BT)
    walk = _Walk(model, tokens_BT)
    places_P = places(policy, length)
    target_BP = np.stack([walk.to(place) for place in places_P], axis=1)
    begins_B = np.isin(starts_B, scored.stream.starts)
    recorded = [scored.nats_per_token[start : start + length][places_P] for start in starts_B[begins_B]]
    differences = [
        _recorded_difference(model, nats_P, target_P, tokens_T[places_P])
        for nats_P, target_P, tokens_T in zip(recorded, target_BP[begins_B], tokens_BT[begins_B], strict=True)
    ]
    differences += _deep_differences(model, scored, policy, generator)
    return Probe(
        tokens_BT=tokens_BT,
        nats_BT=nats_BT,
        places_P=places_P,
        lowest_sum=walk.lowest_sum,
        highest_sum=walk.highest_sum,
        highest_logp=walk.highest_logp,
        score_difference=largest_difference(nats_BT[:, places_P], target_BP),
        recorded_places=sum(map(len, recorded)) + DEEP_PLACES,
        recorded_difference=max(differences, default=0.0),
        chunk_difference=walk.chunk_difference,
    )


def places(policy: ContextPolicy, length: int) -> list[int]:
    """Where to look in a row of `length` tokens: the beginning, the edges of windows, and spread over the rest."""
    chosen = {0, 1, 2, 3, 4, 5, 8, 13, length // 4, length // 2, 3 * length // 4, length - 2, length - 1}
    if policy.window is not None and policy.stride is not None:
        edges = (policy.window, policy.window + policy.stride, policy.window + 2 * policy.stride)
        chosen |= {edge + step for edge in edges for step in (-1, 0, 1)}
    return sorted(place for place in chosen if 0 <= place < length)


def _sample_rows(scored: Scored, policy: ContextPolicy, generator: np.random.Generator) -> tuple[np.ndarray, int]:
    """Where the rows of the sample start in the stream, and their length: the longest document's beginning first,
    then beginnings of others that are long enough, then any places."""
    starts, lengths = scored.stream.starts[:-1], np.diff(scored.stream.starts)
    wanted = LEAST_TOKENS
    if policy.window is not None and policy.stride is not None:
        wanted = min(max(wanted, policy.window + 2 * policy.stride + 2), MOST_TOKENS)
    longest = int(np.argmax(lengths))
    length = min(wanted, int(lengths[longest]))
    others = np.flatnonzero(lengths >= length)
    others = generator.permutation(others[others != longest])[: ROWS - 1]
    anywhere = generator.integers(scored.tokens - length + 1, size=ROWS - 1 - len(others))
    return np.concatenate([starts[[longest, *others]], anywhere]).astype(np.int64), length


class _Walk:
    """Goes through rows by begin and advance on two paths at once, and compares them."""

    def __init__(self, model: LanguageModel, tokens_BT: np.ndarray) -> None:
        self.model = model
        self.tokens_BT = torch.from_numpy(tokens_BT).to(device_of(model))
        self.place = self.legs = 0
        self.logp_BV: Tensor | None = None
        self.state: State | None = None
        self.lowest_sum, self.highest_sum = np.inf, -np.inf
        self.highest_logp, self.chunk_difference = -np.inf, 0.0

    @torch.no_grad()
    def to(self, place: int) -> np.ndarray:
        """Nats of the tokens at `place`, which lies beyond the last one; the distribution there is looked at."""
        logp_BV = _after(self.model, self.tokens_BT[:, :place])
        chunked_BV = self._in_chunks(place)
        sums_B = logp_BV.double().exp().sum(dim=1).nan_to_num(nan=torch.inf)  # what is no number sums to nothing good
        self.lowest_sum = min(self.lowest_sum, float(sums_B.min()))
        self.highest_sum = max(self.highest_sum, float(sums_B.max()))
        self.highest_logp = max(self.highest_logp, float(logp_BV.max()))
        difference = largest_difference(logp_BV.cpu().numpy(), chunked_BV.cpu().numpy())
        self.chunk_difference = max(self.chunk_difference, difference)
        return -logp_BV.gather(1, self.tokens_BT[:, place : place + 1])[:, 0].float().cpu().numpy()

    def _in_chunks(self, place: int) -> Tensor:
        """The distribution at `place` by the path of many chunks."""
        if self.logp_BV is None or self.state is None:
            self.logp_BV, self.state = self.model.begin(len(self.tokens_BT))
        for size in self._chunk_sizes(place - self.place):
            chunk_BT = self.tokens_BT[:, self.place : self.place + size]
            self.logp_BV, self.state = self.model.advance(chunk_BT, self.state)
            self.place += size
        return self.logp_BV

    def _chunk_sizes(self, tokens: int) -> list[int]:
        """Single tokens, and chunks with a single token now before and now behind: either may set right what is wrong."""
        self.legs += 1
        if tokens < 2:
            return [1] * tokens
        return [1, tokens - 1] if self.legs % 2 else [tokens - 1, 1]


def _after(model: LanguageModel, tokens_BT: Tensor) -> Tensor:
    """log-probabilities after these tokens, read from the beginning in one chunk."""
    logp_BV, state = model.begin(len(tokens_BT))
    return model.advance(tokens_BT, state)[0] if tokens_BT.shape[1] else logp_BV


def _recorded_difference(model: LanguageModel, recorded: np.ndarray, expected: np.ndarray, tokens: np.ndarray) -> float:
    """Between the nats in the total and those of begin/advance. An unknown symbol's record also holds a spelling."""
    unknown = tokens == (-1 if model.tokenizer.unknown_id is None else model.tokenizer.unknown_id)
    return largest_difference(np.where(unknown, np.minimum(recorded, expected), recorded), expected)


@torch.no_grad()
def _deep_differences(
    model: LanguageModel, scored: Scored, policy: ContextPolicy, generator: np.random.Generator
) -> list[float]:
    """Compare the record with begin/advance at random places of the text, each read from its document's beginning."""
    starts = scored.stream.starts
    differences = []
    for place in generator.integers(scored.tokens, size=DEEP_PLACES):
        first = int(starts[np.searchsorted(starts, place, side="right") - 1])
        place = min(int(place), first + DEEP_TOKENS[policy.window is not None])
        tokens_T = scored.stream.ids[first : place + 1].astype(np.int64)
        logp_V = _after(model, torch.from_numpy(tokens_T[None, :-1]).to(device_of(model)))[0].cpu().numpy()
        expected = -logp_V[tokens_T[-1:]]
        recorded = scored.nats_per_token[place : place + 1]
        differences.append(_recorded_difference(model, recorded, expected, tokens_T[-1:]))
    return differences
