"""Does the 95% interval of a classifier's calibration error hold the true error, 95 times of 100?

    python bench/bench_calibration.py [--draws 100] [--bins 10] [--write]

Classifiers are made up: how sure they are is drawn, and how often they are right given that is known, so that the true error
over bins of equally many examples is an average over a million draws. The method was developed on the kinds with a star; the
records are of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from unittest import mock

import numpy as np

from lmlab.tasks.classification import scores
from record import Recorder, arguments

Sureness = Callable[[np.random.Generator, int], np.ndarray]
SIZES = (40, 200, 1000)  # examples
RESAMPLES = 300  # fewer than usual: there are many intervals to be made
LOWEST = 0.9


@dataclass(frozen=True)
class Kind:
    """A kind of classifier."""

    name: str
    sure: Sureness
    right: Callable[[np.ndarray], np.ndarray]  # how often, of how sure it is


def uniform(low: float) -> Sureness:
    return lambda random, examples: random.uniform(low, 1, examples)


def logit(spread: float) -> Sureness:
    return lambda random, examples: 1 / (1 + np.exp(-np.abs(random.normal(0, spread, examples))))


def sharp(random: np.random.Generator, examples: int) -> np.ndarray:
    return 1 - random.beta(1, 30, examples)


KINDS = (
    Kind("calibrated*", uniform(0.5), lambda s: s),
    Kind("overconfident by 0.1*", uniform(0.5), lambda s: s - 0.1),
    Kind("wrong where sure*", uniform(0.5), lambda s: np.where(s > 0.75, s - 0.4, s)),
    Kind("wrong where surest*", uniform(0.5), lambda s: np.where(s > 0.95, s - 0.5, s)),
    Kind("calibrated, many classes", uniform(0.1), lambda s: s),
    Kind("calibrated, mostly sure", lambda r, n: r.beta(8, 1, n) / 2 + 0.5, lambda s: s),
    Kind("logits twice too large", logit(2.5), lambda s: 1 / (1 + ((1 - s) / s) ** 0.5)),
    Kind("logits half as large", logit(0.8), lambda s: 1 / (1 + ((1 - s) / s) ** 2)),
    Kind("sure, a little too much", sharp, lambda s: s - 0.03),
    Kind("always 0.8 right", uniform(0.6), lambda s: np.full_like(s, 0.8)),
    Kind("wrong where unsure", uniform(0.4), lambda s: np.where(s < 0.52, s - 0.3, s)),
    Kind("now over, now under", uniform(0.3), lambda s: np.clip(s + 0.2 * np.sign(np.sin(15 * s)), 0, 1)),
)


@cache
def true_error(kind: Kind, bins: int) -> float:
    """Over bins of equally many of all examples there could be."""
    sure_B = kind.sure(np.random.default_rng(0), 1_000_000)
    bin_B = np.searchsorted(np.quantile(sure_B, np.arange(1, bins) / bins), sure_B, side="right")
    return float(np.abs(np.bincount(bin_B, kind.right(sure_B) - sure_B)).sum() / len(sure_B))


def coverage(kind: Kind, examples: int, draws: int) -> tuple[float, float, int]:
    """Return the share of intervals that hold the truth, their mean width, and how many do not hold their own number."""
    truth, hits, widths, without = true_error(kind, scores.BINS), [], [], 0
    for seed in range(draws):
        random = np.random.default_rng([seed, examples])
        sure_B = kind.sure(random, examples)
        # The label is the first or the second of two; which others share what is left of the probability has no say.
        p_BK = np.stack([sure_B, np.zeros_like(sure_B)], 1)
        labels_B = (random.random(examples) >= kind.right(sure_B)).astype(int)
        found = scores.calibration(p_BK, labels_B, seed)
        without += not found.low <= found.value <= found.high
        widths.append(found.high - found.low)
        hits.append(found.low <= truth <= found.high)
    return float(np.mean(hits)), float(np.mean(widths)), without


def main() -> None:
    """Print each kind and record, for each number of examples, the mean and the lowest share."""
    parser = arguments(__doc__)
    parser.add_argument("--draws", type=int, default=100, help="classifiers measured for each row")
    parser.add_argument("--bins", type=int, default=10)
    asked = parser.parse_args()
    draws, sizes, kinds = (5, SIZES[:1], KINDS[:5]) if asked.quick else (asked.draws, SIZES, KINDS)
    record = Recorder("calibration", "intervals", asked)
    print(f"{'classifier':26} {'examples':>8} {'truth':>6} {'holds':>6} {'width':>6}")
    with mock.patch.multiple(scores, BINS=asked.bins, RESAMPLES=RESAMPLES):
        for examples in sizes:
            shares = []
            for kind in kinds:
                share, width, without = coverage(kind, examples, draws)
                assert not without, "an interval holds its own number"
                truth = true_error(kind, asked.bins)
                print(f"{kind.name:26} {examples:8} {truth:6.3f} {share:6.3f} {width:6.3f}", flush=True)
                shares += [] if kind.name.endswith("*") else [share]
            what = (
                f"Calibration error of {examples} examples: share of 95% intervals that hold the truth, mean and range"
            )
            record.add(
                f"examples-{examples}", f"{what} over {len(shares)} kinds of classifier", float(np.mean(shares)), "",
                low=min(shares), high=max(shares), spread="range over kinds", repetitions=draws, least=LOWEST,
            )  # fmt: skip


if __name__ == "__main__":
    main()
