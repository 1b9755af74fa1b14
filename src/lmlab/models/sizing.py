"""How models choose their own size from the text and the budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lmlab.config import Budget, TextFacts

S = TypeVar("S")

DROPOUTS = [(5.0, 0.0), (15.0, 0.1), (30.0, 0.2), (math.inf, 0.3)]  # (fewer passes over the text than this, dropout)


def tokens_in_budget(budget: Budget, facts: TextFacts, weights: float, batch_tokens: int) -> float:
    """How many tokens the budget trains on: forward and backward cost about six operations per weight and token."""
    if budget.tokens is not None:
        return budget.tokens
    if budget.steps is not None:
        return budget.steps * batch_tokens
    assert budget.seconds is not None
    return budget.seconds * facts.flops_per_second / (6 * weights)


@dataclass(frozen=True)
class Appetite:
    """What a kind of model wants before it grows. Found on grids over character, BPE and word texts."""

    batch_tokens: int  # per step
    tokens_per_weight: float  # that the budget must show each weight
    weights_per_token: float  # of its body that the text can fill

    def size_and_dropout(
        self, sizes: Sequence[S], body: Callable[[S], int], head: Callable[[S], int], facts: TextFacts, budget: Budget
    ) -> tuple[S, float]:
        """The last of `sizes` (small to large) that the budget can feed and the text can fill; the first if none can.

        body and head: weights used per token inside the model and in its output layer. Dropout: none while most of the
        text is new, more the oftener the budget reads it again.
        """
        best = sizes[0]
        for size in sizes:
            weights = body(size) + head(size)
            fed = tokens_in_budget(budget, facts, weights, self.batch_tokens) >= self.tokens_per_weight * weights
            if fed and body(size) <= self.weights_per_token * facts.train_tokens:
                best = size
        tokens = tokens_in_budget(budget, facts, body(best) + head(best), self.batch_tokens)
        return best, dropout_after(tokens / max(1, facts.train_tokens))


def dropout_after(passes: float) -> float:
    """By how often the text is read."""
    return next(dropout for most, dropout in DROPOUTS if passes < most)
