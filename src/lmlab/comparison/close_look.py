"""Models seen from near: a paragraph token by token, a sample, a file that was compressed, and where two of them differ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from lmlab.comparison.findings import Passage, Proof, Token
from lmlab.interface import LanguageModel
from lmlab.measure import Result, Scored
from lmlab.measure.score import device_of
from lmlab.text.parts import Part
from lmlab.text.tokenizers import Tokenizer

PREFIX_BYTES = 1_000  # of history before the excerpt
EXCERPT_BYTES = 600
FAVOURITES = 5
PASSAGE_BYTES = 160
SAMPLE_CHARACTERS = 400
PROOF_BYTES = 1_500
STEPWISE_BYTES = SAMPLE_CHARACTERS + EXCERPT_BYTES + 2 * PROOF_BYTES  # that a model takes token by token for all this


@dataclass(frozen=True, kw_only=True)
class CloseLook:
    """What the page shows of a model beside its number."""

    excerpt: tuple[Token, ...]
    sample: str
    proof: Proof


def look_closely(model: LanguageModel, tokenizer: Tokenizer, result: Result, seed: int) -> CloseLook:
    """Read a paragraph, write one, and compress the beginning of the text that was measured."""
    from lmlab.compression.proof import proof
    from lmlab.decode import generate

    measured = result.scored.part
    pieces = max(20, SAMPLE_CHARACTERS // (1 if tokenizer.spec in ("byte", "char") else 4))
    return CloseLook(
        excerpt=read_closely(model, tokenizer, result.scored, excerpt_bounds(measured)),
        sample=generate(model, tokenizer, "", max_tokens=pieces, seed=seed)[0].text,
        proof=Proof(**proof(model, tokenizer, _beginning(measured)[:PROOF_BYTES]).to_json()),
    )


def _beginning(part: Part) -> str:
    return next(iter(part.documents[0].pieces()))


def excerpt_bounds(part: Part) -> tuple[int, int]:
    """(first byte, end) of a paragraph in the first document: from a line start, after some history."""
    text = _beginning(part).encode()[: PREFIX_BYTES + 4 * EXCERPT_BYTES]
    start = text.rfind(b"\n", 0, min(PREFIX_BYTES, max(0, len(text) - EXCERPT_BYTES))) + 1
    end = text.rfind(b"\n", start + EXCERPT_BYTES // 2, start + EXCERPT_BYTES) + 1
    return start, end if end > start else min(len(text), start + EXCERPT_BYTES)


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
            )
        )
        logp_1V, state = model.advance(tokens_1T[:, place : place + 1], state)
    return tuple(found)


def differing_passages(a: Scored, b: Scored, count: int = 3) -> tuple[Passage, ...]:
    """The passages in which `a` saves most bits over `b`, not overlapping, with the bits each needed."""
    size = min(a.part.bytes, 1 << 20)
    bits_a, bits_b = (_bits_per_byte_position(s, size) for s in (a, b))
    gain = np.convolve(bits_b - bits_a, np.ones(min(PASSAGE_BYTES, size)), mode="valid")
    text = _first_bytes(a.part, size)
    found: list[Passage] = []
    gain = np.where(np.isfinite(gain), gain, -np.inf)
    while len(found) < count and gain.max() > 0:
        start = int(gain.argmax())
        stop = start + PASSAGE_BYTES
        needed = (round(float(bits_a[start:stop].sum()), 1), round(float(bits_b[start:stop].sum()), 1))
        found.append(Passage(text=text[start:stop].decode(errors="ignore"), start=start, bits=needed))
        gain[max(0, start - PASSAGE_BYTES) : stop] = -np.inf
    return tuple(found)


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
