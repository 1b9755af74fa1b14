"""Models seen from near: a paragraph token by token, a sample, a file that was compressed, and where two of them differ."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from lmlab.comparison.findings import Passage, Proof, Token
from lmlab.interface import LanguageModel
from lmlab.measure import Check, Result, Scored
from lmlab.measure.score import device_of
from lmlab.records import from_json
from lmlab.text.parts import Part
from lmlab.text.tokenizers import Tokenizer

if TYPE_CHECKING:
    from lmlab.compression.proof import Proof as ProofMade

PREFIX_BYTES = 1_000  # of history before the excerpt
EXCERPT_BYTES = 600
FAVOURITES = 5
PASSAGE_BYTES = 160
WORD_REACH = 24  # bytes by which a passage may grow on each side, to begin and end with a word
LEAST_GAIN_BITS = 8.0  # on a passage: below, chance gives and takes as much
SAMPLE_CHARACTERS = 400
PROOF_BYTES = 1_500  # compressed; where there is a time to end, as many as there is time for, so many at once
FIRST_PROOF_BYTES, LEAST_PROOF_BYTES, MOST_PROOFS = 150, 60, 100


@dataclass(frozen=True, kw_only=True)
class CloseLook:
    """What the page shows of a model beside its number."""

    excerpt: tuple[Token, ...] = ()
    excerpt_cut: tuple[bool, bool] = (False, False)  # as of an Entry
    sample: str = ""
    proof: Proof | None = None

    def certify(self, result: Result) -> Result:
        """The result with one check more: that what its scores claim was cashed in. An infinite claim cannot be."""
        if self.proof is None or self.proof.claimed_bits is None:
            return result
        check = Check("cashed_in", self.proof.holds, self.proof.sentence)
        certificate = replace(result.certificate, checks=(*result.certificate.checks, check))
        return replace(result, certificate=certificate)


def look_closely(
    model: LanguageModel,
    tokenizer: Tokenizer,
    result: Result,
    seed: int,
    *,
    share: float = 1.0,
    until_s: float | None = None,
) -> CloseLook:
    """Read a paragraph, write one, and compress pieces of the text that was measured.

    share: of the usual paragraphs, where time is short. until_s: when to end, by time.perf_counter; until then pieces are
    compressed. None: as many as usual.
    """
    from lmlab.decode import generate

    measured = result.scored.part
    pieces = max(20, SAMPLE_CHARACTERS // (1 if tokenizer.spec in ("byte", "char") else 4))
    text = _beginning(measured).encode()
    bounds = excerpt_bounds(text, share)
    return CloseLook(
        excerpt=read_closely(model, tokenizer, result.scored, bounds),
        excerpt_cut=_cut(text, *bounds),
        sample=generate(model, tokenizer, "", max_tokens=max(1, round(share * pieces)), seed=seed)[0].text,
        proof=from_json(Proof, prove(model, tokenizer, result.scored, seed, until_s).to_json()),
    )


def prove(
    model: LanguageModel, tokenizer: Tokenizer, scored: Scored, seed: int, until_s: float | None = None
) -> ProofMade:
    """Compress and open pieces of a measured text: the usual bytes, or a few, and then as many more as there is time for."""
    from lmlab.compression.proof import can_be_coded, proof

    started, left_T = time.perf_counter(), can_be_coded(scored, model.policy)
    if until_s is None:
        return proof(model, tokenizer, scored, size_bytes=PROOF_BYTES, seed=seed, left_T=left_T)
    made = proof(model, tokenizer, scored, size_bytes=FIRST_PROOF_BYTES, seed=seed, left_T=left_T)
    for again in range(1, MOST_PROOFS):
        byte_s = (time.perf_counter() - started) / max(1, made.original_bytes)
        size = min(PROOF_BYTES, int((until_s - time.perf_counter()) / byte_s))
        if size < LEAST_PROOF_BYTES or not left_T.any():
            break
        made += proof(model, tokenizer, scored, size_bytes=size, seed=seed + again, left_T=left_T)  # other pieces
    return made


def _beginning(part: Part) -> str:
    return next(iter(part.documents[0].pieces()))


def excerpt_bounds(text: bytes, share: float = 1.0) -> tuple[int, int]:
    """(first byte, end) of a paragraph, after some history: from line to line, or where lines are long from word to word.

    share: of the usual length.
    """
    start = _last_break(text, 0, min(PREFIX_BYTES, max(0, len(text) - EXCERPT_BYTES)))
    size = round(share * EXCERPT_BYTES)
    end = _last_break(text, start + size // 2, start + size)
    return start, end if end > start else min(len(text), start + size)


def _last_break(text: bytes, low: int, high: int) -> int:
    """Behind the last line break between two places, else behind the last space; 0 where there is neither."""
    return text.rfind(b"\n", low, high) + 1 or text.rfind(b" ", low, high) + 1


def _cut(text: bytes, start: int, stop: int) -> tuple[bool, bool]:
    """Whether the line that a passage begins in began before it, and the one that it ends in goes on after it."""
    begins = start == 0 or text[start - 1 : start] == b"\n"
    ends = stop >= len(text) or b"\n" in (text[stop - 1 : stop], text[stop : stop + 1])
    return not begins, not ends


def read_closely(
    model: LanguageModel, tokenizer: Tokenizer, scored: Scored, bounds: tuple[int, int]
) -> tuple[Token, ...]:
    """The bytes within `bounds` token by token: text, bits, and what the model would rather have seen."""
    ids = scored.stream.document(0)
    ends = scored.byte_ends[: len(ids)]
    first = int(np.searchsorted(ends, bounds[0], side="right"))
    last = int(np.searchsorted(ends, bounds[1], side="left"))
    raw = _beginning(scored.part).encode()
    tokens_1T = torch.from_numpy(ids[: last + 1].astype(np.int64))[None].to(device_of(model))
    logp_1V, state = model.begin(1)
    if first:
        logp_1V, state = model.advance(tokens_1T[:, :first], state)
    found = []
    for place in range(first, min(last + 1, len(ids))):
        begin = int(ends[place - 1]) if place else 0
        top = logp_1V[0].topk(min(FAVOURITES, model.vocab_size))
        favourites = zip(top.values.tolist(), top.indices.tolist(), strict=True)
        bits = float(scored.nats_per_token[place]) / math.log(2)
        found.append(
            Token(
                t=raw[begin : int(ends[place])].decode(errors="replace"),
                b=round(bits, 3) if math.isfinite(bits) else None,
                f=tuple((tokenizer.piece(i), round(math.exp(p), 4)) for p, i in favourites),
                n=int(ends[place]) - begin,
            )
        )
        logp_1V, state = model.advance(tokens_1T[:, place : place + 1], state)
    return tuple(found)


def differing_passages(a: Scored, b: Scored, count: int = 3) -> tuple[Passage, ...]:
    """The passages in which `a` saves most bits over `b`, no two alike, with the bits each needed.

    They share no more than the word that one ends with and the other begins with. Each lies in one document, in what counts.
    """
    size = min(a.part.bytes, 1 << 20)
    bits_a, bits_b = (_bits_per_byte_position(s, size) for s in (a, b))
    starts_U, stops_U = _stretches(a, size)
    gain = _gains(bits_b - bits_a, starts_U, stops_U)
    text = _first_bytes(a.part, size)
    found: list[Passage] = []
    while len(found) < count and gain.max() >= LEAST_GAIN_BITS:
        start = int(gain.argmax())
        unit = int(np.searchsorted(starts_U, start, side="right")) - 1
        low, high = int(starts_U[unit]), int(stops_U[unit])
        stop = min(high, start + PASSAGE_BYTES)
        edge = (stop - start) // 4
        core = text[start + edge : stop - edge]
        start, stop = max(low, _outward(text, start, -1)), min(high, _outward(text, stop, 1))
        needed = (round(float(bits_a[start:stop].sum()), 1), round(float(bits_b[start:stop].sum()), 1))
        if not any(core in old.text.encode() for old in found):  # a text may repeat itself
            passage = text[start:stop].decode(errors="ignore")
            # what is before a stretch is its document's, and before a document another one
            begin, end = (low, high) if a.counted is None else (0, size)
            cut = _cut(text[begin:end], start - begin, stop - begin)
            found.append(Passage(text=passage, start=start, bits=needed, cut=cut))
        gain[max(0, start - PASSAGE_BYTES) : stop] = -np.inf
    return tuple(found)


def _stretches(scored: Scored, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(starts, stops), in bytes, of what counts of the text's first `size` bytes: each in one document, and unbroken."""
    if scored.counted is None:
        stops_U = np.cumsum([document.size for document in scored.part.documents])
        starts_U, document_U = np.append(0, stops_U[:-1]), np.arange(len(stops_U))
    else:
        starts_U, stops_U, document_U = scored.counted.chosen.bounds()
    goes_on = (starts_U[1:] == stops_U[:-1]) & (document_U[1:] == document_U[:-1])
    starts_U, stops_U = starts_U[np.append(True, ~goes_on)], stops_U[np.append(~goes_on, True)]
    return starts_U[starts_U < size], np.minimum(stops_U, size)[starts_U < size]


