"""The certificate: what was checked before a number is believed, by name, with the numbers seen.

Checks of the text read all of it, piece by piece. Checks of the model hold what was recorded against copies of the model, which
had not seen the text, at places drawn over all of it. Each guards against a mistake that makes a model look too good.

    bytes_counted         the bytes that tokens stand for are the bytes of the file, document by document
    lossless              the tokens that were scored decode to the text, byte for byte
    unknown_words_paid    every unknown symbol has a spelling, and its nats were added
    each_token_once       the scores fill the text without gap or overlap, and their sum is the total
    normalised            probabilities over the full vocabulary sum to one, and none is above one
    score_is_probability  the recorded scores are the logarithms of what a copy says that has seen only what came before, one
                          by one and on average
    causal                other tokens later, or none, leave earlier scores as they are
    batching              so do other rows beside it, and the order of rows
    chunking              so does the division into chunks (advance), and into pieces of long documents (score)
    hashes                text, tokenizer and model are named by SHA-256, and the text is still the one that was scored
    kept_apart            code that is not the lab's own had nothing to look its answers up in: its copies answered in a process
                          that began before the text was scored, without files and network
    held_out              the text is no copy, exact or near, of what the model was trained on; not known where no
                          fingerprint of that tells

docs/certificates.md says what it cannot see, with measured rates.

Shapes: P places, T tokens.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmlab.identity import is_ours, model_hash
from lmlab.measure.agreement import LEAN_TOLERANCE, NATS_TOLERANCE
from lmlab.measure.near_copies import NOT_KNOWN
from lmlab.measure.recorded_scores import Held, Recorded, hold_against
from lmlab.measure.rescore import Found, Rescorer
from lmlab.measure.roundtrip import RoundTrip, round_trip
from lmlab.measure.score import evaluating
from lmlab.measure.spread_sample import derived_seed
from lmlab.measure.tally import PIECE_TOKENS, pieces, spelling_nats_of
from lmlab.measure.walk import Copies, CopyMaker, Load, Walked, Walks, walk_through

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel
    from lmlab.measure.near_copies import HeldOut
    from lmlab.measure.scored import Scored
    from lmlab.text.spelling import Spelling
    from lmlab.text.tokenizers import Tokenizer

SPELLINGS, CHEAPEST = (
    8,
    6,
)  # words at which the spelling model is checked: by chance, and those that cost least for a letter
SPELLING_SYMBOLS = 16  # of each of them

SUM_TOLERANCE = 1e-5
"""How far a sum of probabilities may be from 1. Rounding a log-probability of -20 to float32 moves it by 1e-6, and the
normaliser of a softmax adds as much; ten times that. It bounds the gain by cheating to as many nats a token."""

ASKED_BY = {  # what a check asks, of those that can be not known
    "held_out": "whether the text was held out",
    "kept_apart": "whether the model's code could look up what it was asked",
}


@dataclass(frozen=True)
class Check:
    """One check: its name, whether it passed (None: not known), and a line with the numbers."""

    name: str
    passed: bool | None
    detail: str

    @property
    def word(self) -> str:
        """The outcome in words."""
        return "not known" if self.passed is None else "passed" if self.passed else "failed"


@dataclass(frozen=True)
class Certificate:
    """All checks of one result."""

    checks: tuple[Check, ...]
    hashes: dict[str, str]
    seconds: float = 0.0  # that checking took, from the first copy to the look into the training text

    @property
    def passed(self) -> bool:
        """Whether every check passed; only then is a result ranked. What is not known has not passed."""
        return all(check.passed is True for check in self.checks)

    @property
    def failures(self) -> list[str]:
        """The names of the checks that failed."""
        return [check.name for check in self.checks if check.passed is False]

    @property
    def not_known(self) -> list[str]:
        """The names of the checks of which nobody knows whether they pass."""
        return [check.name for check in self.checks if check.passed is None]

    @property
    def verdict(self) -> str:
        """The outcome of all checks in words."""
        if self.passed:
            return f"certified: all {len(self.checks)} checks passed"
        if self.failures:
            return f"NOT certified: {', '.join(self.failures)} failed"
        unknown = f"not certified: {' and '.join(map(ASKED_BY.__getitem__, self.not_known))} is not known"
        others = len(self.checks) - len(self.not_known)
        return f"the number holds ({others} checks passed); {unknown}" if self.not_known == ["held_out"] else unknown


def certify(
    model: LanguageModel,
    tokenizer: Tokenizer,
    scored: Scored,
    *,
    seed: int = 0,
    walks: Walks | None = None,
    load: Load | None = None,
    held_out: HeldOut | None = None,
    known_hash: str | None = None,
) -> Certificate:
    """Check a result; the text's hash and `seed` choose the places.

    walks: taken before the text was scored, so that nothing could be remembered of it; without them they are taken now, by
        copies of the model as it is (`load` brings it from disk instead).
    held_out: what is known of the text's part in training.
    known_hash: of the model, where it is known; otherwise it is worked out, which large tables make long.
    """
    started = time.perf_counter()
    trip = round_trip(tokenizer, scored.part, scored.stream)
    hashes = {
        "data": scored.part.sha256,
        "tokenizer": tokenizer.hash,
        "model": known_hash or model_hash(model, tokenizer),
    }
    drawn = derived_seed(scored.part, seed)
    if walks is None:
        walks = walk_through(Copies(model, load), scored.stream, drawn)
    with evaluating(model):
        recorded = Recorded.of(tokenizer, scored)
        held = hold_against(walks, recorded)
        again = Rescorer(walks.copies, scored.stream, np.random.Generator(np.random.PCG64(drawn)))
        checks: tuple[Check, ...] = (
            _bytes_counted(scored, trip),
            _lossless(trip),
            _unknown_words_paid(tokenizer, scored, drawn),
            _each_token_once(scored),
            _normalised([*walks.all, *([] if held.again is None else [held.again])], recorded.lowest),
            _score_is_probability(held, walks.copies.way),
            _causal(again.causal(scored, recorded.ordinary_T)),
            _batching(again.batching(scored, recorded.ordinary_T)),
            _chunking(scored, again.chunking()),
            _hashes(scored, trip, hashes),
        )
    checks += (_kept_apart(model, walks.copies), _held_out(held_out))
    return Certificate(checks, hashes, walks.seconds + time.perf_counter() - started)


def _kept_apart(model: LanguageModel, copies: CopyMaker) -> Check:
    """Whether a model could look up what it is asked. The lab's own code does not."""
    if copies.apart is not None:
        return Check("kept_apart", True, copies.apart)
    if is_ours(model):
        other = f" and that of {model.library}, none of it from the folder," if model.library else ","
        detail = f"the code of this model is lmlab's own{other} which keeps nothing and reads no files"
        return Check("kept_apart", True, detail)
    why = "the code of this model is not lmlab's own, and ran in the process that checked it"
    return Check("kept_apart", None, why)


