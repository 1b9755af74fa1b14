"""Settings that cannot be are refused with their name and what would be right."""

from __future__ import annotations

import pytest

from lmlab.config import Budget, Mistake, a_share, at_least_one, make, parse_settings, without_open
from lmlab.engine import Options
from lmlab.learn.settings import TrainConfig
from lmlab.models.attention import AttentionConfig
from lmlab.models.ngram import NGramConfig
from mistakes import mistake


def test_settings_out_of_range_are_named() -> None:
    at_least_one("rnn", width=1, layers=None)
    a_share("rnn", dropout=0.0)
    a_share("rnn", dropout=None)
    with mistake("setting-below-one"):
        at_least_one("rnn", width=1, layers=0)
    for wrong in (1.0, -0.5, float("nan")):
        with pytest.raises(Mistake, match="rnn: dropout is a share"):
            a_share("rnn", dropout=wrong)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("3min", "180s"),
        ("2 hours", "7200s"),
        ("90sec", "90s"),
        ("1e3steps", "1000steps"),
        ("2epochs", "2epochs"),
        ("0.5 epoch", "0.5epochs"),
        (
            "1.23456789epochs",
            "1.23456789epochs",
        ),  # which are tokens of a text, and are counted again when it is resumed
        ("300h", "1080000s"),
        ("0.00001s", "0.00001s"),
    ],
)
def test_budgets_are_read_as_people_write_them(written: str, meant: str) -> None:
    assert str(Budget.parse(written)) == meant
    assert Budget.parse(meant) == Budget.parse(written)


def test_an_epoch_is_as_many_tokens_as_the_training_part_has() -> None:
    assert Budget.parse("2.5epochs").over(1000) == Budget(tokens=2500)
    assert Budget.parse("3m").over(1000) == Budget(seconds=180)


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf")])
def test_a_budget_that_never_ends_or_never_was_is_refused(wrong: float) -> None:
    with pytest.raises(Mistake, match="one positive number"):
        Budget(seconds=wrong)


def test_a_whole_number_that_no_float_holds_is_refused_by_its_name() -> None:
    with mistake("setting-of-another-kind"):
        make(Options, {"temperature": 10**400}, "generate")


def test_auto_leaves_a_setting_open_in_python_as_on_the_command_line() -> None:
    given = {"order": "auto", "restart": "auto"}
    written = parse_settings(NGramConfig, [f"{name}={value}" for name, value in given.items()], "ngram")
    assert make(NGramConfig, given, "ngram") == make(NGramConfig, written, "ngram") == NGramConfig()
    assert (
        make(TrainConfig, {"optimizer": "auto", "rows": " None ", "budget": Budget(steps=1)}, "training").optimizer
        is None
    )
    with mistake("setting-of-another-kind", "order"):
        make(NGramConfig, {"order": "automatic"}, "ngram")
    with pytest.raises(Mistake, match="setting k is a number"):  # which is never open
        make(NGramConfig, {"k": "auto"}, "ngram")


def test_what_is_left_open_is_left_out_and_none_of_something_is_not() -> None:
    given = {
        "positions": "none",
        "activation": "none",
        "width": "none",
        "key_width": "auto",
        "dropout": None,
        "context": 8,
    }
    kept = without_open(given, make(AttentionConfig, given, "attention"))
    assert kept == {"positions": "none", "activation": "none", "context": 8}
