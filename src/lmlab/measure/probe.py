"""A sample of text, read in every way the interface allows: at once, in one chunk, in many, token by token.

Shapes: B rows, T tokens, V vocabulary, P places (a place p is where token p is predicted from the tokens before it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from lmlab.measure.score import device_of, largest_difference, score_rows

if TYPE_CHECKING:
    from lmlab.interface import ContextPolicy, LanguageModel, State
    from lmlab.measure.score import Scored
    from lmlab.text.tokenizers import Tokenizer

ROWS, ROW_TOKENS = 3, 129  # the short rows, on which everything is tried
LONG_TOKENS = 4096  # at most in the long row, which reaches over the edges of the model's windows where that suffices
LAST_BIT = 2.0**-23  # relative size of the last bit of a float32
SAME = 1e-4  # nats by which a change of the weights in the last bit may move a score that is to be looked at
FEWEST_TOKENS = 16  # looked at in any case
DEEP_PLACES = 4  # places further inside the text where the recorded score is compared, one row each
DEEP_TOKENS = {True: 1 << 14, False: 1 << 11}  # how deep, for models of bounded and of unbounded history


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """Rows of equal length, and what `score` says of them."""

    starts_B: np.ndarray  # where the rows start in the stream
    tokens_BT: np.ndarray
    nats_BT: np.ndarray
    places_P: list[int]  # where begin and advance are asked
    cuts: list[int]  # where another future is tried
    chaotic: bool  # whether the rows were cut off where the model begins to amplify rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe:
    """What the samples showed."""

    samples: list[Sample]
    distributions: int  # over the full vocabulary that were looked at
    lowest_sum: float  # of the probabilities of one of them
    highest_sum: float
    highest_logp: float
    score_difference: float  # between `score` and the distributions, nats
    recorded_places: int
    recorded_difference: float  # between the scores in the total and the distributions
    chunk_difference: float  # between distributions after one chunk and after many, over the vocabulary, nats
    chaos_after: int | None  # tokens after which the model amplifies rounding, so that no further ones were looked at


def take_probe(model: LanguageModel, tokenizer: Tokenizer, scored: Scored, seed: int) -> Probe:
    """Draw the samples, and read them."""
    generator = np.random.Generator(np.random.PCG64(seed))
    policy = model.policy
    samples = [_sample(model, scored, ROWS, ROW_TOKENS, policy, generator)]
    if policy.window is not None and policy.stride is not None:
        reach = min(policy.window + policy.stride + 2, LONG_TOKENS)
        if reach > ROW_TOKENS and samples[0].tokens_BT.shape[1] == ROW_TOKENS:
            samples.append(_sample(model, scored, 1, reach, policy, generator))
    chaos_after = min((sample.tokens_BT.shape[1] for sample in samples if sample.chaotic), default=None)
    walks = [_Walk(model, sample.tokens_BT) for sample in samples]
    target_BP = [walk.through(sample.places_P) for walk, sample in zip(walks, samples, strict=True)]
    recorded = [
        _recorded(tokenizer, scored, sample, targets) for sample, targets in zip(samples, target_BP, strict=True)
    ]
    depth = DEEP_TOKENS[policy.window is not None] if chaos_after is None else chaos_after
    recorded.append(_recorded_deep(model, tokenizer, scored, depth, generator))
    return Probe(
        samples=samples,
        distributions=sum(targets.size for targets in target_BP),
        lowest_sum=min(walk.lowest_sum for walk in walks),
        highest_sum=max(walk.highest_sum for walk in walks),
        highest_logp=max(walk.highest_logp for walk in walks),
        score_difference=max(
            largest_difference(sample.nats_BT[:, sample.places_P], targets)
            for sample, targets in zip(samples, target_BP, strict=True)
        ),
        recorded_places=sum(places for places, _ in recorded),
        recorded_difference=max(difference for _, difference in recorded),
        chunk_difference=max(walk.chunk_difference for walk in walks),
        chaos_after=chaos_after,
    )


def _sample(
    model: LanguageModel, scored: Scored, rows: int, length: int, policy: ContextPolicy, generator: np.random.Generator
) -> Sample:
    """Rows from the beginnings of documents: the longest, then others that are long enough, then from anywhere."""
    starts, lengths = scored.stream.starts[:-1], np.diff(scored.stream.starts)
    longest = int(np.argmax(lengths))
    length = min(length, int(lengths[longest]))
    others = np.flatnonzero(lengths >= length)
    others = generator.permutation(others[others != longest])[: rows - 1]
    anywhere = generator.integers(scored.tokens - length + 1, size=rows - 1 - len(others))
    starts_B = np.concatenate([starts[[longest, *others]], anywhere]).astype(np.int64)
    tokens_BT = np.stack([scored.stream.ids[s : s + length] for s in starts_B]).astype(np.int64)
    nats_BT = score_rows(model, tokens_BT)
    same = _same_tokens(model, tokens_BT, nats_BT)
    places_P, cuts = _places(policy, same)
    return Sample(
        starts_B=starts_B,
        tokens_BT=tokens_BT[:, :same],
        nats_BT=nats_BT[:, :same],
        places_P=places_P,
        cuts=cuts,
        chaotic=same < length,
    )


def _same_tokens(model: LanguageModel, tokens_BT: np.ndarray, nats_BT: np.ndarray) -> int:
    """How many tokens of every row cost the same when the weights change in their last bit.

    A recurrent network can be chaotic: rounding then grows from token to token until single scores mean nothing, though
    each is a probability all the same. Checks that compare two ways to compute a score must stop before that.
    """
    if not isinstance(model, nn.Module):
        return tokens_BT.shape[1]
    kept = [parameter.detach().clone() for parameter in model.parameters()]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        try:
            for parameter in model.parameters():
                bits = torch.randint(-1, 2, parameter.shape, generator=generator)
                parameter.mul_(1.0 + LAST_BIT * bits.to(parameter))
            again_BT = score_rows(model, tokens_BT)
        finally:
            for parameter, value in zip(model.parameters(), kept, strict=True):
                parameter.copy_(value)
    differs_T = [largest_difference(a, b) > SAME for a, b in zip(nats_BT.T, again_BT.T, strict=True)]
    first = differs_T.index(True) if True in differs_T else len(differs_T)
    return min(max(first, FEWEST_TOKENS), len(differs_T))


def _places(policy: ContextPolicy, length: int) -> tuple[list[int], list[int]]:
    """Where to ask and where to cut: a short row at the beginning and all over, every row at the edges of windows."""
    places, cuts = {0, length - 1}, {length - 1}
    if length <= ROW_TOKENS:
        places |= {1, 2, 3, 4, 5, 8, 13, length // 4, length // 2, 3 * length // 4, length - 2}
        cuts |= {1, 2, length // 3, length // 2, length - 2}
    if policy.window is not None and policy.stride is not None:
        edges = (policy.window, policy.window + policy.stride)
        places |= {edge + step for edge in edges for step in (-1, 0, 1)}
        cuts |= {policy.window}
    return sorted(p for p in places if 0 <= p < length), sorted(c for c in cuts if 0 < c < length)


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

    def through(self, places_P: list[int]) -> np.ndarray:
        """Nats of the tokens at these places, B×P."""
        return np.stack([self._to(place) for place in places_P], axis=1)

    @torch.no_grad()
    def _to(self, place: int) -> np.ndarray:
        """Nats of the tokens at `place`, which lies beyond the last one; the distribution there is looked at."""
        logp_BV = _after(self.model, self.tokens_BT[:, :place]).float().cpu()  # not every accelerator has float64
        chunked_BV = self._in_chunks(place).float().cpu()
        sums_B = logp_BV.double().exp().sum(dim=1).nan_to_num(nan=torch.inf)  # what is no number sums to nothing good
        self.lowest_sum = min(self.lowest_sum, float(sums_B.min()))
        self.highest_sum = max(self.highest_sum, float(sums_B.max()))
        self.highest_logp = max(self.highest_logp, float(logp_BV.max()))
        difference = largest_difference(logp_BV.numpy(), chunked_BV.numpy())
        self.chunk_difference = max(self.chunk_difference, difference)
        return -logp_BV.gather(1, self.tokens_BT[:, place : place + 1].cpu())[:, 0].numpy()

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


def _recorded(tokenizer: Tokenizer, scored: Scored, sample: Sample, target_BP: np.ndarray) -> tuple[int, float]:
    """Compare the record with begin/advance in the rows that begin where a document begins: (places, difference)."""
    begins = np.flatnonzero(np.isin(sample.starts_B, scored.stream.starts))
    at_BP = sample.starts_B[begins, None] + np.array(sample.places_P)
    tokens_BP = sample.tokens_BT[begins][:, sample.places_P]
    recorded_BP = scored.nats_per_token[at_BP]
    return at_BP.size, _recorded_difference(tokenizer, recorded_BP, target_BP[begins], tokens_BP)


@torch.no_grad()
def _recorded_deep(
    model: LanguageModel, tokenizer: Tokenizer, scored: Scored, depth: int, generator: np.random.Generator
) -> tuple[int, float]:
    """Compare the record with begin/advance at random places, at most `depth` tokens after a document's beginning."""
    starts = scored.stream.starts
    differences = []
    for place in generator.integers(scored.tokens, size=DEEP_PLACES):
        first = int(starts[np.searchsorted(starts, place, side="right") - 1])
        place = min(int(place), first + depth)
        tokens_T = scored.stream.ids[first : place + 1].astype(np.int64)
        logp_V = _after(model, torch.from_numpy(tokens_T[None, :-1]).to(device_of(model)))[0].cpu().numpy()
        recorded = scored.nats_per_token[place : place + 1]
        differences.append(_recorded_difference(tokenizer, recorded, -logp_V[tokens_T[-1:]], tokens_T[-1:]))
    return len(differences), max(differences)


def _recorded_difference(tokenizer: Tokenizer, recorded: np.ndarray, expected: np.ndarray, tokens: np.ndarray) -> float:
    """Between the nats in the total and those of begin/advance. An unknown symbol's record also holds a spelling."""
    unknown = tokens == (-1 if tokenizer.unknown_id is None else tokenizer.unknown_id)
    return largest_difference(np.where(unknown, np.minimum(recorded, expected), recorded), expected)
