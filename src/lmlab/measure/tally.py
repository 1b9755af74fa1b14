"""What the tokens of a text stand for: how many bytes each, which words they spell, and the sums over them.

Long documents are read in pieces. A token's bytes may depend on its neighbours (a space that is implied between two
words counts with the second), so each piece is read with one token more on either side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lmlab.text.spelling import Spelling
    from lmlab.text.stream import TokenStream
    from lmlab.text.tokenizers import Tokenizer

PIECE_TOKENS = 1 << 20

Cut = Callable[[np.ndarray, int], int]  # (ids of a document, where a piece starts) -> where it ends


def _every(ids: np.ndarray, start: int) -> int:
    return min(start + PIECE_TOKENS, len(ids))


@dataclass(frozen=True)
class Piece:
    """Some tokens of one document and their neighbours: `ids` holds the tokens `start - before` to `stop + after`."""

    start: int  # in the stream
    stop: int
    before: int  # neighbours held on the left: 0 at the beginning of a document, else 1
    after: int  # neighbours held on the right: 0 at the end of a document, else 1
    ids: np.ndarray
    spellings: Sequence[str]  # of the unknown symbols in `ids`, neighbours included
    lead: int  # spellings of the neighbour on the left: 0 or 1
    unknown: int  # unknown symbols among the tokens, neighbours not included

    @property
    def words(self) -> Sequence[str]:
        """The spellings of the tokens' own unknown words; fewer than `unknown` where the stream lacks some."""
        return self.spellings[self.lead : self.lead + self.unknown]


def document_pieces(stream: TokenStream, document: int, unknown_id: int | None, cut: Cut = _every) -> Iterator[Piece]:
    """A document in pieces; `cut(ids, start)` says where the piece that starts at a token ends."""
    ids = stream.document(document)
    offset = int(stream.starts[document])
    spelled, spelled_end = stream.spelling_bounds(document)
    start = 0
    while start < len(ids):
        stop = cut(ids, start)
        before, after = int(start > 0), int(stop < len(ids))
        held = np.asarray(ids[start - before : stop + after])
        lead = count = tail = 0
        words: Sequence[str] = ()
        if unknown_id is not None:
            unknown = held == unknown_id
            lead, count = int(unknown[:before].sum()), int(unknown.sum())
            tail = int(unknown[len(held) - after :].sum())
            words = stream.spellings[max(spelled - lead, 0) : min(spelled - lead + count, spelled_end)]
        yield Piece(offset + start, offset + stop, before, after, held, words, lead, count - lead - tail)
        spelled += count - lead - tail
        start = stop


def pieces(stream: TokenStream, unknown_id: int | None) -> Iterator[Piece]:
    """All documents, in pieces of bounded size."""
    for document in range(stream.documents):
        yield from document_pieces(stream, document, unknown_id)


@dataclass(frozen=True, kw_only=True, eq=False)
class Tally:
    """Bytes and sums of a scored stream. Sums are float64."""

    byte_ends: np.ndarray  # int64: bytes of the part up to and including each token
    total_nats: float
    model_nats: float  # without the spelling of unknown words
    spelling_nats: float
    unknown_tokens: int
    fallback_tokens: int  # single bytes of characters that have no token (`char` and `bpe` tokenizers only, else 0)
    unspelled_tokens: int  # unknown symbols whose word nobody paid for (or spellings without a symbol): must be 0
    impossible_tokens: int  # tokens to which the model gives probability zero
    closed_tokens: int  # words and line ends (`words` tokenizers only, else 0)
    closed_nats: float  # their nats, an unknown word costing its symbol alone
    closed_unknown: int  # unknown words among them
    known_nats: float = 0.0  # nats of the others among them, the words that are known and the line ends


def tally(tokenizer: Tokenizer, stream: TokenStream, nats: np.ndarray, byte_ends: np.ndarray) -> Tally:
    """Fill `byte_ends`, add the nats of spellings to `nats` (both in place), and sum."""
    counted_V = closed_ids(tokenizer)
    end = 0
    model_nats, spelling_nats, closed_nats, known_nats = [], [], [], []
    unknown_tokens = fallback_tokens = spelled_tokens = impossible = closed_tokens = closed_unknown = 0
    for piece in pieces(stream, tokenizer.unknown_id):
        inside = slice(piece.before, len(piece.ids) - piece.after)
        ids, here = piece.ids[inside], slice(piece.start, piece.stop)
        byte_ends[here] = end + np.cumsum(tokenizer.token_bytes(piece.ids, piece.spellings)[inside])
        end = int(byte_ends[piece.stop - 1])
        nats_T = nats[here].astype(np.float64)
        model_nats.append(nats_T.sum())
        impossible += int(np.isposinf(nats_T).sum())
        fallback_tokens += count_among(tokenizer.fallback_ids, ids)
        if counted_V is None:
            continue
        unknown, words = np.flatnonzero(ids == tokenizer.unknown_id), piece.words
        counted = counted_V[ids]
        counted[unknown[: len(words)]] = [is_closed(word) for word in words]
        closed_nats.append(nats_T[counted].sum())
        known_nats.append(nats_T[counted & (ids != tokenizer.unknown_id)].sum())
        closed_tokens += int(counted.sum())
        closed_unknown += int(counted[unknown].sum())
        unknown_tokens += len(unknown)
        if tokenizer.spelling is not None and len(words):
            cost = spelling_nats_of(tokenizer.spelling, words)
            spelling_nats.append(cost.sum())
            nats_T[unknown[: len(words)]] += cost
            nats[here] = nats_T
            spelled_tokens += len(words)
    model, spelling = math.fsum(model_nats), math.fsum(spelling_nats)
    return Tally(
        byte_ends=byte_ends,
        total_nats=model + spelling,
        model_nats=model,
        spelling_nats=spelling,
        unknown_tokens=unknown_tokens,
        fallback_tokens=fallback_tokens,
        unspelled_tokens=max(unknown_tokens, len(stream.spellings)) - spelled_tokens,
        impossible_tokens=impossible,
        closed_tokens=closed_tokens,
        closed_nats=math.fsum(closed_nats),
        closed_unknown=closed_unknown,
        known_nats=math.fsum(known_nats),
    )


def spelling_nats_of(spelling: Spelling, words: Sequence[str]) -> np.ndarray:
    """Nats of each spelling (float64). Unknown words come again and again, so each different one is spelled once."""
    place = {word: i for i, word in enumerate(dict.fromkeys(words))}
    return spelling.nats(list(place))[[place[word] for word in words]]


def count_among(wanted: range, ids: np.ndarray) -> int:
    """How many of the ids are among those wanted."""
    return int(((ids >= wanted.start) & (ids < wanted.stop)).sum())


def closed_ids(tokenizer: Tokenizer) -> np.ndarray | None:
    """Which ids the closed-vocabulary perplexity counts; None where the vocabulary is open anyway."""
    if tokenizer.unknown_id is None:
        return None
    return np.array([is_closed(tokenizer.piece(id)) for id in range(tokenizer.vocab_size)])


def is_closed(token: str) -> bool:
    """Words and line ends are; other whitespace, and the mark that a space is missing, are not."""
    return token != "" and (not token[0].isspace() or "\n" in token)
