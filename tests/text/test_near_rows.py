"""Rows that are copies of training rows: planted ones are found, whatever was changed, and rows that only resemble are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lmlab.text.near_rows import MOST_COPIED, Copied, find_copies

WORDS = np.array([f"w{i}" for i in range(4000)])
P = 1.0 / np.arange(3, len(WORDS) + 3)  # as often as words are


def texts(number: int, shortest: int, longest: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    words = random.choice(WORDS, number * longest, p=P / P.sum()).reshape(number, longest)
    drawn = [row[: random.integers(shortest, longest + 1)] for row in words]
    return [". ".join(" ".join(row[at : at + 9]) for at in range(0, len(row), 9)) for row in drawn]


def changed(words: list[str], at: int) -> list[str]:
    return [*words[:at], "another", *words[at + 1 :]]


def added(words: list[str], at: int) -> list[str]:
    return [*words[:at], "another", *words[at:]]


def left_out(words: list[str], at: int) -> list[str]:
    return [*words[:at], *words[at + 1 :]]


def one_in_twelve(text: str, edit: Callable[[list[str], int], list[str]]) -> str:
    words = text.split()
    return " ".join(word for at in range(0, len(words), 12) for word in edit(words[at : at + 12], 5))


@pytest.fixture(scope="module")
def train() -> list[str]:
    return texts(1500, 12, 90, seed=1)


@pytest.fixture(scope="module")
def test() -> list[str]:
    return texts(150, 12, 90, seed=2)


@pytest.mark.parametrize("edit", [changed, added, left_out])
def test_a_copy_with_one_word_in_twelve_edited_is_found(
    train: list[str], test: list[str], edit: Callable[[list[str], int], list[str]]
) -> None:
    is_copy, copied = find_copies([*train, *(one_in_twelve(text, edit) for text in test)], test)
    assert is_copy.mean() >= 0.98
    assert copied.near >= 0.98 * len(test)
    assert not copied.is_held_out


def test_sentences_in_another_order_and_another_case_are_found(train: list[str], test: list[str]) -> None:
    turned = [". ".join(text.upper().split(". ")[::-1]) for text in test]
    assert find_copies([*train, *turned], test)[0].mean() >= 0.99


def test_rows_that_were_not_copied_are_not_called_copies(train: list[str], test: list[str]) -> None:
    is_copy, copied = find_copies(train, test)
    assert not is_copy.any()
    assert copied.is_held_out


def test_a_row_that_was_copied_very_often_is_found(train: list[str], test: list[str]) -> None:
    many = [" ".join(edit(text.split(), at)) for text in test[:20] for edit in (changed, added) for at in range(40)]
    assert find_copies([*train, *many], test)[0].tolist() == [True] * 20 + [False] * 130


def test_few_copies_leave_a_part_held_out_and_more_do_not(train: list[str], test: list[str]) -> None:
    for copies, held_out in ((2, True), (15, False)):
        planted = [one_in_twelve(text, changed) for text in test[:copies]]
        is_copy, copied = find_copies([*train, *planted], test)
        assert is_copy.tolist() == [i < copies for i in range(len(test))]
        assert copied.is_held_out is held_out


def test_rows_of_one_template_are_not_taken_for_copies() -> None:
    random = np.random.default_rng(3)
    rows = [f"on day {a} the price of {w} rose by {b} cents to {c} at the end" for a, b, c, w in zip(
        random.integers(1, 400, 900), random.integers(1, 99, 900), random.integers(1, 999, 900),
        random.choice(WORDS, 900), strict=True,
    )]  # fmt: skip
    copied = find_copies(rows[:800], rows[800:])[1]
    assert copied.is_held_out, copied
    assert abs(copied.near / copied.rows - copied.usual) < 0.15


def test_short_rows_are_compared_by_all_their_words() -> None:
    is_copy, copied = find_copies(
        ["Great movie!", "dull", "?!", "好看的电影"], ["great  movie", "great", "?!", "...", "好看的电影。"]
    )
    assert is_copy.tolist() == [True, False, True, False, True]
    assert copied.exact == 3


def test_without_rows_there_are_no_copies() -> None:
    assert find_copies([], ["a b c d"])[1].number == 0
    assert find_copies(["a b c d"], [])[1] == Copied(rows=0, exact=0, near=0, usual=0.0)
    assert find_copies(["", " "], ["x"])[1].is_held_out


def test_what_is_usual_counts_no_near_copies_and_exact_copies_count_in_full() -> None:
    assert Copied(rows=1000, exact=0, near=100, usual=0.1).beyond_usual == 0.0
    assert Copied(rows=1000, exact=50, near=0, usual=0.1).beyond_usual == pytest.approx(0.05)
    assert Copied(rows=1000, exact=0, near=200, usual=0.1).beyond_usual == pytest.approx(0.1)
    assert Copied(rows=25_000, exact=123, near=5, usual=0.002).is_held_out
    assert not Copied(rows=1000, exact=round(1000 * MOST_COPIED) + 1, near=0, usual=0.0).is_held_out
