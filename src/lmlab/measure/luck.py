"""Luck in training: how far a learned model's number would have come out otherwise with another seed.

Two seeds of one kind are two different models, and a long text tells them apart. From one seed nobody knows by how much,
so with one seed a comparison speaks of these trained models and not of their kinds, and says so. With several, the variance
between seeds is measured, relative to the bits per byte and pooled over the kinds, because few seeds say little of one
kind, and it enters every difference. Counted models have no seed, and no luck.

Shapes: K models, P pairs, R draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Luck:
    """Standard deviation of each model's number (a mean over its seeds) that luck in training leaves, in bits per byte."""

    errors: tuple[float, ...]  # one a model, 0 for counted ones; empty: not known, and not allowed for
    freedom: int  # degrees of freedom behind them, all models pooled; 0: not known
    relative: float = 0.0  # standard deviation of one run as a share of its bits per byte

    @property
    def known(self) -> bool:
        """Whether luck was measured, so that a ranking speaks of kinds."""
        return self.freedom > 0

    @classmethod
    def measured(cls, bits_of_seeds: Sequence[Sequence[float]]) -> Luck:
        """From the bits per byte of each model's runs, one a seed; a counted model has none, or one."""
        runs = [np.array(bits, dtype=np.float64) for bits in bits_of_seeds]
        shares = [bits / bits.mean() - 1.0 for bits in runs if len(bits) > 1 and np.isfinite(bits).all()]
        freedom = sum(len(share) - 1 for share in shares)
        if not freedom:
            return NO_LUCK
        relative = math.sqrt(sum(float((share**2).sum()) for share in shares) / freedom)
        errors = [relative * float(bits.mean()) / math.sqrt(len(bits)) if len(bits) > 1 else 0.0 for bits in runs]
        return cls(errors=tuple(e if math.isfinite(e) else 0.0 for e in errors), freedom=freedom, relative=relative)

    def of(self, models: Sequence[int]) -> Luck:
        """The luck of some of the models."""
        errors = tuple(self.errors[i] for i in models) if self.errors else ()
        return Luck(errors=errors, freedom=self.freedom, relative=self.relative)

    def variance(self, first_P: np.ndarray, second_P: np.ndarray) -> np.ndarray:
        """Variance that luck adds to the difference of each pair."""
        if not self.known:
            return np.zeros(len(first_P))
        squares = np.array(self.errors) ** 2
        return squares[first_P] + squares[second_P]

    def draws(self, R: int, K: int, generator: np.random.Generator) -> np.ndarray:
        """Luck of each model in each draw (R×K), in bits per byte."""
        return generator.standard_normal((R, K)) * np.array(self.errors)

    def variance_draws(self, R: int, generator: np.random.Generator) -> np.ndarray:
        """By what factor the variance would have been found wrong, in each draw: it was estimated too."""
        return generator.chisquare(self.freedom, R) / self.freedom

    @property
    def sentence(self) -> str:
        """What the number of seeds can tell."""
        if not self.known:
            return (
                "Each model was trained once. Differences are those of these trained models: what another seed would have"
                " made of a learned one is not known, so a small difference says nothing of the kinds of model."
            )
        return (
            f"Learned models were trained with several seeds, and each number is a mean over them. Between seeds of one kind"
            f" it changes by {100 * self.relative:.2g}% (standard deviation, measured here), and every difference allows for"
            " that, so it speaks of the kinds of model."
        )


NO_LUCK = Luck(errors=(), freedom=0)
