"""Which mistake was made: tests ask for its code and for short words; whole sentences stand in test_messages.py alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lmlab_derive.shared.mistakes import Mistake

LONGEST_WORDS = 30  # characters; more is a sentence, which may become a better one any day


@contextmanager
def mistake(code: str, *words: str) -> Iterator[None]:
    """What stands below makes a mistake with this code, whose one line has these short words."""
    with pytest.raises(Mistake) as caught:
        yield
    line = str(caught.value)
    assert caught.value.code == code, line
    assert "\n" not in line
    for word in words:
        assert word in line
        assert len(word) <= LONGEST_WORDS, f"{word!r} is a sentence: ask for the code, {code!r}"
