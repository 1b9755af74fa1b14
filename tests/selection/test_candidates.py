"""Who takes part in a search, and for how long, follows from the text and the time that is left."""

from __future__ import annotations

from pathlib import Path

import pytest

import lmlab as lab
from lmlab.selection.candidates import LEARNED, counted, selection, tokenizers_for
from lmlab.selection.rungs import budgets_in_all
from some_text import some_lines

MODELS = ("ngram", *LEARNED)


@pytest.mark.parametrize("left_s", [4.0, 20.0, 50.0, 100.0, 500.0, 3600.0])
def test_all_training_and_the_reserve_fit_into_the_time_that_is_left(left_s: float) -> None:
    counts = counted(MODELS, ["bpe:512", "char"])
    plan = selection(MODELS, ["char", "bpe:512"], left_s=left_s, budget_s=1.2 * left_s, counts=counts)
    learned = [candidate for candidate in plan.candidates if not candidate.counts]
    assert plan.candidates[: len(counts)] == tuple(counts)
    assert plan.rungs[-1] == 1.0
    assert list(plan.rungs) == sorted(set(plan.rungs))
    used_s = plan.train_s * budgets_in_all(plan.rungs, len(learned)) + plan.reserve_s
    assert used_s <= left_s or plan.train_s == pytest.approx(0.5)
    assert learned[0].tokenizer == "char", "the tokenizer that was best by counting comes first"


def test_longer_budgets_try_more_and_then_other_sizes() -> None:
    def names(left_s: float) -> list[str]:
        plan = selection(MODELS, ["char", "words"], left_s=left_s, budget_s=left_s, counts=())
        return [candidate.name for candidate in plan.candidates]

    assert names(10.0) == ["gru-char"]
    assert names(40.0) == ["gru-char", "gpt-char"]
    assert names(120.0) == ["gru-char", "gpt-char", "lstm-char", "gru-words"]
    assert names(3600.0) == [*names(120.0), "gpt-words", "lstm-words", "gru-char-wider", "gru-char-narrower"]


def test_models_that_only_count_need_no_plan_of_training() -> None:
    plan = selection(["ngram"], ["char"], left_s=50.0, budget_s=60.0, counts=counted(["ngram"], ["char"]))
    assert (plan.train_s, [candidate.name for candidate in plan.candidates]) == (0.0, ["ngram-char"])


def test_tokenizers_suit_the_text_and_the_time(tmp_path: Path) -> None:
    def tried(text: str, budget_s: float) -> list[str]:
        (tmp_path / "text.txt").write_text(text)
        return tokenizers_for(lab.read(tmp_path / "text.txt"), budget_s)

    assert tried(some_lines(5000), 60.0) == ["bpe:512", "char", "words"]
    assert tried(some_lines(5000), 1.0) == ["bpe:512"]
    assert tried("".join(some_lines(5000).split(" ")), 60.0) == ["bpe:512", "char"]
    assert tried(some_lines(500), 60.0) == ["bpe:512", "char"]
