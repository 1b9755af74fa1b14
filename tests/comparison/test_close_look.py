"""Where two models differ: passages that say something, each once."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lmlab.comparison.close_look import (
    EXCERPT_BYTES,
    LEAST_GAIN_BITS,
    PASSAGE_BYTES,
    PREFIX_BYTES,
    differing_passages,
    excerpt_bounds,
)

VERSE = "".join(chr(97 + i % 23) for i in range(PASSAGE_BYTES))
OTHER = VERSE[::-1].upper()


def scored(text: str, bits_of_byte: np.ndarray) -> Any:
    """As much of what was scored as is looked at, a token a byte."""
    size = len(text.encode())
    part = SimpleNamespace(bytes=size, pieces=lambda: [(0, text)], documents=[SimpleNamespace(size=size)])
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


def test_the_paragraph_goes_from_line_to_line_or_from_word_to_word() -> None:
    lines = ("wonderful " * 9 + "things\n").encode() * 60
    start, end = excerpt_bounds(lines)
    assert 0 < start <= PREFIX_BYTES
    assert lines[start - 1 : start] == lines[end - 1 : end] == b"\n"
    one_line = b"wonderful " * 600
    for share in (1.0, 0.1):
        start, end = excerpt_bounds(one_line, share)
        assert start > 0
        assert end - start <= share * EXCERPT_BYTES
        assert set(one_line[start:end].split()) == {b"wonderful"}
    assert excerpt_bounds(b"x" * 3000) == (0, EXCERPT_BYTES)
