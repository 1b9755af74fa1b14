"""How one wall-clock budget is shared: count models take what they need, the rest goes to those that can use it."""

from __future__ import annotations

from collections.abc import Sequence

from lmlab.models.registry import Way, kind_of

# Shares of the time that is left when a model's turn comes. Models that go on learning longer get more.
WEIGHTS = {"bigram": 0.5, "feedforward": 1.0, "attention": 0.7, "rnn": 0.8, "gru": 1.2, "lstm": 1.5}
WEIGHTS |= {"rnn-attention": 1.0, "gpt": 3.0}

FINISHING_S, FINISHING_SHARE = 2.0, 0.05  # kept for ranking and drawing: so long, but not more than this of the budget
TEST_BYTES_PER_SECOND = 400  # of the budget: how much test text is measured
LEAST_TEST_BYTES = 20_000


def in_order(models: Sequence[str]) -> list[str]:
    """Count models first; then the neural ones, the one that can use most time last, so that it inherits what is left."""
    return sorted(models, key=lambda m: (kind_of(m).way is Way.LEARNS, WEIGHTS.get(m, 0.0), m))


def share_seconds(model: str, waiting: Sequence[str], left_s: float, budget_s: float) -> float:
    """Seconds for training and measuring `model`, when the models `waiting` (itself included) share `left_s` seconds."""
    share = WEIGHTS.get(model, 1.0) / sum(WEIGHTS.get(m, 1.0) for m in waiting)
    return (left_s - min(FINISHING_S, FINISHING_SHARE * budget_s)) * share


def training_seconds(share_s: float, measuring_s: float, seeds: int) -> float:
    """Seconds of training for each of `seeds` runs that share `share_s` seconds, when measuring one takes `measuring_s`.

    At least half the share goes to training, whatever measuring takes; and never less than a second.
    """
    return max(1.0, share_s / seeds - measuring_s, share_s / seeds / 2)


def test_bytes(budget_s: float) -> int:
    """Bytes of test text to measure in a budget: measuring must not eat the time for learning."""
    return max(LEAST_TEST_BYTES, round(TEST_BYTES_PER_SECOND * budget_s))
