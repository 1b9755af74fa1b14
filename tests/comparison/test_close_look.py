"""Where two models differ: passages that say something, each once."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from lmlab.comparison.close_look import LEAST_GAIN_BITS, PASSAGE_BYTES, differing_passages

VERSE = "".join(chr(97 + i % 23) for i in range(PASSAGE_BYTES))
OTHER = VERSE[::-1].upper()


def scored(text: str, bits_of_byte: np.ndarray) -> Any:
    """As much of what was scored as is looked at, a token a byte."""
    part = SimpleNamespace(bytes=len(text), pieces=lambda: [(0, text)])
    ends = np.arange(1, len(text) + 1)
    return SimpleNamespace(part=part, byte_ends=ends, nats_per_token=bits_of_byte * math.log(2))


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
