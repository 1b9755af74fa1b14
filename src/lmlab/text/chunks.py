"""Cutting a long text into chunks so that the tokens do not depend on how the text arrived.

A chunk ends where a word ends, because no tokenizer of the lab has a token that runs from a word into the whitespace
after it. So tokenising chunk by chunk gives the tokens of the whole text, and memory stays bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

CHUNK_CHARS = 1 << 17  # few enough that a chunk and its tokens fit a cache, so many that Python's overhead vanishes

# Four control characters are whitespace for Python and symbols for the tokenizers library: no cut before them.
_LAST_WORD_END = re.compile(r".*\S(?=[^\S\x1c-\x1f])", re.DOTALL)


def chunks(pieces: Iterable[str], size: int = CHUNK_CHARS) -> Iterator[str]:
    """The same text in chunks of at most `size` characters, each ending where a word ends.

    Only a word that, with the whitespace before it, is longer than `size` is cut inside. The cuts depend on the
    text alone, not on how `pieces` divide it.
    """
    held, held_chars = [], 0
    for piece in pieces:
        held.append(piece)
        held_chars += len(piece)
        if held_chars <= size:
            continue
        text, start = "".join(held), 0
        while len(text) - start > size:
            # One more than `size`, so that a word which ends exactly at the limit is seen to end.
            match = _LAST_WORD_END.match(text, start, start + size + 1)
            end = match.end() if match else start + size
            yield text[start:end]
            start = end
        held, held_chars = [text[start:]], len(text) - start
    if held_chars:
        yield "".join(held)


def by_document(texts: Iterable[str] | Iterable[tuple[int, str]]) -> Iterator[Iterator[str]]:
    """The documents of `texts`, each as an iterator over its pieces.

    A bare string is a whole document; `(document, piece)` pairs, as `Part.pieces()` gives them, are put together.
    """
    numbered = (item if isinstance(item, tuple) else (-index - 1, item) for index, item in enumerate(texts))
    for _, group in groupby(numbered, key=itemgetter(0)):
        yield (piece for _, piece in group)


def flagged(items: Iterable[str]) -> Iterator[tuple[str, bool, bool]]:
    """Each item with whether it is the first and whether it is the last; looks one ahead."""
    iterator = iter(items)
    first = True
    for current in iterator:
        for following in iterator:
            yield current, first, False
            current, first = following, False
        yield current, first, True
