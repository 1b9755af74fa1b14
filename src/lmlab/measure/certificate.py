"""The certificate: what was checked before a number is believed, by name, with the numbers seen.

Checks of the text read all of it, piece by piece; checks of the model take a sample. Each can fail, and each guards
against a mistake that makes models look better than they are.

    bytes_counted         the bytes that tokens stand for are the bytes of the file, document by document
    lossless              the tokens that were scored decode to the text, byte for byte
    unknown_words_paid    every unknown symbol has a spelling, and its nats were added
    each_token_once       the scores fill the text without gap or overlap, and their sum is the total
    normalised            probabilities over the full vocabulary sum to one, and none is above one
    score_is_probability  the scores are the logarithms of those probabilities (begin and advance)
    causal                other tokens later, or none, leave earlier scores as they are
    batching              so do other rows beside it, and the order of rows
    chunking              so does the division into chunks (advance), and into pieces of long documents (score)
    hashes                text, tokenizer and model are named by SHA-256, and the text is still the one that was scored

Shapes: B rows, T tokens, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmlab.measure.identity import model_hash
from lmlab.measure.probe import Probe, take_probe
from lmlab.measure.roundtrip import RoundTrip, round_trip
from lmlab.measure.score import evaluating, largest_difference, score_rows
from lmlab.measure.tally import PIECE_TOKENS, pieces, spelling_nats_of

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel
    from lmlab.measure.score import Scored
    from lmlab.text.spelling import Spelling
    from lmlab.text.tokenizers import Tokenizer

SPELLINGS, SPELLING_SYMBOLS = 8, 16  # words, and symbols of each, at which the spelling model is checked

SUM_TOLERANCE = 1e-5
"""How far a sum of probabilities may be from 1. Rounding a log-probability of -20 to float32 moves it by 1e-6, and the
normaliser of a softmax adds as much; ten times that. It bounds the gain by cheating to as many nats a token."""

NATS_TOLERANCE = 1e-3
"""How far one token's nats may differ between two ways to compute them. Matrix products summed in another order differ
by 1e-5 to 1e-4 nats at the end of a deep float32 network, more where a token costs much, hence relative above 10 nats;
a leak, a lost token or a shifted cache moves nats by tenths."""


@dataclass(frozen=True)
class Check:
    """One check: its name, whether it passed, and a line with the numbers."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Certificate:
    """All checks of one result."""

    checks: tuple[Check, ...]
    hashes: dict[str, str]

    @property
    def passed(self) -> bool:
        """Whether every check passed; only then is a result ranked."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> list[str]:
        """The names of the checks that failed."""
        return [check.name for check in self.checks if not check.passed]


def certify(model: LanguageModel, tokenizer: Tokenizer, scored: Scored, *, seed: int = 0) -> Certificate:
    """Check a result; `seed` chooses the sample."""
    trip = round_trip(tokenizer, scored.part, scored.stream)
    hashes = {"data": scored.part.sha256, "tokenizer": tokenizer.hash, "model": model_hash(model, tokenizer)}
    with evaluating(model):
        probe = take_probe(model, tokenizer, scored, seed)
        checks = (
            _bytes_counted(scored, trip),
            _lossless(trip),
            _unknown_words_paid(tokenizer, scored),
            _each_token_once(scored),
            _normalised(probe),
            _score_is_probability(probe),
            _causal(model, probe, seed),
            _batching(model, probe),
            _chunking(scored, probe),
            _hashes(scored, trip, hashes),
        )
    return Certificate(checks, hashes)


def _bytes_counted(scored: Scored, trip: RoundTrip) -> Check:
    """Compare the bytes of the tokens with the file, not with what the tokenizer says the file holds."""
    counted = int(scored.byte_ends[-1])
    sizes = [d.size for d in scored.part.documents]
    ends = np.concatenate([[0], scored.byte_ends])[scored.stream.starts]
    wrong = int((np.diff(ends) != sizes).sum())
    passed = counted == scored.bytes == trip.bytes_read and not wrong
    detail = f"tokens stand for {counted} bytes, the text has {trip.bytes_read}"
    return Check("bytes_counted", passed, detail + (f"; {wrong} documents differ" if wrong else ""))


def _lossless(trip: RoundTrip) -> Check:
    if trip.first_difference is None:
        return Check("lossless", True, f"all {trip.bytes_read} bytes come back from the tokens")
    return Check("lossless", False, f"the decoded text differs from byte {trip.first_difference} on")


def _unknown_words_paid(tokenizer: Tokenizer, scored: Scored) -> Check:
    """Spell the words again from the stream and compare with what was added to the total."""
    unknown, unpaid = scored.unknown_tokens, scored.unspelled_tokens
    if unpaid:
        return Check("unknown_words_paid", False, f"{unpaid} of {unknown} unknown words were not paid for")
    spelling = tokenizer.spelling
    if spelling is None or not unknown:
        return Check("unknown_words_paid", not unknown, f"{unknown} unknown words")
    spelled = (piece.words for piece in pieces(scored.stream, tokenizer.unknown_id))
    owed = math.fsum(spelling_nats_of(spelling, words).sum() for words in spelled if words)
    proper = _spells_properly(spelling, scored.stream.spellings[:SPELLINGS])
    passed = math.isclose(owed, scored.spelling_nats, rel_tol=1e-9) and proper <= SUM_TOLERANCE
    return Check(
        "unknown_words_paid",
        passed,
        f"{unknown} unknown words cost {owed:.6g} nats, {scored.spelling_nats:.6g} were added;"
        f" spelling probabilities are right to {proper:.1g}",
    )


def _spells_properly(spelling: Spelling, words: Sequence[str]) -> float:
    """The largest error found in a sample: of a distribution's sum, and of a word's nats against its letters'."""
    error = 0.0
    for word, claimed in zip(words, spelling.nats(words).tolist(), strict=True):
        symbols = spelling.symbols(word)[:SPELLING_SYMBOLS]
        nats = 0.0
        for i, symbol in enumerate(symbols):
            p = spelling.distribution(symbols[:i])
            error = max(error, abs(float(p.sum()) - 1.0))
            nats += -math.log(p[symbol]) if p[symbol] > 0 else math.inf
        whole = symbols[-1] == spelling.end
        error = max(error, abs(nats - claimed) / max(1.0, claimed) if whole else max(0.0, nats - claimed))
    return error


