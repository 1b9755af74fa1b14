"""From the tokens back to the text, compared with the file byte for byte, a piece at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from lmlab.config import Mistake
from lmlab.measure.tally import PIECE_TOKENS, document_pieces

if TYPE_CHECKING:
    from lmlab.text.parts import Part
    from lmlab.text.stream import TokenStream
    from lmlab.text.tokenizers import Tokenizer

LOOK_BACK = 1000  # tokens tried as the end of a piece before the piece is made longer


@dataclass(frozen=True)
class RoundTrip:
    """What a second reading of the text saw."""

    bytes_read: int
    sha256: str
    first_difference: int | None  # byte of the part from which on the decoded text is another; None: none


def round_trip(tokenizer: Tokenizer, part: Part, stream: TokenStream) -> RoundTrip:
    """Decode every document and compare it with its bytes on disk."""
    digest = hashlib.sha256()
    read, difference = 0, None
    for path, documents in groupby(enumerate(part.documents), lambda each: each[1].path):
        with open(path, "rb") as file:
            for index, document in documents:
                decoded = decoded_pieces(tokenizer, stream, index)
                file.seek(document.start)
                left = document.size
                while left:
                    expected = next(decoded, b"") if difference is None else b""
                    actual = file.read(min(len(expected) or 1 << 20, left))
                    if not actual:
                        raise Mistake(
                            f"{path} became shorter while it was read; it must stay as it is",
                            code="file-became-shorter",
                        )
                    if difference is None and actual != expected:
                        difference = read + _first_difference(actual, expected)
                    digest.update(actual)
                    read, left = read + len(actual), left - len(actual)
                if difference is None and next(decoded, None) is not None:
                    difference = read
    return RoundTrip(read, digest.hexdigest(), difference)


def decoded_pieces(tokenizer: Tokenizer, stream: TokenStream, document: int) -> Iterator[bytes]:
    """The text of a document's tokens as UTF-8, decoded a piece at a time; never an empty piece.

    A piece is decoded together with the token before it, whose own text is then taken off: how a token reads may
    depend on that one (an implied space), and on being the last of all. So pieces end in ordinary characters.
    """
    cut = partial(_ordinary_end, tokenizer)
    for piece in document_pieces(stream, document, tokenizer.unknown_id, cut):
        held = piece.ids[: len(piece.ids) - piece.after]
        text = tokenizer.decode(held, piece.spellings[: piece.lead + piece.unknown])
        taken_off = tokenizer.decode(held[: piece.before], piece.spellings[: piece.lead]) if piece.before else ""
        if encoded := text[len(taken_off) :].encode():
            yield encoded


def _ordinary_end(tokenizer: Tokenizer, ids: np.ndarray, start: int) -> int:
    """Where a piece may end: after a character that is neither whitespace nor cut in half, or with the document."""
    stop = start + PIECE_TOKENS
    while stop < len(ids):
        for end in range(stop, stop - LOOK_BACK, -1):
            last = tokenizer.decode(ids[max(end - 4, start) : end])[-1:]  # a character has at most four bytes
            if ids[end - 1] != tokenizer.unknown_id and last and not last.isspace() and last != "\ufffd":
                return end
        stop += PIECE_TOKENS
    return len(ids)


def _first_difference(a: bytes, b: bytes) -> int:
    length = min(len(a), len(b))
    unequal = np.flatnonzero(np.frombuffer(a[:length], np.uint8) != np.frombuffer(b[:length], np.uint8))
    return int(unequal[0]) if len(unequal) else length
