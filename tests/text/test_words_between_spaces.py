"""Whether a text has words between spaces: elsewhere a figure per word is one per line."""

from __future__ import annotations

import pytest

from lmlab.text.plain_words import are_words, has_spaces


@pytest.mark.parametrize(
    "text", ["The old king", "Donaudampfschifffahrt ist ein Wort", "ملك قديم رأى الحصان", "def f(x): return x"]
)
def test_what_stands_between_spaces_are_words(text: str) -> None:
    assert has_spaces(text)


@pytest.mark.parametrize("text", ["天地玄黄", "天地玄黄宇宙洪荒" * 4, "สวัสดีครับ", "x" * 50, ""])
def test_lines_without_spaces_are_no_words(text: str) -> None:
    assert not has_spaces(text)


def test_a_text_without_a_word_has_none() -> None:
    assert not are_words(100, 0)
    assert not are_words(0, 0)
