"""How good a classifier is: accuracy, macro F1, bits and calibration, each with an interval, beside two that know less.

Intervals are over examples: Wilson's for accuracy, by resampling for the rest. A majority and a bag-of-words model (naive
Bayes with add-one counts) always stand beside: a classifier that does not beat them has learned nothing that counting words
would not tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from lmlab.results import Figure, OtherResult

RESAMPLES, LEVEL = 1000, 0.95
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

    task = "classification"
    examples: int
    classes: tuple[str, ...]
    scores: Scores
    majority: Scores
    bag_of_words: Scores
    gain: Figure  # accuracy above the bag of words, paired
    confusion: tuple[tuple[int, ...], ...]  # [right][predicted]
    leaks: int  # examples that stand in the training part too
    accuracy_without_leaks: float | None  # None: there are none


def scores(p_BK: np.ndarray, labels_B: np.ndarray, seed: int = 0) -> Scores:
    """Of these probabilities."""
    return Scores(
        accuracy=of_share(int((p_BK.argmax(1) == labels_B).sum()), len(labels_B)),
        macro_f1=interval(lambda at: macro_f1(p_BK[at], labels_B[at]), len(labels_B), seed),
        bits=interval(lambda at: bits(p_BK[at], labels_B[at]), len(labels_B), seed),
        calibration=interval(lambda at: calibration_error(p_BK[at], labels_B[at]), len(labels_B), seed),
    )


def accuracy(p_BK: np.ndarray, labels_B: np.ndarray) -> float:
    """Share of the examples whose likeliest label is the right one."""
    return float((p_BK.argmax(1) == labels_B).mean())


def macro_f1(p_BK: np.ndarray, labels_B: np.ndarray) -> float:
    """F1 of each class (0 where it is neither there nor predicted), averaged over the classes."""
    predicted_B, labels = p_BK.argmax(1), p_BK.shape[1]
    right = np.bincount(labels_B[predicted_B == labels_B], minlength=labels)
    both = np.bincount(labels_B, minlength=labels) + np.bincount(predicted_B, minlength=labels)
    return float(np.divide(2 * right, both, out=np.zeros(labels), where=both > 0).mean())


def bits(p_BK: np.ndarray, labels_B: np.ndarray) -> float:
    """Mean of -log₂ of the probability of the right label."""
    return float(-np.log2(np.maximum(p_BK[np.arange(len(labels_B)), labels_B], 1e-30)).mean())


def calibration_error(p_BK: np.ndarray, labels_B: np.ndarray) -> float:
    """Expected calibration error over bins of (nearly) equally many examples, by how sure the classifier is.

    Examples of which it is equally sure share a bin.
    """
    sure_B, right_B = p_BK.max(1), p_BK.argmax(1) == labels_B
    edges = np.quantile(sure_B, np.arange(1, BINS) / BINS)
    bin_B = np.searchsorted(edges, sure_B, side="right")
    gap = np.bincount(bin_B, sure_B - right_B, minlength=BINS)
    return float(np.abs(gap).sum() / len(sure_B))


def of_share(right: int, examples: int) -> Figure:
    """A share with Wilson's interval, which stays honest near 0 and 1, where resampling sees no mistakes to draw."""
    share, z = right / examples, NormalDist().inv_cdf((1 + LEVEL) / 2)
    centre = (share + z * z / (2 * examples)) / (1 + z * z / examples)
    half = z / (1 + z * z / examples) * math.sqrt(share * (1 - share) / examples + z * z / (4 * examples * examples))
    low = 0.0 if right == 0 else centre - half
    return Figure(value=share, low=low, high=1.0 if right == examples else centre + half)


def interval(figure: Callable[[np.ndarray], float], examples: int, seed: int) -> Figure:
    """The figure on all examples, and between which values it lies when examples are drawn again with replacement."""
    random = np.random.default_rng(seed)
    value = figure(np.arange(examples))
    found = [figure(random.integers(0, examples, examples)) for _ in range(RESAMPLES)]
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(found, [tail, 1 - tail])
    return Figure(value=value, low=float(low), high=float(high))


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
    """The shares of the classes in training, for every example: B×K."""
    share_K = np.bincount(labels_B, minlength=labels) / len(labels_B)
    return np.tile(share_K, (examples, 1))


def log_odds(p: float, q: float) -> float:
    """log p - log q, in nats."""
    return math.log(max(p, 1e-30)) - math.log(max(q, 1e-30))
