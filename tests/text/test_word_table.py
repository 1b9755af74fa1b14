"""Words as numbers, fast: whatever the text, they are the tokens of the plain way."""

from __future__ import annotations

import copy
import itertools
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmlab.hardware.c_kernels import why_not
from lmlab.text import word_table, words_in_c
from lmlab.text.word_table import PACKED, WordTable, is_simple, split, word_bounds
from lmlab.text.words_in_c import SOURCE

WORDS = ["a", "the", "wörter", "x" * PACKED, "y" * (PACKED + 1), "z" * 8, "z" * 9, "zzzzzzzz1", "zzzzzzzz2", "日本"]
SPACES = [" ", " ", " ", "  ", "\n", "\n ", " \n", " \n ", "\t", "\r", "\x0b", "\x1c", "\r\n", "\n\n"]
STRANGE = ["\0", "\x85", "\xa0", "\u2028", "\u3000"]  # one of them, and the whole text goes the plain way
SIMPLE = st.lists(st.sampled_from(WORDS + SPACES)).map("".join)
ANY = st.lists(st.sampled_from(WORDS + SPACES + STRANGE)).map("".join)


in_c = pytest.mark.skipif(bool(why_not(SOURCE)), reason=why_not(SOURCE))
WAYS = ["arrays", pytest.param("C", marks=in_c), pytest.param("C, 3 misses", marks=in_c)]


@pytest.fixture(autouse=True, params=WAYS)
def fast_for_short_texts_too(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both fast ways; the one in C also with so few misses noted at a time that it has to go on where it ended."""
    monkeypatch.setattr(word_table, "WORTH_IT", 0)
    monkeypatch.setattr(words_in_c, "LARGE", 1 << 40 if request.param == "arrays" else 0)
    if request.param == "C, 3 misses":
        monkeypatch.setattr(words_in_c, "MOST_MISSES", 3)


def check(texts: list[str], after_word: bool) -> None:
    table = WordTable(["the", "\n"])
    for text in texts:
        numbers = table.numbers(text, after_word=after_word)
        assert [table.strings[number] for number in numbers] == split(text, after_word=after_word)
    assert len(set(table.strings)) == len(table.strings)


@given(st.lists(SIMPLE, max_size=4) | st.lists(ANY, max_size=4), st.booleans())
def test_the_numbers_stand_for_the_tokens_of_the_plain_way(texts: list[str], after_word: bool) -> None:
    check(texts, after_word)


@given(st.lists(st.text(max_size=40), max_size=4), st.booleans())
def test_they_do_for_any_text(texts: list[str], after_word: bool) -> None:
    check(texts, after_word)


def test_a_table_that_grows_forgets_nothing() -> None:
    words = [f"{i * 7919:x}{'-' * (i % 20)}" for i in range(5000)]
    table = WordTable()
    first = table.numbers(" ".join(words))
    assert [table.strings[number] for number in first] == words
    assert (table.numbers(" ".join(words)) == first).all()
    assert (table.numbers(" ".join(reversed(words))) == first[::-1]).all()


def test_words_that_want_the_same_place_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words_in_c, "LARGE", 1 << 40)
    monkeypatch.setattr(word_table, "_slots", lambda low, high, bits: (low * 0).astype("int64"))
    check([" ".join(f"{i}" for i in range(300)), "7 8 9 nine " * 40], after_word=False)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30))
def test_words_are_bounded_where_python_splits(text: str) -> None:
    if is_simple(text):
        starts, ends = word_bounds(text.encode())
        assert [text.encode()[a:b].decode() for a, b in zip(starts, ends, strict=True)] == text.split()


def test_both_fast_ways_share_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [f"{i * 7919:x}{'-' * (i % 20)}" for i in range(3000)]
    table, seen = WordTable(), {}
    for turn in range(4):
        monkeypatch.setattr(words_in_c, "LARGE", (turn % 2) << 40)
        numbers = table.numbers("\n".join(words[: 1000 * (turn + 1)]))[::2]
        seen.update(zip(words, numbers.tolist(), strict=False))
        assert [table.strings[number] for number in numbers] == words[: len(numbers)]
        assert [seen[word] for word in words[:1000]] == numbers[:1000].tolist()


@pytest.mark.parametrize(
    "text",
    [
        "a\nb\n c \nd \n e\tf\rg\x1ch\x0bi  j\n\nk",
        " ".join(f"prefixed{i}" for i in range(3000)),
        " ".join(f"{i:08}{i % 7:08}" for i in range(3000)),
    ],
    ids=["whitespace of all kinds", "words that begin alike", "words of sixteen bytes"],
)
def test_texts_that_tell_one_slip_from_another(text: str) -> None:
    check([text, text], after_word=False)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda table: pickle.loads(pickle.dumps(table))])
def test_a_copy_is_a_table_of_its_own(
    copied: Callable[[WordTable], WordTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = copied(WordTable(["the", "\n"]))
    for turn, text in enumerate(["apple pear " * 300, "apple pear plum " * 900, "apple pear " * 300 + " new1 new2"]):
        if why_not(SOURCE) == "":
            monkeypatch.setattr(words_in_c, "LARGE", (turn % 2) << 40)
        assert [table.strings[number] for number in table.numbers(text)] == split(text)
    assert len(table.strings) == len(set(table.strings))


@pytest.mark.parametrize("begun", ["read", "_meet", "_hold", "_place", "_make_room"])
@pytest.mark.parametrize("finished", [False, True])
def test_a_table_that_was_interrupted_is_as_good_as_before(
    begun: str, finished: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C at the worst moments: before and after what changes the table, again and again."""
    table = WordTable(["the", "\n", "a"])
    where: object = words_in_c if begun == "read" else WordTable
    honest = getattr(where, begun)

    def interrupted(*given: object) -> None:
        if finished:
            honest(*given)
        raise KeyboardInterrupt

    for turn in range(3):
        text = (
            " ".join(f"w{turn}-{i}" for i in range(600))
            + " \t "
            + "the " * 2000
            + "end of a-long-word-that-is-not-packed"
        )
        with monkeypatch.context() as patch:
            patch.setattr(where, begun, interrupted)
            with suppress(KeyboardInterrupt):  # not every way comes by everything
                table.numbers(text)
        for again in (text, text.replace("w", "v")):
            assert [table.strings[number] for number in table.numbers(again)] == split(again)
    assert [table.number(string) for string in table.strings] == list(range(len(table.strings)))


def test_a_copy_can_be_made_while_another_thread_reads() -> None:
    table, stop = WordTable(), threading.Event()

    def read() -> None:
        for turn in itertools.count():
            table.numbers(" ".join(f"{turn}-{i}" for i in range(200)))
            if stop.is_set():
                return

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for copied in (copy.deepcopy, copy.copy, lambda table: pickle.loads(pickle.dumps(table))):
            for _ in range(5):
                found = copied(table)
                text = "0-0 0-1 and words that nobody knows"
                assert [found.strings[number] for number in found.numbers(text)] == split(text)
    finally:
        stop.set()
        reader.join()
