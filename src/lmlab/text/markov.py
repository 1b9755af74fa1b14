"""A source whose truth is known: a Markov chain over letters, with its entropy rate computed exactly.

For order k and an alphabet of A letters, the next letter depends on the last k. Each of the A^k distributions is drawn
once, uniformly over all distributions, from the seed; every letter can follow every context, so there is one stationary
distribution π, and the entropy rate is H = -Σ_c π(c) Σ_a p(a|c) log2 p(a|c) bits per letter (Cover & Thomas, 4.2).
The text begins in the stationary distribution. No model can do better than H on average.

Letters: S = A^k contexts, A outcomes.
"""

from __future__ import annotations

import string
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from lmlab.config import Mistake, make, parse_settings

SYMBOLS = string.ascii_lowercase + string.ascii_uppercase + string.digits
MOST_CONTEXTS = 1 << 20
BLOCK = 1 << 16


@dataclass(frozen=True, kw_only=True)
class MarkovSpec:
    """Which chain: letters of context, letters in the alphabet, letters of text, and the seed of all chance."""

    order: int = 2
    alphabet: int = 4
    length: int = 1_000_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.alphabet <= len(SYMBOLS):
            raise Mistake(
                f"markov needs an alphabet of 2 to {len(SYMBOLS)} letters; got {self.alphabet}",
                code="markov-alphabet-out-of-range",
            )
        if not self.order >= 0 or self.alphabet**self.order > MOST_CONTEXTS:
            raise Mistake(
                f"markov needs an order from 0 with at most {MOST_CONTEXTS} contexts; got {self.order}",
                code="markov-order-out-of-range",
            )
        if self.length < 1 or self.seed < 0:
            raise Mistake(
                "markov needs a length of at least 1 and a seed of at least 0", code="markov-length-out-of-range"
            )

    @classmethod
    def parse(cls, name: str) -> MarkovSpec:
        """Read "markov" or "markov:order=2,alphabet=4,length=1000000,seed=0"; what is left out has its default."""
        settings = [setting for setting in name.partition(":")[2].split(",") if setting]
        return make(cls, parse_settings(cls, settings, "markov"), "markov")

    def __str__(self) -> str:
        return f"markov:order={self.order},alphabet={self.alphabet},length={self.length},seed={self.seed}"


def _uniforms(seed: int, stream: int) -> Iterator[np.ndarray]:
    """Blocks of numbers in [0, 1), made from raw bits: the same for every version of NumPy."""
    bits = np.random.PCG64(np.random.SeedSequence([seed, stream]))
    while True:
        yield (bits.random_raw(BLOCK) >> np.uint64(11)) * 2.0**-53


def transitions(spec: MarkovSpec) -> np.ndarray:
    """p(next letter | context), S×A; a context is the number its letters spell, the oldest one first."""
    size = spec.alphabet ** (spec.order + 1)
    blocks = islice(_uniforms(spec.seed, 0), -(-size // BLOCK))
    # Exponential weights, normalised, are uniform over all distributions (Dirichlet with all parameters 1).
    weights_SA = -np.log1p(-np.concatenate(list(blocks))[:size]).reshape(-1, spec.alphabet) + 1e-12
    return weights_SA / weights_SA.sum(axis=1, keepdims=True)


def stationary(p_SA: np.ndarray) -> np.ndarray:
    """The distribution over contexts that the chain keeps (S), by iterating until it stands still."""
    contexts, letters = p_SA.shape
    pi_S = np.full(contexts, 1.0 / contexts)
    for _ in range(100_000):
        # The context's oldest letter is forgotten and the new one added: sum the joint distribution over the oldest.
        after_S = (pi_S[:, None] * p_SA).reshape(letters, -1).sum(axis=0) if contexts > 1 else pi_S
        after_S /= after_S.sum()
        if np.abs(after_S - pi_S).sum() < 1e-15:
            break
        pi_S = after_S
    return pi_S


def markov_entropy(spec: MarkovSpec | str) -> float:
    """The exact entropy rate in bits per symbol, which is bits per byte: a symbol is one ASCII byte."""
    p_SA = transitions(MarkovSpec.parse(spec) if isinstance(spec, str) else spec)
    return float(-(stationary(p_SA) @ (p_SA * np.log2(p_SA)).sum(axis=1)))


def generate(spec: MarkovSpec) -> Iterator[bytes]:
    """The text of the chain, block by block."""
    p_SA = transitions(spec)
    contexts, letters = p_SA.shape
    below_SA = np.cumsum(p_SA, axis=1)[:, :-1].tolist()
    blocks = _uniforms(spec.seed, 1)
    context = bisect(np.cumsum(stationary(p_SA))[:-1].tolist(), float(next(blocks)[0]))
    first = [context // letters**i % letters for i in reversed(range(spec.order))]
    yield _spell(np.array(first[: spec.length], dtype=np.uint8))
    left = spec.length - len(first)
    while left > 0:
        drawn = []
        for u in next(blocks)[:left].tolist():
            letter = bisect(below_SA[context], u)
            drawn.append(letter)
            context = (context * letters + letter) % contexts
        yield _spell(np.array(drawn, dtype=np.uint8))
        left -= len(drawn)


def _spell(letters: np.ndarray) -> bytes:
    return np.frombuffer(SYMBOLS.encode(), dtype=np.uint8)[letters].tobytes()
