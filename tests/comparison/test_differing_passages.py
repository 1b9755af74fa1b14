"""Where two models differ: passages that say something, each once."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lmlab.comparison import differing_passages as passages
from lmlab.comparison.differing_passages import LEAST_GAIN_BITS, PASSAGE_BYTES, differing_passages

VERSE = "".join(chr(97 + i % 23) for i in range(PASSAGE_BYTES))
OTHER = VERSE[::-1].upper()


def scored(text: str, bits_of_byte: np.ndarray) -> Any:
    """As much of what was scored as is looked at, a token a byte."""
    size = len(text.encode())
    part = SimpleNamespace(bytes=size, pieces=lambda: iter([(0, text)]), documents=[SimpleNamespace(size=size)])
    ends = np.arange(1, size + 1)
    return SimpleNamespace(part=part, byte_ends=ends, nats_per_token=bits_of_byte * math.log(2), counted=None)


def test_a_passage_that_a_text_repeats_is_shown_once() -> None:
    text = (VERSE + "-" * PASSAGE_BYTES) * 4 + OTHER
    better, worse = np.ones(len(text)), np.full(len(text), 2.0)
    found = differing_passages(scored(text, better), scored(text, worse))
    assert len({passage.text for passage in found}) == len(found)
    assert sum("abcdefgh" in passage.text for passage in found) <= 2  # where it begins and ends may be cut differently


def test_what_chance_gives_and_takes_is_no_gain() -> None:
    text = VERSE * 3 + OTHER
    base = np.full(len(text), 2.0)
    slightly = base - 0.9 * LEAST_GAIN_BITS / PASSAGE_BYTES
    clearly = base - 1.1 * LEAST_GAIN_BITS / PASSAGE_BYTES
    assert differing_passages(scored(text, slightly), scored(text, base)) == ()
    assert differing_passages(scored(text, clearly), scored(text, base)) != ()


@pytest.mark.parametrize("word", ["wonderful", "θαυμάσιο", "奇妙"])
def test_a_passage_is_of_whole_words_and_says_where_its_line_goes_on(word: str) -> None:
    line = " ".join([word] * 100)
    text = f"{line}\n{line}"
    base = np.full(len(text.encode()), 2.0)
    for place in (0, 301, 420, len(base) - PASSAGE_BYTES):
        better = base.copy()
        better[place : place + PASSAGE_BYTES] = 1.0
        (found,) = differing_passages(scored(text, better), scored(text, base))
        assert set(found.text.split()) == {word}
        size = len(found.text.encode())
        assert text.encode()[found.start : found.start + size].decode() == found.text
        assert found.start <= place
        assert found.start + size >= place + PASSAGE_BYTES
        assert found.bits == (2.0 * size - PASSAGE_BYTES, 2.0 * size)  # of the very bytes that are shown
        assert found.cut == (place > 0, place < len(base) - PASSAGE_BYTES)


def test_text_without_spaces_is_cut_between_characters() -> None:
    text = "今天早上老师在学校里看了一本旧书" * 20
    base = np.full(len(text.encode()), 2.0)
    better = base.copy()
    better[100 : 100 + PASSAGE_BYTES] = 1.0
    (found,) = differing_passages(scored(text, better), scored(text, base))
    assert found.start == 99
    assert found.text in text
    assert found.cut == (True, True)


def test_a_passage_lies_in_one_document() -> None:
    one, other = "wonderful " * 60, "thoughtful " * 60
    base = np.full(len(one + other), 2.0)
    better = base.copy()
    better[len(one) - 100 : len(one) + 60] = 1.0
    models = [scored(one + other, bits) for bits in (better, base)]
    for model in models:
        model.part.documents = [SimpleNamespace(size=len(one)), SimpleNamespace(size=len(other))]
    found = differing_passages(*models)
    assert [set(passage.text.split()) for passage in found] == [{"wonderful"}, {"thoughtful"}]
    assert [passage.cut for passage in found] == [(True, False), (False, True)]


def test_a_passage_lies_in_what_counts_and_not_in_what_is_read_before_it() -> None:
    text = "history " * 100 + "counting " * 100
    base = np.full(len(text), 2.0)
    better = base.copy()
    better[300:500], better[1000:1160] = 0.0, 1.0
    models = [scored(text, bits) for bits in (better, base)]
    for model in models:
        bounds = (np.array([800, 1100]), np.array([1100, 1700]), np.array([0, 0]))
        model.counted = SimpleNamespace(chosen=SimpleNamespace(bounds=lambda bounds=bounds: bounds))
    (found,) = differing_passages(*models)
    assert set(found.text.split()) == {"counting"}
    assert found.start <= 1000
    assert found.cut == (True, True)


@pytest.mark.parametrize("place", [1900, 2000, 5500, 9_840])
def test_passages_far_into_a_long_text_are_found_wherever_its_blocks_end(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also across the end of a block, with the words and the line that they are cut from."""
    text = " ".join(f"{number:04}" for number in range(2000))
    text = text[:9_999] + "\n"
    base = np.full(len(text), 2.0)
    better, nearly = base.copy(), slice(100, 100 + PASSAGE_BYTES)
    better[nearly], better[place : place + PASSAGE_BYTES] = 1.5, 1.0
    models = scored(text, better), scored(text, base)
    whole = differing_passages(*models)
    assert [abs(one.start - at) < 5 for one, at in zip(whole, (place, 100), strict=True)] == [True, True]
    for size in (1000, 2000, 3333):
        monkeypatch.setattr(passages, "BLOCK_BYTES", size)
        assert differing_passages(*models) == whole


def test_what_repeats_itself_in_another_block_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    words = " ".join(f"{number:03}" for number in range(400))
    text = "".join(words + "\n" for _ in range(5))
    base = np.full(len(text), 2.0)
    better = base.copy()
    for verse in range(5):
        better[verse * len(text) // 5 + 400 :][:PASSAGE_BYTES] = 1.0 - 0.1 * verse
    monkeypatch.setattr(passages, "BLOCK_BYTES", len(text) // 5)
    (found,) = differing_passages(scored(text, better), scored(text, base))
    assert found.start > 4 * len(text) // 5


def test_a_passage_with_a_token_held_impossible_is_none_to_show() -> None:
    text = "wonderful " * 100
    base = np.full(len(text), 2.0)
    better, worse = base - 1.0, base.copy()
    worse[[160, 505]] = np.inf
    found = differing_passages(scored(text, better), scored(text, worse))
    for passage in found:
        assert not {160, 505} & set(range(passage.start, passage.start + len(passage.text)))
        assert all(map(math.isfinite, passage.bits))
    assert found