def _gains(saved_T: np.ndarray, starts_U: np.ndarray, stops_U: np.ndarray) -> np.ndarray:
    """Bits that are saved in the passage that begins at each byte; where none can, or they are infinite, -inf."""
    gain = np.full(len(saved_T), -np.inf)
    for start, stop in zip(starts_U.tolist(), stops_U.tolist(), strict=True):
        if (length := min(PASSAGE_BYTES, stop - start)) > 0:
            gain[start : stop - length + 1] = np.convolve(saved_T[start:stop], np.ones(length), mode="valid")
    return np.where(np.isfinite(gain), gain, -np.inf)


def _outward(text: bytes, place: int, step: Literal[-1, 1]) -> int:
    """The nearest place between two words, in the direction of the step; where none is near, between two characters."""
    near = [p for p in range(place, place + step * (WORD_REACH + 1), step) if 0 <= p <= len(text)]
    for is_between in (_between_words, _between_characters):
        for found in near:
            if is_between(text, found):
                return found
    return place


def _between_words(text: bytes, place: int) -> bool:
    around = text[place - 1 : place], text[place : place + 1]
    return place in (0, len(text)) or any(byte.isspace() for byte in around)


def _between_characters(text: bytes, place: int) -> bool:
    return place == len(text) or text[place] & 0xC0 != 0x80


def _first_bytes(part: Part, size: int) -> bytes:
    found = bytearray()
    for _, piece in part.pieces():
        found += piece.encode()
        if len(found) >= size:
            break
    return bytes(found[:size])


def _bits_per_byte_position(scored: Scored, size: int) -> np.ndarray:
    """Bits of each byte of the text: a token's bits are spread evenly over its bytes."""
    lengths = np.diff(scored.byte_ends, prepend=0)
    each = np.where(lengths > 0, scored.nats_per_token / np.maximum(lengths, 1) / math.log(2), 0.0)
    return np.repeat(each, lengths)[:size]
