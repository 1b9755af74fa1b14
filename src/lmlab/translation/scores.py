"""How good translations are: BLEU and chrF as sacrebleu computes them, and bits per byte of the target given the source.

BLEU and chrF compare what a search wrote with one translation that somebody else wrote; bits per byte is of that translation
itself, its end included, and needs no search. Intervals are over sentences, by resampling.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmlab.config import Mistake
from lmlab.measure import Certificate
from lmlab.results import Figure, OtherResult

RESAMPLES, LEVEL = 1000, 0.95
MISSING = "BLEU and chrF are computed by sacrebleu, which is not installed: pip install 'lmlab[translate]'"


@dataclass(frozen=True, kw_only=True)
class Against:
    """How a run does against another on the same sentences. p: how often chance alone would bring such a difference."""

    bleu: float  # more than the other
    bleu_p: float
    chrf: float
    chrf_p: float
    bits_per_byte: Figure  # more than the other; below zero is better


@dataclass(frozen=True, kw_only=True)
class Into:
    """Of one language. copied: what the sources themselves, untranslated, would score."""

    language: str
    bytes: int
    bits_per_byte: Figure
    bleu: Figure | None  # None: sacrebleu is not there
    chrf: Figure | None
    copied_bleu: float | None
    copied_chrf: float | None
    unended: int  # translations that were cut because they did not end
    against: Against | None = None


@dataclass(frozen=True, kw_only=True)
class TranslationResult(OtherResult):
    """What `lmlab eval` says of a translator. BLEU and chrF are from 0 to 100."""

    task = "translation"
    source: str
    sentences: int
    into: tuple[Into, ...]
    beam: int
    length_penalty: float
    signatures: dict[str, str]  # of BLEU and chrF: all that their numbers depend on
    certificate: Certificate
    against: str | None = None  # the folder of the other run

    def to_json(self) -> dict[str, Any]:
        """As one document."""
        return {**super().to_json(), "certified": self.certificate.passed}


def has_sacrebleu() -> bool:
    """Whether BLEU and chrF can be had."""
    return importlib.util.find_spec("sacrebleu") is not None


@dataclass(frozen=True, kw_only=True)
class Compared:
    """BLEU or chrF of translations, and of others how much less they have (0 where there are none)."""

    figure: Figure
    signature: str
    more: float = 0.0
    p: float = 1.0


def bleu_and_chrf(
    written: Sequence[str], references: Sequence[str], others: Sequence[str] | None = None
) -> dict[str, Compared]:
    """Both with their intervals and signatures; with others, by sacrebleu's paired bootstrap, what ours have more."""
    metrics = _metrics()
    from sacrebleu.significance import PairedTest

    systems: Any = [(str(i), list(texts)) for i, texts in enumerate((others, written)) if texts is not None]
    found: Any = PairedTest(systems, metrics, [list(references)], test_type="bs", n_samples=RESAMPLES)()
    signatures, scores = found
    results = {}
    for name, metric in (("bleu", "BLEU"), ("chrf", "chrF2")):
        ours = scores[metric][-1]
        figure = Figure(value=float(ours.score), low=float(ours.mean - ours.ci), high=float(ours.mean + ours.ci))
        beside: dict[str, float] = {}
        if others is not None:
            more = float(ours.score - scores[metric][0].score)
            p = float(ours.p_value) if more else 1.0  # sacrebleu calls no difference a rare one
            beside = {"more": more, "p": p}
        results[name] = Compared(figure=figure, signature=signatures[metric].format(), **beside)
    return results


def plain_scores(written: Sequence[str], references: Sequence[str]) -> tuple[float, float]:
    """BLEU and chrF alone."""
    bleu, chrf = (metric.corpus_score(list(written), [list(references)]).score for metric in _metrics().values())
    return float(bleu), float(chrf)


def _metrics() -> dict[str, Any]:
    if not has_sacrebleu():
        raise Mistake(MISSING)
    from sacrebleu.metrics import BLEU, CHRF

    return {"bleu": BLEU(), "chrf": CHRF()}


def bits_per_byte(nats_B: np.ndarray, bytes_B: np.ndarray, seed: int, less_nats_B: np.ndarray | None = None) -> Figure:
    """Of sentences that cost so many nats, with an interval; less_nats_B: those of another model, to be subtracted."""
    nats_B = nats_B if less_nats_B is None else nats_B - less_nats_B
    drawn = np.random.default_rng(seed).multinomial(len(nats_B), np.full(len(nats_B), 1 / len(nats_B)), RESAMPLES)
    values = (drawn @ nats_B) / (drawn @ bytes_B) / math.log(2)
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    whole = float(nats_B.sum() / bytes_B.sum() / math.log(2))
    return Figure(value=whole, low=float(low), high=float(high))
