"""How good a classifier is: accuracy, macro F1, bits and calibration, each with an interval, beside two that know less.

Intervals are over examples: Wilson's for accuracy, Agresti and Min's for what it is above another's, the jackknife's for
macro F1 and bits (`measure/row_intervals.py`). A calibration error of few examples comes out too large, and of examples drawn
again more so: its interval is of the true errors under which what was found would not be rare. A majority and a bag-of-words
model (naive Bayes with add-one counts) always stand beside: a classifier that does not beat them has learned nothing that
counting words would not tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from lmlab.measure.row_intervals import LEVEL, of_mean, over_rows
from lmlab.results import Figure, OtherResult
from lmlab.text.near_rows import Copied

RESAMPLES = 1000  # for the calibration error
BINS = 10  # of equally many examples, by how sure the classifier is


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Of one classifier on one part."""

    accuracy: Figure
    macro_f1: Figure
    bits: Figure  # that the right label costs
    calibration: Figure  # |how sure it is - how often it is right|, averaged over bins of equally many examples


@dataclass(frozen=True, kw_only=True)
class ClassifierResult(OtherResult):
    """What `lmlab eval` says of a classifier. All shares are between 0 and 1; bits are per label."""

    examples: int
    classes: tuple[str, ...]
    scores: Scores
    majority: Scores
    bag_of_words: Scores
    gain: Figure  # accuracy above the bag of words, paired
    confusion: tuple[tuple[int, ...], ...]  # [right][predicted]
    copied: Copied | None  # from the training part; None: it is the training part
    accuracy_without_copies: Figure | None  # None: there are none, or nothing else

    @property
    def failures(self) -> tuple[str, ...]:
        """Whether too many examples are copies of training examples."""
        return () if self.copied is None or self.copied.is_held_out else ("held_out",)


def scores(p_BK: np.ndarray, labels_B: np.ndarray, seed: int = 0) -> Scores:
    """Of these probabilities."""
    right = of_share(int((p_BK.argmax(1) == labels_B).sum()), len(labels_B))
    f1 = over_rows(_f1_of_counts, _counts(p_BK, labels_B), least=0.0, most=1.0)
    return Scores(
        accuracy=right,
        macro_f1=_as_wide_at_the_ends(f1, right),
        bits=bits(p_BK, labels_B),
        calibration=calibration(p_BK, labels_B, seed),
    )


def accuracy(p_BK: np.ndarray, labels_B: np.ndarray) -> float:
    """Share of the examples whose likeliest label is the right one."""
    return float((p_BK.argmax(1) == labels_B).mean())


def macro_f1(p_BK: np.ndarray, labels_B: np.ndarray) -> float:
    """F1 of each class, averaged over the classes that are there or predicted: of others nothing can be said."""
    return float(_f1_of_counts(_counts(p_BK, labels_B).sum(0, dtype=np.float64)[None])[0])


def _counts(p_BK: np.ndarray, labels_B: np.ndarray) -> np.ndarray:
    """What each example adds to the counts of every class: right, and there or predicted (B×2K)."""
    label_BK, predicted_BK = (np.eye(p_BK.shape[1], dtype=np.uint8)[of_B] for of_B in (labels_B, p_BK.argmax(1)))
    return np.concatenate([label_BK * predicted_BK, label_BK + predicted_BK], axis=1)


def _f1_of_counts(sums_RS: np.ndarray) -> np.ndarray:
    right_RK, both_RK = np.split(sums_RS, 2, axis=1)
    f1_RK = np.divide(2.0 * right_RK, both_RK, out=np.zeros_like(right_RK), where=both_RK > 0)
    found: np.ndarray = f1_RK.sum(1) / np.maximum((both_RK > 0).sum(1), 1)
    return found


def bits(p_BK: np.ndarray, labels_B: np.ndarray) -> Figure:
    """Mean of -log₂ of the probability of the right label."""
    return of_mean(-np.log2(np.maximum(p_BK[np.arange(len(labels_B)), labels_B], 1e-30)), least=0.0)


@dataclass(frozen=True, eq=False)
class Bins:
    """Examples by how sure the classifier is, in N bins of (nearly) equally many; those it is equally sure of share one."""

    examples_N: np.ndarray
    sure_N: np.ndarray  # on average
    right_N: np.ndarray  # share

    @classmethod
    def of(cls, p_BK: np.ndarray, labels_B: np.ndarray) -> Bins:
        """Of these probabilities."""
        sure_B, right_B = p_BK.max(1), p_BK.argmax(1) == labels_B
        bin_B = np.searchsorted(np.quantile(sure_B, np.arange(1, BINS) / BINS), sure_B, side="right")
        _, bin_B, examples_N = np.unique(bin_B, return_inverse=True, return_counts=True)
        return cls(examples_N, np.bincount(bin_B, sure_B) / examples_N, np.bincount(bin_B, right_B) / examples_N)

    def error(self, right_RN: np.ndarray) -> np.ndarray:
        """Expected calibration error, were these the shares that are right."""
        found: np.ndarray = np.abs(right_RN - self.sure_N) @ self.examples_N / self.examples_N.sum()
        return found


def calibration_error(p_BK: np.ndarray, labels_B: np.ndarray) -> float:
    """Expected calibration error over bins of (nearly) equally many examples, by how sure the classifier is."""
    bins = Bins.of(p_BK, labels_B)
    return float(bins.error(bins.right_N))


