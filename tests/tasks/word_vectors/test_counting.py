"""Co-occurrence counts against two loops written out, and against a bug planted in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.tasks.word_vectors import counting
from lmlab.tasks.word_vectors.counting import Pairs, count_pairs
from lmlab.tasks.word_vectors.data import pairs_of, plain_documents
from lmlab.text import chunks as chunking
from lmlab.text.chunks import by_document
from lmlab.text.corpus import read
from lmlab.text.plain_words import words_of
from lmlab.text.tokenizers import train_tokenizer
from mistakes import mistake
from thinning import examples


def by_hand(documents: list[list[int]], vocab_size: int, window: int) -> np.ndarray:
    """The matrix X, entry by entry."""
    x_VV = np.zeros((vocab_size, vocab_size))
    for words in documents:
        for i, word in enumerate(words):
            for j in range(max(0, i - window), min(len(words), i + window + 1)):
                if i != j:
                    x_VV[word, words[j]] += 1 / abs(i - j)
    return x_VV


def counted(documents: list[list[int]], vocab_size: int, window: int) -> Pairs:
    starts = np.cumsum([0, *map(len, documents)])[:-1]
    ids = np.array([word for words in documents for word in words], dtype=np.int32)
    return count_pairs(ids, starts, vocab_size, window)


def whole(pairs: Pairs, vocab_size: int) -> np.ndarray:
    rows, columns, values = pairs.both_ways()
    x_VV = np.zeros((vocab_size, vocab_size))
    np.add.at(x_VV, (rows, columns), values)
    return x_VV


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(
    documents=st.lists(st.lists(st.integers(0, 4), max_size=9), max_size=4),
    window=st.integers(1, 6) | st.sampled_from([9, 10**6, 10**30]),  # of which no more is counted than there is
    block=st.sampled_from([1, 7, 1 << 20]),
)
def test_counts_are_those_of_two_loops_however_they_are_cut_into_blocks(
    documents: list[list[int]], window: int, block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "BLOCK", block)
        found = counted(documents, 5, window)
    np.testing.assert_allclose(whole(found, 5), by_hand(documents, 5, window), rtol=1e-12)
    assert (found.first_P <= found.second_P).all()
    assert (np.diff(found.first_P.astype(np.int64) * 5 + found.second_P) > 0).all()


def test_a_pair_at_the_edge_of_the_window_counts_and_one_beyond_does_not() -> None:
    x_VV = whole(counted([[0, 2, 2, 1]], 3, 3), 3)
    assert x_VV[0, 1] == pytest.approx(1 / 3)
    assert whole(counted([[0, 2, 2, 1]], 3, 2), 3)[0, 1] == 0


def test_a_window_too_large_for_this_text_and_machine_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, starts = np.arange(3000, dtype=np.int32) % 700, np.array([0, 1000])
    assert len(count_pairs(ids, starts, 700, 10**30, memory_bytes=10**9)) == 700 * 701 // 2
    with mistake("window-too-large", "fill the memory", "window=10"):
        count_pairs(ids, starts, 700, 2000, memory_bytes=1000 * counting.PAIR_BYTES)
    monkeypatch.setattr(counting, "MOST_COUNTED", 4_000_000)
    assert len(count_pairs(ids, starts, 700, 1200))
    with mistake("window-too-large", "which takes hours"):
        count_pairs(ids, starts, 700, 10**30)


@pytest.mark.parametrize("wrong", [2, 4])
def test_a_window_that_is_off_by_one_is_caught(wrong: int) -> None:
    documents = [[0, 1, 2, 3, 4, 0, 1, 3], [2, 2, 4]]
    assert np.abs(whole(counted(documents, 5, wrong), 5) - by_hand(documents, 5, 3)).max() > 0.1


def test_words_are_the_same_wherever_a_long_text_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("One fish, two fish. Red fish; blue fish! " * 12)
    (tmp_path / "b.txt").write_text("\n\n One more")
    part = read(tmp_path, split=(100, 0, 0)).train
    plain = ["".join(pieces) for pieces in by_document(plain_documents(part))]
    assert plain == [words_of(text) for text in ("One fish, two fish. Red fish; blue fish! " * 12, "One more")]
    words = train_tokenizer("words", plain_documents(part), least=1)
    found = pairs_of(part, words, 2)
    monkeypatch.setattr(chunking.chunks, "__defaults__", (25,))
    assert ["".join(pieces) for pieces in by_document(plain_documents(part))] == plain
    again = train_tokenizer("words", plain_documents(part), least=1)
    assert again.hash == words.hash
    assert "" not in again.vocabulary.pieces
    np.testing.assert_array_equal(pairs_of(part, again, 2).counts_P, found.counts_P)


def test_no_pair_reaches_over_the_end_of_a_document() -> None:
    assert whole(counted([[0], [1]], 2, 5), 2).sum() == 0
    assert len(counted([], 2, 5)) == 0
