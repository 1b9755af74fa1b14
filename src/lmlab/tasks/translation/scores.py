"""How good translations are: BLEU and chrF as sacrebleu computes them, and bits per byte of the target given the source.

BLEU and chrF compare what a search wrote with one translation that somebody else wrote; bits per byte is of that translation
itself, its end included, and needs no search. Intervals are over sentences, by the jackknife (`measure/row_intervals.py`): a
percentile bootstrap of fewer than fifty sentences is too narrow.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lmlab.config import Mistake
from lmlab.measure import Certificate
from lmlab.measure.row_intervals import of_quotient, over_rows
from lmlab.records import in_json
from lmlab.results import Figure, OtherResult
from lmlab.text.near_rows import Copied

RESAMPLES = 1000  # for the p-value of a difference
MISSING = "BLEU and chrF are computed by sacrebleu, which is not installed: pip install 'lmlab[translate]'"


@dataclass(frozen=True, kw_only=True)
class Against:
    """How a run does against another on the same sentences. p: of sacrebleu's paired bootstrap."""

    bleu: Figure  # more than the other
    bleu_p: float
    chrf: Figure
    chrf_p: float
    bits_per_byte: Figure  # more than the other; below zero is better


@dataclass(frozen=True, kw_only=True)
class WithoutCopies:
    """The same figures without the rows whose sources are copies or near copies of training rows."""

    sentences: int
    bits_per_byte: Figure
    bleu: Figure | None
    chrf: Figure | None


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
    without_copies: WithoutCopies | None = None  # None: there are none, or no other rows


@dataclass(frozen=True, kw_only=True)
class TranslationResult(OtherResult):
    """What `lmlab eval` says of a translator. BLEU and chrF are from 0 to 100."""

    source: str
    sentences: int
    into: tuple[Into, ...]
    beam: int
    length_penalty: float
    signatures: dict[str, str]  # of BLEU and chrF: all that their numbers depend on
    certificate: Certificate
    copied: Copied  # sources, from the training part
    against: str | None = None  # the folder of the other run

    @property
    def failures(self) -> tuple[str, ...]:
        """Of the certificate."""
        return tuple(self.certificate.failures)

    @property
    @in_json
    def certified(self) -> bool:
        """Whether every check of the certificate passed."""
        return self.certificate.passed


def has_sacrebleu() -> bool:
    """Whether BLEU and chrF can be had."""
    return importlib.util.find_spec("sacrebleu") is not None


@dataclass(frozen=True, kw_only=True)
class Compared:
    """BLEU or chrF of translations, and how much more they have than others."""

    figure: Figure
    signature: str
    more: Figure | None = None  # None: there are no others
    p: float = 1.0


def bleu_and_chrf(
    written: Sequence[str], references: Sequence[str], others: Sequence[str] | None = None
) -> dict[str, Compared]:
    """Both with intervals and signatures; with others, what ours have more and the p-value of sacrebleu's paired bootstrap."""
    metrics = _metrics()
    p_values = dict.fromkeys(metrics, 1.0) if others is None else _p_values(metrics, written, references, others)
    results = {}
    for name, metric in metrics.items():
        ours_BS = _sums_of(metric, written, references)
        of_sums = partial(_scores_of, metric)
        more = None
        if others is not None:
            both_BS = np.concatenate([ours_BS, _sums_of(metric, others, references)], axis=1)
            more = over_rows(partial(_difference, metric), both_BS, least=-100.0, most=100.0)
        figure = over_rows(of_sums, ours_BS, least=0.0, most=100.0)
        signature = str(metric.get_signature().format())
        results[name] = Compared(figure=figure, signature=signature, more=more, p=p_values[name])
    return results


def _sums_of(metric: Any, written: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """What each sentence adds to the counts that a score is computed from."""
    found: np.ndarray = np.array(metric._extract_corpus_statistics(list(written), [list(references)]), dtype=np.float64)
    return found


def _scores_of(metric: Any, sums_RS: np.ndarray) -> np.ndarray:
    return np.array([metric._compute_score_from_stats(sums).score for sums in sums_RS.astype(np.int64).tolist()])


def _difference(metric: Any, sums_RS: np.ndarray) -> np.ndarray:
    ours_RS, theirs_RS = np.split(sums_RS, 2, axis=1)
    return _scores_of(metric, ours_RS) - _scores_of(metric, theirs_RS)


def _p_values(
    metrics: dict[str, Any], written: Sequence[str], references: Sequence[str], others: Sequence[str]
) -> dict[str, float]:
    from sacrebleu.significance import PairedTest

    systems: Any = [("others", list(others)), ("ours", list(written))]
    found: Any = PairedTest(systems, metrics, [list(references)], test_type="bs", n_samples=RESAMPLES)()
    p_values = {}
    for name, scored in (("bleu", found[1]["BLEU"]), ("chrf", found[1]["chrF2"])):
        theirs, ours = scored
        p_values[name] = (
            float(ours.p_value) if ours.score != theirs.score else 1.0
        )  # sacrebleu calls no difference rare
    return p_values


def plain_scores(written: Sequence[str], references: Sequence[str]) -> tuple[float, float]:
    """BLEU and chrF alone."""
    bleu, chrf = (metric.corpus_score(list(written), [list(references)]).score for metric in _metrics().values())
    return float(bleu), float(chrf)


def _metrics() -> dict[str, Any]:
    if not has_sacrebleu():
        raise Mistake(MISSING, code="sacrebleu-missing")
    from sacrebleu.metrics import BLEU, CHRF

    return {"bleu": BLEU(), "chrf": CHRF()}


def bits_per_byte(nats_B: np.ndarray, bytes_B: np.ndarray, less_nats_B: np.ndarray | None = None) -> Figure:
    """Of sentences that cost so many nats, with an interval; less_nats_B: those of another model, to be subtracted."""
    bits_B = (nats_B if less_nats_B is None else nats_B - less_nats_B) / math.log(2)
    return of_quotient(bits_B, bytes_B, least=0.0 if less_nats_B is None else -math.inf)