def _held_out(found: HeldOut | None) -> Check:
    if found is None or found.verdict == "unknown":
        return Check("held_out", None, NOT_KNOWN if found is None else found.detail)
    return Check("held_out", found.verdict == "held out", found.detail)


def _bytes_counted(scored: Scored, trip: RoundTrip) -> Check:
    """Compare the bytes of the tokens with the file, not with what the tokenizer says the file holds."""
    counted = int(scored.byte_ends[-1])
    sizes = [d.size for d in scored.part.documents]
    starts = scored.stream.starts
    ends = np.where(starts > 0, scored.byte_ends[starts - 1], 0)
    wrong = int((np.diff(ends) != sizes).sum())
    passed = counted == scored.bytes == trip.bytes_read and not wrong
    detail = f"tokens stand for {counted} bytes, the text has {trip.bytes_read}"
    return Check("bytes_counted", passed, detail + (f"; {wrong} documents differ" if wrong else ""))


def _lossless(trip: RoundTrip) -> Check:
    if trip.first_difference is None:
        return Check("lossless", True, f"all {trip.bytes_read} bytes come back from the tokens")
    return Check("lossless", False, f"the decoded text differs from byte {trip.first_difference} on")


def _unknown_words_paid(tokenizer: Tokenizer, scored: Scored, seed: int) -> Check:
    """Spell the words again from the stream and compare with what was added to the total; some of them letter by letter."""
    unknown, unpaid = scored.unknown_tokens, scored.unspelled_tokens
    if unpaid:
        return Check("unknown_words_paid", False, f"{unpaid} of {unknown} unknown words were not paid for")
    spelling = tokenizer.spelling
    if spelling is None or not unknown:
        return Check("unknown_words_paid", not unknown, f"{unknown} unknown words")
    owed, cheapest = _owed(spelling, (piece.words for piece in pieces(scored.stream, tokenizer.unknown_id)))
    at = np.random.Generator(np.random.PCG64(seed)).integers(len(scored.stream.spellings), size=SPELLINGS)
    by_chance = [scored.stream.spellings[i] for i in np.unique(at).tolist()]
    proper = _spells_properly(spelling, list(dict.fromkeys(by_chance + cheapest)))
    passed = math.isclose(owed, scored.spelling_nats, rel_tol=1e-9) and proper <= SUM_TOLERANCE
    return Check(
        "unknown_words_paid",
        passed,
        f"{unknown} unknown words cost {owed:.6g} nats, {scored.spelling_nats:.6g} were added;"
        f" spelling probabilities are right to {proper:.1g}",
    )


