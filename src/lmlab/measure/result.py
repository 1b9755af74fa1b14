"""A measured result: bits per byte with its interval, perplexities, certificate, and what it was measured on."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmlab.config import recorded
from lmlab.identity import is_ours, kind_name, parameter_count
from lmlab.measure.certificate import Certificate, certify
from lmlab.measure.counted import count_within
from lmlab.measure.interval import Interval, interval
from lmlab.measure.near_copies import AtHand, HeldOut, held_out
from lmlab.measure.result_document import IntervalDetails, ResultDocument
from lmlab.measure.score import Progress, score_part, stage
from lmlab.measure.scored import Scored
from lmlab.measure.spread_sample import Spread, derived_seed, everything
from lmlab.measure.walk import Copies, CopyMaker, Walks, walk_through
from lmlab.page import numbers
from lmlab.text.plain_words import are_words

if TYPE_CHECKING:
    from lmlab.interface import ContextPolicy, LanguageModel
    from lmlab.text.fingerprint import Fingerprint
    from lmlab.text.parts import Part
    from lmlab.text.stream import TokenStream
    from lmlab.text.tokenizers import Tokenizer

BITS_OF_A_BYTE = 8
ROUNDING = 1e-6  # of bits per byte: a uniform model of bytes has 8, give or take the last digit
UNITS = {
    "token": "e to the nats per token, spelling included; compare only under one tokenizer",
    "word": "e to the nats of the whole text per whitespace-separated word",
    "character": "e to the nats of the whole text per Unicode character",
    "closed_vocabulary": "e to the nats per word and line end, where an unknown word costs its symbol alone and"
    " other whitespace is not counted: what textbooks print, not a probability of the text",
    "known_words": "the same without unknown words and their symbols, as KenLM's 'excluding OOVs'; the closed vocabulary is"
    " its 'including OOVs'",
}


def called(unit: str) -> str:
    """A perplexity in words."""
    if unit == "known_words":
        return "perplexity per token without unknown words"
    return "perplexity per token of the closed vocabulary" if unit == "closed_vocabulary" else f"perplexity per {unit}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """What `evaluate` found."""

    scored: Scored
    interval: Interval
    certificate: Certificate
    held_out: HeldOut
    context: ContextPolicy
    seconds: float
    model: dict[str, Any]
    data: dict[str, Any]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        verdict = self.certificate.verdict.partition(":")[0]
        low, high = self.interval.low, self.interval.high
        spread = "" if low is None or high is None else f" ({self._level} interval {low:.4f} to {high:.4f})"
        return f"Result({self.bits_per_byte:.4f} bits per byte{spread}, {self._about}, {verdict})"

    @property
    def _level(self) -> str:
        return f"{100 * self.interval.level:.6g}%"  # 99.9% is no 100%

    @property
    def _about(self) -> str:
        part = "" if self.data["part"] == "whole" else f"the {self.data['part']} part of "
        return f"{self.model['name']} on {part}{self.data['name']}"

    def _repr_html_(self) -> str:
        """The result in a notebook: the number, its relatives, and what was checked."""
        from lmlab.page.notebook import panel

        low, high = self.interval.low, self.interval.high
        facts = {} if low is None or high is None else {"interval": f"{low:.4f} to {high:.4f} ({self._level})"}
        units = {unit: value for unit, value in self.perplexity.items() if math.isfinite(value) and unit in UNITS}
        if not self.has_words:
            units.pop("word", None)
        facts |= {called(unit): numbers.perplexity(value) for unit, value in units.items()}
        facts["measured"] = (
            f"{numbers.counted(self.scored.bytes, 'byte')}, {numbers.counted(self.scored.tokens, 'token')}"
        )
        facts["certificate"] = self.certificate.verdict
        return panel(f"{self.bits_per_byte:.4f} bits per byte: {self._about}", facts, notes=" · ".join(self.notes))

    @property
    def bits_per_byte(self) -> float:
        """The number."""
        return self.scored.bits_per_byte

    @property
    def certified(self) -> bool:
        """Whether every check of the certificate passed; only then may the number be ranked."""
        return self.certificate.passed

    @property
    def has_words(self) -> bool:
        """Whether a figure per word means anything: of a text without spaces words are as long as lines."""
        return are_words(self.scored.chars, self.scored.words)

    @property
    def perplexity(self) -> dict[str, float]:
        """Perplexities by unit (see `UNITS`), and the share of unknown words where there can be any."""
        scored = self.scored
        found = {
            "token": _exp(scored.total_nats, scored.tokens),
            "word": _exp(scored.total_nats, scored.words),
            "character": _exp(scored.total_nats, scored.chars),
        }
        if scored.closed_tokens:
            found["closed_vocabulary"] = _exp(scored.closed_nats, scored.closed_tokens)
            found["known_words"] = _exp(scored.known_nats, scored.closed_tokens - scored.closed_unknown)
            found["unknown_share"] = scored.closed_unknown / scored.closed_tokens
        return found

    @property
    def document(self) -> ResultDocument:
        """The result as its JSON document: numbers that are infinite or undefined are None, and `notes` say why."""
        scored, interval, certificate = self.scored, self.interval, self.certificate
        perplexity = self.perplexity
        bounded = interval.low is not None and math.isfinite(interval.low)
        return ResultDocument(
            bits_per_byte=_number(self.bits_per_byte),
            interval=(_number(interval.low), _number(interval.high)) if bounded else None,
            interval_details=IntervalDetails(
                level=interval.level,
                about=interval.about,
                units=interval.units,
                freedom=interval.freedom,
                note=interval.note,
            ),
            nats=_number(scored.total_nats),
            spelling_nats=_number(scored.spelling_nats),
            bytes=scored.bytes,
            characters=scored.chars,
            words=scored.words,
            tokens=scored.tokens,
            unknown_tokens=scored.unknown_tokens,
            fallback_tokens=scored.fallback_tokens,
            impossible_tokens=scored.impossible_tokens,
            perplexity={name: _number(value) for name, value in perplexity.items()},
            perplexity_units={name: unit for name, unit in UNITS.items() if name in perplexity},
            context=self.context.to_json(),
            held_out=self.held_out,
            certified=self.certified,
            verdict=certificate.verdict,
            certificate={check.name: check.passed for check in certificate.checks},
            certificate_details={check.name: check.detail for check in certificate.checks},
            certificate_seconds=certificate.seconds,
            seconds=self.seconds,
            model=self.model,
            data=self.data,
            notes=tuple(self.notes),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document."""
        return self.document.to_json()