def _each_token_once(scored: Scored) -> Check:
    """The calls tile the text, every token has a number, and the total is the sum of those numbers."""
    order = np.argsort(scored.spans[:, 0], kind="stable")
    spans = scored.spans[order]
    tiled = bool(np.array_equal(spans[:, 0], np.append(0, spans[:-1, 1])) and spans[-1, 1] == scored.tokens)
    predictions = int((spans[:, 1] - spans[:, 0]).sum())
    total, bad = 0.0, 0
    for start in range(0, scored.tokens, PIECE_TOKENS):
        nats = scored.nats_per_token[start : start + PIECE_TOKENS]
        total += float(nats.sum(dtype=np.float64))
        bad += int(np.isnan(nats).sum())
    same = total == scored.total_nats or math.isclose(total, scored.total_nats, rel_tol=1e-6, abs_tol=1e-6)
    detail = f"{predictions} predictions for {scored.tokens} tokens, in total {total:.6g} nats"
    if bad or not same:
        detail += f"; {bad} scores are not numbers" if bad else f", not {scored.total_nats:.6g}"
    return Check("each_token_once", tiled and same and not bad, detail)


def _normalised(probe: Probe) -> Check:
    error = max(1.0 - probe.lowest_sum, probe.highest_sum - 1.0, probe.highest_logp)
    detail = f"{probe.distributions} sums over the vocabulary lie in [{probe.lowest_sum:.8f}, {probe.highest_sum:.8f}]"
    return Check("normalised", error <= SUM_TOLERANCE, detail)


def _score_is_probability(probe: Probe) -> Check:
    places = probe.distributions + probe.recorded_places
    difference = max(probe.score_difference, probe.recorded_difference)
    detail = f"scores equal -log p at {places} places to {difference:.1g} nats"
    if probe.chaos_after is not None:
        detail += f" (looked at the first {probe.chaos_after} tokens: after them this model amplifies rounding)"
    return Check("score_is_probability", difference <= NATS_TOLERANCE, detail)


def _causal(model: LanguageModel, probe: Probe, seed: int) -> Check:
    """Change all tokens from some place on, or cut them off: what came before must cost the same."""
    generator = np.random.Generator(np.random.PCG64(seed))
    V, difference = model.vocab_size, 0.0
    for sample in probe.samples:
        for cut in sample.cuts:
            before = sample.nats_BT[:, :cut]
            futures = [sample.tokens_BT[:, :cut]]
            if V > 1:
                changed_BT = sample.tokens_BT.copy()
                changed_BT[:, cut:] += generator.integers(1, V, size=changed_BT[:, cut:].shape)
                futures.append(changed_BT % V)
            for tokens_BT in futures:
                difference = max(difference, largest_difference(before, score_rows(model, tokens_BT)[:, :cut]))
    cuts = sum(len(sample.cuts) for sample in probe.samples)
    detail = f"another future at {cuts} places moves earlier scores by at most {difference:.1g} nats"
    return Check("causal", difference <= NATS_TOLERANCE, detail)


def _batching(model: LanguageModel, probe: Probe) -> Check:
    """Score each row alone, and all rows backwards and twice."""
    sample = probe.samples[0]
    rows = len(sample.tokens_BT)
    alone = [score_rows(model, sample.tokens_BT[row : row + 1])[0] for row in range(rows)]
    order = [*reversed(range(rows)), *range(rows)]
    together = score_rows(model, sample.tokens_BT[order])
    difference = max(
        largest_difference(sample.nats_BT, np.stack(alone)), largest_difference(sample.nats_BT[order], together)
    )
    detail = f"batches of 1, {rows} and {2 * rows} rows in other orders differ by at most {difference:.1g} nats"
    return Check("batching", difference <= NATS_TOLERANCE, detail)


def _chunking(scored: Scored, probe: Probe) -> Check:
    difference = max(probe.chunk_difference, scored.seam_difference)
    detail = f"one chunk or many: log p differs by at most {probe.chunk_difference:.1g} nats"
    if scored.seams:
        detail += f"; {scored.seams} cuts in long documents by {scored.seam_difference:.1g}"
    return Check("chunking", difference <= NATS_TOLERANCE, detail)


def _hashes(scored: Scored, trip: RoundTrip, hashes: dict[str, str]) -> Check:
    same = trip.sha256 == hashes["data"] and scored.tokenizer_hash == hashes["tokenizer"]
    detail = ", ".join(f"{what} {digest[:12]}" for what, digest in hashes.items())
    return Check("hashes", same, detail if same else f"text or tokenizer changed since they were scored: {detail}")
