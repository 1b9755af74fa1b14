"""How models choose their size: within the budget, within the text, and never below the smallest."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from lmlab.config import Budget, TextFacts
from lmlab.formulas import HEAD, Part
from lmlab.models.sizing import Appetite, tokens_in_budget, with_settings

SIZES = [10, 100, 1000]
APPETITE = Appetite(batch_tokens=100, tokens_per_weight=1.0, weights_per_token=1.0)


@dataclass(frozen=True, kw_only=True)
class Config:
    width: int | None = None
    layers: int | None = None
    dropout: float | None = None


def facts(train_tokens: int = 100_000, vocab_size: int = 10, speed: float = 1000.0) -> TextFacts:
    return TextFacts(
        train_tokens=train_tokens,
        train_bytes=train_tokens,
        vocab_size=vocab_size,
        tokens_per_second=lambda config: speed * 100 / config.width,
    )


def choose(facts: TextFacts, budget: Budget) -> int:
    return APPETITE.size(
        SIZES,
        lambda width: Config(width=width),
        lambda config, vocab: [
            Part("layer", multiplied=config.width**2),
            Part(HEAD, multiplied=vocab * config.width),
        ],
        facts,
        budget,
    )


def test_tokens_are_counted_or_follow_from_the_speed_that_was_timed() -> None:
    config = Config(width=50)
    assert tokens_in_budget(Budget(tokens=5), facts(), config, 100) == 5
    assert tokens_in_budget(Budget(steps=5), facts(), config, 100) == 500
    assert tokens_in_budget(Budget(seconds=5), facts(), config, 100) == 5 * 2000


def test_only_seconds_ask_for_a_speed() -> None:
    silent = TextFacts(train_tokens=10, train_bytes=10, vocab_size=10)
    assert tokens_in_budget(Budget(steps=5), silent, Config(), 100) == 500
    with pytest.raises(AssertionError, match="no speed is known"):
        tokens_in_budget(Budget(seconds=5), silent, Config(), 100)


def test_a_larger_budget_affords_a_larger_model() -> None:
    widths = [choose(facts(), Budget(tokens=n)) for n in (1, 199, 11_000, 2_000_000)]
    assert widths == [10, 10, 100, 100]  # a width of 1000 has more weights than the text has tokens
    assert choose(facts(train_tokens=10**7), Budget(tokens=2_000_000)) == 1000


def test_a_slower_machine_gets_a_smaller_model() -> None:
    budget = Budget(seconds=100)
    chosen = [choose(facts(train_tokens=10**7, speed=speed), budget) for speed in (10**6, 10**3, 10)]
    assert chosen == [1000, 100, 10]


def test_a_large_vocabulary_leaves_less_for_the_width() -> None:
    assert choose(facts(train_tokens=10**7), Budget(tokens=20_000)) == 100
    assert choose(facts(train_tokens=10**7, vocab_size=10_000), Budget(tokens=20_000)) == 10


def test_dropout_grows_with_the_passes_over_the_text() -> None:
    passes = (1, 4, 8, 40)
    dropouts = [
        APPETITE.with_dropout(Config(width=10), None, facts(), Budget(tokens=n * 100_000)).dropout for n in passes
    ]
    assert dropouts[0] == dropouts[1] == 0
    assert dropouts == sorted(dropouts)  # type: ignore[type-var]
    assert dropouts[-1] > dropouts[1]  # type: ignore[operator]
    assert APPETITE.with_dropout(Config(width=10), 0.7, facts(), Budget(tokens=1)).dropout == 0.7


def test_what_is_set_is_kept_and_the_rest_is_filled_in() -> None:
    assert with_settings(Config(width=10, layers=2), Config(layers=5)) == Config(width=10, layers=5)
