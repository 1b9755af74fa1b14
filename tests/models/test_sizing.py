"""How models choose their size: within the budget, within the text, and never below the smallest."""

from __future__ import annotations

from lmlab.config import Budget, TextFacts
from lmlab.models.sizing import Appetite, tokens_in_budget

SIZES = [10, 100, 1000]
FACTS = TextFacts(train_tokens=100_000, train_bytes=100_000, vocab_size=10, flops_per_second=6e6)


def decide(facts: TextFacts, budget: Budget) -> tuple[int, float]:
    appetite = Appetite(batch_tokens=100, tokens_per_weight=1.0, weights_per_token=1.0)
    return appetite.size_and_dropout(
        SIZES, lambda width: width * width, lambda width: facts.vocab_size * width, facts, budget
    )


def choose(facts: TextFacts, budget: Budget) -> int:
    return decide(facts, budget)[0]


def test_tokens_are_counted_or_follow_from_time_and_weights() -> None:
    assert tokens_in_budget(Budget(tokens=5), FACTS, 1000, 100) == 5
    assert tokens_in_budget(Budget(steps=5), FACTS, 1000, 100) == 500
    assert tokens_in_budget(Budget(seconds=5), FACTS, 1000, 100) == 5 * 6e6 / (6 * 1000)


def test_a_larger_budget_affords_a_larger_model() -> None:
    widths = [choose(FACTS, Budget(tokens=n)) for n in (1, 199, 11_000, 2_000_000)]
    assert widths == [10, 10, 100, 100]  # a width of 1000 has more weights than the text has tokens
    assert choose(TextFacts(train_tokens=10**7, train_bytes=10**7, vocab_size=10), Budget(tokens=2_000_000)) == 1000


def test_a_large_vocabulary_leaves_less_for_the_width() -> None:
    few = TextFacts(train_tokens=10**7, train_bytes=10**7, vocab_size=10)
    many = TextFacts(train_tokens=10**7, train_bytes=10**7, vocab_size=10_000)
    assert choose(few, Budget(tokens=20_000)) == 100
    assert choose(many, Budget(tokens=20_000)) == 10


def test_dropout_grows_with_the_passes_over_the_text() -> None:
    dropouts = [decide(FACTS, Budget(tokens=n * 100_000))[1] for n in (1, 4, 8, 40)]
    assert dropouts[0] == dropouts[1] == 0
    assert dropouts == sorted(dropouts)
    assert dropouts[-1] > dropouts[1]
