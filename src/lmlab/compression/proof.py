"""Proved by compression: recorded scores held against bytes that exist and open again.

Several pieces of the measured text, spread over it (of a model that must read all that came before: over the beginnings of its
documents), are coded one after the other into one number. Before each piece both sides read what came before it in its
document, as far as the model's policy asks; so the number must be as long as the recorded scores of just these tokens say.
What the coder adds is known (`coder`): rounding shares to 2^-32 costs less than 2^-24 of a bit a token; a token that is
claimed to take 30 bits or more takes less, as no share is smaller than 2^-32; and the end is a whole byte, of which zeros are
left out. Recorded scores are float32 and were computed in other shapes, which
moves a token by far less than `STEP_BITS`. That is all that is allowed, in both directions.
"""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from lmlab.compression.arithmetic_coder import TOTAL_BITS, Decoder, OutOfStep, Table
from lmlab.compression.text_codec import Receiver, Sender, Speller, Stream, cumulative, one_thread
from lmlab.measure.counted import which_count
from lmlab.measure.score import device_of, evaluating
from lmlab.measure.spread_sample import derived_seed
from lmlab.measure.walk import Copies
from lmlab.records import JsonRecord, in_json

if TYPE_CHECKING:
    from lmlab.interface import ContextPolicy, LanguageModel
    from lmlab.measure.scored import Scored
    from lmlab.text.stream import TokenStream
    from lmlab.text.tokenizers import Tokenizer

PIECES = 4
END_BITS = 8.0  # the number ends with a whole byte
STEP_BITS = 2e-4  # a token, for the rounding of scores
DEEPEST = 2048  # tokens before a piece, for a model that must read all of them


@dataclass(frozen=True, kw_only=True)
class Proof(JsonRecord):
    """Pieces of a text that were coded and came back, and what the recorded scores had claimed."""

    numbers: int = 1  # that the pieces were coded into
    pieces: int
    original_bytes: int
    tokens: int
    claimed_bits: float  # recorded, spelling included
    spared_bits: float  # that the coder's smallest share spares of this
    compressed_bytes: int
    identical: bool  # the tokens and spellings came back, read by another copy of the model
    seconds: float

    def __add__(self, other: Proof) -> Proof:
        """Other pieces of the same text, coded into a number of their own, as one proof."""
        return Proof(
            **{
                field.name: self.identical and other.identical
                if field.name == "identical"
                else getattr(self, field.name) + getattr(other, field.name)
                for field in dataclasses.fields(self)
            }
        )

    @property
    @in_json
    def excess_bits(self) -> float:
        """How much longer than claimed the number is (negative: shorter)."""
        return 8 * self.compressed_bytes - (self.claimed_bits - self.spared_bits)

    @property
    @in_json
    def allowed_bits(self) -> float:
        """How far it may lie beside the claim."""
        return END_BITS * self.numbers + STEP_BITS * self.tokens

    @property
    @in_json
    def holds(self) -> bool:
        """Whether everything came back, and the length is what was claimed."""
        return self.identical and abs(self.excess_bits) <= self.allowed_bits

    @property
    @in_json
    def sentence(self) -> str:
        """What was found, in words."""
        if not math.isfinite(self.claimed_bits):
            return "not cashed in: the model holds some of the text impossible"
        return (
            f"{self.pieces} pieces of the measured text, {self.original_bytes:,} bytes, became {self.compressed_bytes:,} bytes;"
            f" their recorded scores claim {self.claimed_bits / 8:,.1f} (up to {self.allowed_bits / 8:.1f} beside that is the"
            f" coder's rounding); they came back {'identical' if self.identical else 'CHANGED'}"
        )


@dataclass(frozen=True)
class _Piece:
    """Tokens `start` to `stop` of the stream, predicted from those from `begin` on."""

    begin: int
    start: int
    stop: int