def evaluate(
    model: LanguageModel,
    tokenizer: Tokenizer,
    text: Part | Spread,
    *,
    name: str = "",
    folder: Path | str | None = None,
    level: float = 0.95,
    seed: int = 0,
    copies: Callable[[], CopyMaker] | None = None,
    learned_from: Sequence[Fingerprint] = (),
    at_hand: AtHand | None = None,
    settings: Sequence[str] = (),
    known_hash: str | None = None,
    progress: Progress | None = None,
) -> Result:
    """Score a part of a corpus, or stretches spread over it, and certify the number.

    name: of the corpus, for the record. folder: where token files are kept; None: nowhere.
    level: of the confidence interval. seed: of the sample that the certificate looks at.
    copies: begins to make copies of the model for the certificate; without it, they are made from what the model would save.
    learned_from: fingerprints of all texts the model was trained on; none where that is not known.
    at_hand: gives the training text of a SHA-256, where its bytes are on disk.
    settings: the strings of the model's settings and its tokenizer, which must not hold the text.
    known_hash: of the model, where somebody worked it out before (`lmlab.identity.model_hash`).
    progress: told what is being done, and how much of it is done.
    """
    started = time.perf_counter()
    chosen = text if isinstance(text, Spread) else everything(text)
    copied = Copies(model) if copies is None else copies()
    copied_s = time.perf_counter() - started
    walks: list[Walks] = []

    def walk_first(stream: TokenStream) -> None:
        """Before the model is shown anything of the text, so that nothing of it can be remembered."""
        walks.append(walk_through(copied, stream, derived_seed(chosen.part, seed), stage(progress, "walk")))

    read = score_part(model, tokenizer, chosen.part, folder=folder, progress=progress, before=walk_first)
    looked = time.perf_counter()
    known = held_out(learned_from, chosen.counted(), at_hand, settings)
    looked_s = time.perf_counter() - looked
    # of all that was read, history included
    certificate = certify(model, tokenizer, read, seed=seed, walks=walks[0], held_out=known, known_hash=known_hash)
    certificate = dataclasses.replace(certificate, seconds=copied_s + looked_s + certificate.seconds)
    scored = count_within(tokenizer, read, chosen)
    found = interval(scored, level=level)
    return Result(
        scored=scored,
        interval=found,
        certificate=certificate,
        held_out=known,
        context=model.policy,
        seconds=time.perf_counter() - started,
        model={
            "name": kind_name(model),
            "config": recorded(model.config),
            "tokenizer": tokenizer.spec,
            "vocab_size": model.vocab_size,
            "parameters": parameter_count(model),
            "hash": certificate.hashes["model"],
            "tokenizer_hash": certificate.hashes["tokenizer"],
        },
        data={
            "name": name,
            "part": chosen.whole.name,
            "bytes": scored.bytes,
            "sha256": chosen.counted().sha256,
            "documents": len(chosen.whole.documents),
            "measured": chosen.to_json(),
        },
        notes=(*(model.notes if is_ours(model) else ()), *_notes(scored, found, tokenizer)),
    )


def _notes(scored: Scored, found: Interval, tokenizer: Tokenizer) -> list[str]:
    notes = []
    if BITS_OF_A_BYTE + ROUNDING < scored.bits_per_byte < math.inf:
        per_token = scored.bits_per_byte * scored.bytes / max(1, scored.tokens)
        holds_all_alike = math.isclose(per_token, math.log2(tokenizer.vocab_size), rel_tol=1e-4)
        why = (
            "which is worse than knowing nothing: this text is unlike what the model learned from, or it learned little"
        )
        if holds_all_alike and tokenizer.spare_bytes:
            why = (
                f"because {tokenizer.spec} tokens hold {tokenizer.spare_bytes} bytes in store for characters never"
                " seen, which a text of known characters does not need and this model does not rule out"
            )
        notes.append(f"more than {BITS_OF_A_BYTE} bits per byte, {why}")
    if scored.impossible_tokens:
        notes.append(
            f"{scored.impossible_tokens} of {scored.tokens} tokens have probability zero under this model,"
            " so bits per byte and perplexity are infinite; smoothing makes them finite"
        )
    if found.low is None:
        notes.append(found.note)
    return notes


def _exp(nats: float, units: int) -> float:
    """e to the nats per unit; infinite where that overflows, undefined where there are no units."""
    if not units:
        return math.nan
    try:
        return math.exp(nats / units)
    except OverflowError:
        return math.inf


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