def _owed(spelling: Spelling, spelled: Iterable[Sequence[str]]) -> tuple[float, list[str]]:
    """Nats of all words, and the few that cost least for a letter: where some are too cheap, they are among these."""
    owed: list[float] = []
    per_letter: dict[str, float] = {}
    for words in spelled:
        if not words:
            continue
        nats = spelling_nats_of(spelling, words)
        owed.append(float(nats.sum()))
        share = nats / (np.fromiter(map(len, words), dtype=np.float64, count=len(words)) + 1.0)
        for index in np.argsort(share, kind="stable")[: 100 * CHEAPEST].tolist():  # a word may come again and again
            per_letter.setdefault(words[index], float(share[index]))
        per_letter = dict(sorted(per_letter.items(), key=lambda each: each[1])[:CHEAPEST])
    return math.fsum(owed), list(per_letter)


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


def _normalised(walked: Sequence[Walked], lowest: float) -> Check:
    """lowest: recorded, nats."""
    sums, error = np.concatenate([found.sums_P for found in walked]), _improper(walked)
    detail = f"{len(sums)} sums over the vocabulary lie in [{sums.min():.8f}, {sums.max():.8f}]"
    if lowest < -SUM_TOLERANCE:
        detail += f"; the lowest recorded score is {lowest:.3g} nats, a probability above one"
    return Check("normalised", max(error, -lowest) <= SUM_TOLERANCE, detail)


def _improper(walked: Sequence[Walked]) -> float:
    """The largest error of a sum of probabilities, or log-probability above zero."""
    return max(float(max(np.abs(found.sums_P - 1.0).max(), found.highest_P.max())) for found in walked)


def _score_is_probability(held: Held, way: str) -> Check:
    detail = (
        f"recorded scores equal -log p at {held.places} places in {held.documents} documents, down to token"
        f" {held.deepest:,} of one, to {held.difference:.1g} nats, as a copy ({way}) says that was shown only what came before"
    )
    if held.again is not None:
        detail += f"; {len(held.again.nats_P)} of them were walked to from the beginning"
    if held.chaotic:
        detail += f"; {held.chaotic} were compared in the mean, because this model amplifies rounding"
    if held.lean > LEAN_TOLERANCE:
        detail += f"; but they differ by {held.lean:.1g} nats on average, where rounding would go either way"
    passed = held.difference <= NATS_TOLERANCE and held.lean <= LEAN_TOLERANCE
    return Check("score_is_probability", passed, detail)


def _causal(found: Found) -> Check:
    detail = (
        f"another future moves {found.scores} earlier scores by at most {found.difference:.1g} nats,"
        f" up to token {found.deepest:,}"
    )
    return Check("causal", found.difference <= NATS_TOLERANCE, detail)


def _batching(found: Found) -> Check:
    detail = (
        f"{found.scores} scores in batches of 1 and 6 rows of {found.deepest:,} tokens, in other orders,"
        f" differ by at most {found.difference:.1g} nats"
    )
    return Check("batching", found.difference <= NATS_TOLERANCE, detail)


def _chunking(scored: Scored, found: Found) -> Check:
    detail = (
        f"one chunk of up to {found.deepest:,} tokens or several: log p differs by at most {found.difference:.1g} nats"
    )
    if scored.seams:
        detail += f"; {scored.seams} cuts in long documents by {scored.seam_difference:.1g}"
    return Check("chunking", max(found.difference, scored.seam_difference) <= NATS_TOLERANCE, detail)


def _hashes(scored: Scored, trip: RoundTrip, hashes: dict[str, str]) -> Check:
    same = trip.sha256 == hashes["data"] and scored.tokenizer_hash == hashes["tokenizer"]
    detail = ", ".join(f"{what} {digest[:12]}" for what, digest in hashes.items())
    return Check("hashes", same, detail if same else f"text or tokenizer changed since they were scored: {detail}")
