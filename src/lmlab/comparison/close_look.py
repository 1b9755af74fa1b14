"""Detailed examination of one model: a paragraph scored token by token, a sample, and a proof by compression."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from lmlab.comparison.findings import Proof, Token
from lmlab.hardware.rates import settle
from lmlab.interface import LanguageModel, Learner
from lmlab.measure import Check, Result, Scored
from lmlab.measure.score import device_of, evaluating
from lmlab.records import from_json
from lmlab.text.parts import Part
from lmlab.text.tokenizers import Tokenizer

if TYPE_CHECKING:
    from lmlab.comparison.entry_store import EntryStore
    from lmlab.compression.proof import Proof as ProofMade
    from lmlab.measure import Spread

PREFIX_BYTES = 1_000  # context before the excerpt
EXCERPT_BYTES = 600
FAVOURITES = 5
SAMPLE_CHARACTERS = 400
PROOF_BYTES = 1_500  # bytes to compress; with a time limit, the most per piece
LOOKING = 0.35  # share of the examination time for reading and generating a paragraph; the rest is for proofs
LEAST_LOOK = 0.1  # minimum share of the usual length
PROBED_STEPS = 12  # timed tokens, after as many for warm-up
FIRST_PROOF_BYTES, LEAST_PROOF_BYTES, MOST_PROOFS = 150, 60, 100


@dataclass(frozen=True, kw_only=True)
class CloseLook:
    """The examination of one model that the report shows beside its bits per byte."""

    excerpt: tuple[Token, ...] = ()
    excerpt_cut: tuple[bool, bool] = (False, False)  # whether its first and last lines are cut
    sample: str = ""
    proof: Proof | None = None
    seconds: float = 0.0  # duration of the examination

    @property
    def holds(self) -> bool:
        """Whether compression reached the size that the scores claim. True if there is no proof or the claim is infinite."""
        return self.proof is None or self.proof.claimed_bits is None or self.proof.holds

    def certify(self, result: Result) -> Result:
        """Add the check that compression reached the claimed size to the certificate of a result."""
        if self.proof is None or self.proof.claimed_bits is None:
            return result
        check = Check("cashed_in", self.proof.holds, self.proof.sentence)
        certificate = replace(result.certificate, checks=(*result.certificate.checks, check))
        return replace(result, certificate=certificate)


def look_at_all(
    stores: Mapping[str, EntryStore], text: Spread, *, seed: int, left_s: float | None
) -> Iterator[Callable[[], CloseLook]]:
    """Yield one function per entry that examines the entry when called; call them in order.

    Args:
        stores: the entries, by name.
        text: the text that was scored.
        seed: seed of the samples and of the pieces to compress.
        left_s: seconds for all entries together. None: every examination has its usual length and no clock is read.
    """
    share, until_s = 1.0, None
    if left_s is not None:
        until_s = time.perf_counter() + left_s
        usual_s = sum(_place_for_steps(store.run.model) for store in stores.values())
        usual_s *= EXCERPT_BYTES + SAMPLE_CHARACTERS
        fits = LOOKING * (until_s - time.perf_counter()) / max(usual_s, 1e-9)
        share = min(1.0, max(LEAST_LOOK, fits))
    for place, store in enumerate(stores.values()):
        now = time.perf_counter()
        mine_until_s = None if until_s is None else now + (until_s - now) / (len(stores) - place)
        yield partial(_timed_look, store, text, seed, share, mine_until_s)


def _timed_look(store: EntryStore, text: Spread, seed: int, share: float, until_s: float | None) -> CloseLook:
    started, run = time.perf_counter(), store.run
    look = look_closely(run.model, run.tokenizer, store.result(text), seed, share=share, until_s=until_s)
    return replace(look, seconds=time.perf_counter() - started)


def _place_for_steps(model: LanguageModel) -> float:
    """Move a model to the device where single tokens are fastest, and return the seconds per token there.

    At one token at a time a GPU is mostly idle, so a small model is faster on a CPU.
    """
    here_s = _step_s(model)
    if isinstance(model, Learner) and device_of(model).type != "cpu":
        there = device_of(model)
        on_cpu_s = _step_s(model.to("cpu"))
        if here_s < on_cpu_s:
            model.to(there)
        return min(here_s, on_cpu_s)
    return here_s


def _step_s(model: LanguageModel) -> float:
    """Measure the seconds per token if tokens are processed one at a time."""
    with evaluating(model), torch.no_grad():
        _, state = model.begin(1)
        token_11 = torch.zeros(1, 1, dtype=torch.int64, device=device_of(model))
        started = 0.0
        for step in range(2 * PROBED_STEPS):
            if step == PROBED_STEPS:
                settle(device_of(model))
                started = time.perf_counter()
            _, state = model.advance(token_11, state)
        settle(device_of(model))
        return (time.perf_counter() - started) / PROBED_STEPS


def look_closely(
    model: LanguageModel,
    tokenizer: Tokenizer,
    result: Result,
    seed: int,
    *,
    share: float = 1.0,
    until_s: float | None = None,
) -> CloseLook:
    """Score a paragraph token by token, generate a sample, and compress pieces of the scored text.

    Args:
        model: the model to examine.
        tokenizer: its tokenizer.
        result: its result on the scored text.
        seed: seed of the sample and of the pieces.
        share: fraction of the usual length of the paragraph and the sample.
        until_s: end of compression, by time.perf_counter. None: compress the usual number of bytes.
    """
    from lmlab.engine import generate

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
    """Compress and decompress pieces of a scored text with the model.

    Args:
        until_s: end, by time.perf_counter. A short proof comes first, then more pieces while time remains. None: compress
            the usual number of bytes.
    """
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
    """Return the byte range of a paragraph that follows some context, cut at line breaks, or at spaces if lines are long.

    Args:
        text: the text that the paragraph is taken from.
        share: fraction of the usual length.

    Returns:
        The first byte, and the end (exclusive).
    """
    start = _last_break(text, 0, min(PREFIX_BYTES, max(0, len(text) - EXCERPT_BYTES)))
    size = round(share * EXCERPT_BYTES)
    end = _last_break(text, start + size // 2, start + size)
    return start, end if end > start else min(len(text), start + size)


def _last_break(text: bytes, low: int, high: int) -> int:
    """Return the position after the last line break in a range, else after its last space; 0 if it has neither."""
    return text.rfind(b"\n", low, high) + 1 or text.rfind(b" ", low, high) + 1


def line_is_cut(text: bytes, start: int, stop: int) -> tuple[bool, bool]:
    """Return whether the passage begins within a line, and whether it ends within a line."""
    begins = start == 0 or text[start - 1 : start] == b"\n"
    ends = stop >= len(text) or b"\n" in (text[stop - 1 : stop], text[stop : stop + 1])
    return not begins, not ends


def read_closely(
    model: LanguageModel, tokenizer: Tokenizer, scored: Scored, bounds: tuple[int, int]
) -> tuple[Token, ...]:
    """Return the tokens within the byte range `bounds`, each with its bits and the likeliest predictions of the model."""
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