def calibration(p_BK: np.ndarray, labels_B: np.ndarray, seed: int = 0) -> Figure:
    """The calibration error, and the true ones under which one so large, or so small, would not be rare.

    Chance adds to the error, most where few bins have all of it, least where all have the same gap. So one below is held to lie
    where the largest gaps were found, as far as these go, and one above is spread over all bins.
    """
    bins, tail, least = Bins.of(p_BK, labels_B), (1 - LEVEL) / 2, 1e-9  # a difference that is not one of rounding
    share_N, gap_N = bins.examples_N / bins.examples_N.sum(), bins.right_N - bins.sure_N
    value = float(bins.error(bins.right_N))
    part_N = share_N * np.abs(gap_N)  # of the error
    largest_N = np.argsort(-part_N)
    before_N = np.cumsum(part_N[largest_N]) - part_N[largest_N]

    def found(right_N: np.ndarray, tail: float) -> float:
        """The quantile of the errors that are found where these shares are right in truth."""
        drawn_RN = np.random.default_rng(seed).binomial(bins.examples_N, right_N, (RESAMPLES, len(right_N)))
        return float(np.quantile(bins.error(drawn_RN / bins.examples_N), tail))

    def below(error: float) -> np.ndarray:
        kept_N = np.zeros_like(part_N)
        kept_N[largest_N] = np.clip(error - before_N, 0.0, part_N[largest_N])
        return np.clip(bins.sure_N + np.sign(gap_N) * kept_N / share_N, 0.0, 1.0)

    def above(gap: float) -> np.ndarray:
        return np.clip(bins.sure_N + gap, 0.0, 1.0)

    def can_be_above(gap: float) -> bool:
        return float(bins.error(above(gap))) <= value or found(above(gap), tail) <= value + least

    less = _last(lambda less: found(below(value - less), 1 - tail) >= value - least)
    gaps = _last(can_be_above), -_last(lambda gap: can_be_above(-gap))
    high = max(float(bins.error(above(gap))) for gap in gaps)
    return Figure(value=value, low=max(0.0, value - less), high=max(value, high))


def _last(holds: Callable[[float], bool]) -> float:
    """The largest number up to 1 for which it holds, which it does for all before and for none after, by bisection."""
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def of_share(right: int, examples: int) -> Figure:
    """A share with Wilson's interval, which stays honest near 0 and 1, where resampling sees no mistakes to draw."""
    share, z = right / examples, NormalDist().inv_cdf((1 + LEVEL) / 2)
    centre = (share + z * z / (2 * examples)) / (1 + z * z / examples)
    half = z / (1 + z * z / examples) * math.sqrt(share * (1 - share) / examples + z * z / (4 * examples * examples))
    low = 0.0 if right == 0 else centre - half
    return Figure(value=share, low=low, high=1.0 if right == examples else centre + half)


def _as_wide_at_the_ends(f1: Figure, right: Figure) -> Figure:
    """Who is always right, or never, is so in every draw: there F1, which then is the accuracy, has the interval of that."""
    if right.value not in (0.0, 1.0):
        return f1
    return Figure(value=f1.value, low=min(f1.low, right.low), high=max(f1.high, right.high))


def gain(right_B: np.ndarray, others_B: np.ndarray) -> Figure:
    """How much more often one classifier is right than another on the same examples, with Agresti and Min's interval (2005).

    Half an example is added to each of the four ways in which both can be right or wrong: where two agree on all examples,
    resampling would be sure that they always do.
    """
    examples, z = len(right_B), NormalDist().inv_cdf((1 + LEVEL) / 2)
    more, fewer = int((right_B & ~others_B).sum()), int((~right_B & others_B).sum())
    value, above, below, all_of_them = (more - fewer) / examples, more + 0.5, fewer + 0.5, examples + 2
    centre = (above - below) / all_of_them
    half = z * math.sqrt(above + below - (above - below) ** 2 / all_of_them) / all_of_them
    return Figure(value=value, low=max(-1.0, min(value, centre - half)), high=min(1.0, max(value, centre + half)))


@dataclass(frozen=True)
class BagOfWords:
    """Naive Bayes: log p(label) + Σ log p(word | label), with one added to every count. V words, K labels."""

    log_prior_K: np.ndarray
    log_word_VK: np.ndarray

    @classmethod
    def fit(
        cls, ids_N: np.ndarray, starts_B: np.ndarray, labels_B: np.ndarray, vocab_size: int, labels: int
    ) -> BagOfWords:
        """Count every word of every text."""
        label_N = np.repeat(labels_B, np.diff(starts_B))
        counts_VK = (
            np.bincount(ids_N.astype(np.int64) * labels + label_N, minlength=vocab_size * labels).reshape(-1, labels)
            + 1.0
        )
        classes_K = np.bincount(labels_B, minlength=labels) + 1.0
        return cls(np.log(classes_K / classes_K.sum()), np.log(counts_VK / counts_VK.sum(0)))

    def probabilities(self, ids_N: np.ndarray, starts_B: np.ndarray) -> np.ndarray:
        """B×K."""
        scores_NK = np.concatenate([np.zeros((1, len(self.log_prior_K))), self.log_word_VK[ids_N].cumsum(0)])
        logits_BK = scores_NK[starts_B[1:]] - scores_NK[starts_B[:-1]] + self.log_prior_K
        logits_BK -= logits_BK.max(1, keepdims=True)
        p_BK = np.exp(logits_BK)
        found: np.ndarray = p_BK / p_BK.sum(1, keepdims=True)
        return found


def majority(labels_B: np.ndarray, labels: int, examples: int) -> np.ndarray:
    """The shares of the classes in training, for every example: B×K. One is added to every count, as in the bag of words: a
    class that was not there is rare, not impossible.
    """
    counts_K = np.bincount(labels_B, minlength=labels) + 1.0
    return np.tile(counts_K / counts_K.sum(), (examples, 1))


def log_odds(p: float, q: float) -> float:
    """log p - log q, in nats."""
    return math.log(max(p, 1e-30)) - math.log(max(q, 1e-30))
