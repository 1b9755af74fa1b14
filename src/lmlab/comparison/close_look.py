"""A model seen from near: a paragraph token by token, a sample, and pieces of the text that were compressed."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from lmlab.comparison.findings import Proof, Token
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
        excerpt_cut=line_is_cut(text, *bounds),
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


def line_is_cut(text: bytes, start: int, stop: int) -> tuple[bool, bool]:
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