def proof(
    model: LanguageModel,
    tokenizer: Tokenizer,
    scored: Scored,
    *,
    size_bytes: int,
    seed: int = 0,
    left_T: np.ndarray | None = None,
) -> Proof:
    """Code pieces of a measured text, about so many bytes in all, and let a second copy of the model read them again.

    left_T: which tokens the pieces are of, from which those that are coded here are taken; None: all that `can_be_coded`.
    """
    started = time.perf_counter()
    stream = scored.stream
    left_T = can_be_coded(scored, model.policy) if left_T is None else left_T
    tokens = max(1, round(size_bytes * stream.tokens / max(1, int(scored.byte_ends[-1])) / PIECES))
    pieces = _pieces(stream, model.policy, tokens, derived_seed(scored.part, seed), left_T)
    inside = np.concatenate([np.arange(piece.start, piece.stop) for piece in pieces])
    ids = stream.ids[inside].astype(np.int64)
    unknown = -1 if tokenizer.unknown_id is None else tokenizer.unknown_id
    words = _spellings(stream, unknown, inside[ids == unknown])
    lengths = np.diff(scored.byte_ends, prepend=0)
    speller = Speller.of(tokenizer)
    sender = Sender(ids.tolist(), words, speller)
    _code(model, stream, pieces, sender)
    data = sender.encoder.finish()
    receiver = Receiver(Decoder(data), speller, int(lengths[inside].sum()))
    try:
        _code(Copies(model).new(), stream, pieces, receiver)
        identical = receiver.ids == ids.tolist() and receiver.spellings == words
    except OutOfStep:
        identical = False
    bits = scored.nats_per_token[inside].astype(np.float64) / math.log(2.0)
    unspelled = bits[np.isfinite(bits) & (ids != unknown)]
    return Proof(
        pieces=len(pieces),
        original_bytes=int(lengths[inside].sum()),
        tokens=len(inside),
        claimed_bits=float(bits.sum()),
        spared_bits=_spared(unspelled),
        compressed_bytes=len(data),
        identical=identical,
        seconds=time.perf_counter() - started,
    )


def can_be_coded(scored: Scored, policy: ContextPolicy) -> np.ndarray:
    """Which tokens a piece may be of (bool): those that count and, where all before them must be read, that lie near enough."""
    counts_T, starts_D = which_count(scored), scored.stream.starts
    if policy.window is not None:
        return counts_T
    depth_T = np.arange(len(counts_T)) - np.repeat(starts_D[:-1], np.diff(starts_D))
    return counts_T & (depth_T < depth_T[counts_T].min(initial=len(counts_T)) + DEEPEST)


def _spared(bits: np.ndarray) -> float:
    """Bits that the smallest share spares of tokens that are claimed to take so many."""
    return float(np.logaddexp2(0.0, bits - TOTAL_BITS).sum())


def _pieces(stream: TokenStream, policy: ContextPolicy, tokens: int, seed: int, left_T: np.ndarray) -> list[_Piece]:
    """One piece out of each of several strata of what is left of the text, from which they are taken."""
    generator = np.random.Generator(np.random.PCG64(seed))
    places = np.flatnonzero(left_T)
    found: list[_Piece] = []
    for stratum in range(PIECES if len(places) else 0):
        first, last = (stratum * len(places) // PIECES, (stratum + 1) * len(places) // PIECES)
        drawn = int(places[generator.integers(first, max(first + 1, last - tokens))])
        document = int(np.searchsorted(stream.starts, drawn, side="right")) - 1
        begin, end = int(stream.starts[document]), int(stream.starts[document + 1])
        start, stop = _unbroken(left_T, drawn, min(drawn + tokens, end))
        if start < stop:
            left_T[start:stop] = False
            found.append(_Piece(begin + policy.resume(start - begin), start, stop))
    return found


def _unbroken(left_T: np.ndarray, start: int, stop: int) -> tuple[int, int]:
    """The first tokens of a stretch that are left, up to one that is not."""
    left = np.flatnonzero(left_T[start:stop])
    if not len(left):
        return stop, stop
    first = start + int(left[0])
    taken = np.flatnonzero(~left_T[first:stop])
    return first, first + int(taken[0]) if len(taken) else stop


def _code(model: LanguageModel, stream: TokenStream, pieces: list[_Piece], coded: Stream) -> None:
    """Take the model through the pieces. In both directions it makes the same calls."""
    device = device_of(model)
    with evaluating(model), torch.no_grad(), one_thread():
        for piece in pieces:
            logp_1V, state = model.begin(1)
            if piece.start > piece.begin:
                before = torch.from_numpy(stream.ids[None, piece.begin : piece.start].astype(np.int64))
                logp_1V, state = model.advance(before.to(device), state)
            for place in range(piece.start, piece.stop):
                token = coded.take(Table(cumulative(logp_1V)[0]))
                if place + 1 < piece.stop:
                    logp_1V, state = model.advance(torch.tensor([[token]], device=device), state)


def _spellings(stream: TokenStream, unknown: int, places: np.ndarray) -> list[str]:
    """The words of the unknown symbols at these places."""
    if not len(places):
        return []
    return [stream.spellings[int(i)] for i in np.searchsorted(np.flatnonzero(stream.ids == unknown), places)]
