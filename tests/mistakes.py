"""Which mistake was made: tests ask for its code and for short words; whole sentences stand in test_messages.py alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lmlab.config import Mistake

LONGEST_WORDS = 30  # characters; more is a sentence, which may become a better one any day


def speaks_of(code: str, line: str, words: tuple[str, ...]) -> None:
    """Each of these words is the code of the mistake or a short part of its line."""
    for word in words:
        assert word == code or word in line, f"{word!r} is neither in {line!r} nor its code, {code!r}"
        assert word == code or len(word) <= LONGEST_WORDS, f"{word!r} is a sentence: ask for the code, {code!r}"


@contextmanager
def mistake(*words: str) -> Iterator[pytest.ExceptionInfo[Mistake]]:
    """What stands below makes a mistake with that code or these short words, said in one line."""
    with pytest.raises(Mistake) as caught:
        yield caught
    assert "\n" not in str(caught.value)
    speaks_of(caught.value.code, str(caught.value), words)
