"""How one wall-clock budget is shared: count models take what they need, the rest goes to those that can use it."""

from __future__ import annotations

from collections.abc import Sequence

COUNTED = ("uniform", "bag", "ngram")

# Shares of the time that is left when a model's turn comes. Models that go on learning longer get more.
WEIGHTS = {"bigram": 0.5, "feedforward": 1.0, "attention": 0.7, "rnn": 0.8, "gru": 1.2, "lstm": 1.5}
WEIGHTS |= {"rnn-attention": 1.0, "gpt": 3.0}

MEASURING = 0.3  # part of a model's share that is kept for measuring and sampling
TEST_BYTES_PER_SECOND = 400  # of the budget: how much test text is measured
LEAST_TEST_BYTES = 20_000


def in_order(models: Sequence[str]) -> list[str]:
    """Count models first; then the neural ones, the one that can use most time last, so that it inherits what is left."""
    return sorted(models, key=lambda m: (m not in COUNTED, WEIGHTS.get(m, 0.0), m))


def training_seconds(model: str, waiting: Sequence[str], left_s: float) -> float:
    """Seconds of training for `model`, when the models `waiting` (itself included) share `left_s` seconds."""
    share = WEIGHTS.get(model, 1.0) / sum(WEIGHTS.get(m, 1.0) for m in waiting)
    return max(1.0, left_s * share * (1 - MEASURING))


def test_bytes(budget_s: float) -> int:
    """Bytes of test text to measure in a budget: measuring must not eat the time for learning."""
    return max(LEAST_TEST_BYTES, round(TEST_BYTES_PER_SECOND * budget_s))
