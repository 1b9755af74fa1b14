"""What is shown of a model beside its number."""

from __future__ import annotations

from lmlab.comparison.close_look import EXCERPT_BYTES, PREFIX_BYTES, excerpt_bounds


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
