"""Does the 95% interval of a classifier's calibration error hold the true error, 95 times of 100?

    python bench/bench_calibration.py [--draws 200] [--bins 5,10,20]

Classifiers are made up: how sure they are is drawn, and how often they are right given that is known, so that the true error
over bins of equally many examples is an average over a million draws. Beside the interval of `lmlab.classification.scores`
stand the two that resampling gives, for fewer draws: between the quantiles of resamples, and these turned over at the number
("basic"). The method was developed on the kinds with a star; the others were looked at afterwards.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from unittest import mock

import numpy as np

from lmlab.classification import scores

Sureness = Callable[[np.random.Generator, int], np.ndarray]
SIZES = (40, 200, 1000)  # examples
RESAMPLED = 40  # draws for which the others are computed
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


def of_some(p_BK: np.ndarray, labels_B: np.ndarray, at: np.ndarray) -> float:
    """The calibration error of these examples."""
    return scores.calibration_error(p_BK[at], labels_B[at])


def covered(kind: Kind, examples: int, draws: int) -> tuple[list[float], float, int]:
    """Shares of ours, of quantiles and of basic intervals that hold the truth; mean width of ours, how many lack the number."""
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
        both = [found.low <= truth <= found.high]
        if seed < RESAMPLED:
            old = scores.interval(partial(of_some, p_BK, labels_B), examples, seed)
            low, high = 2 * found.value - old.high, 2 * found.value - old.low
            both += [old.low <= truth <= old.high, max(0.0, low) <= truth <= max(0.0, high)]
        hits.append(both)
    resampled = [hit for hit in hits if len(hit) > 1]
    shares = [np.mean([hit[0] for hit in hits]), *np.mean([hit[1:] for hit in resampled], axis=0)]
    return [float(share) for share in shares], float(np.mean(widths)), without


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200, help="classifiers measured for each row")
    parser.add_argument("--bins", default="5,10,20", help="how many, comma-separated")
    options = parser.parse_args()
    started, missed = time.perf_counter(), []
    print(
        f"{'classifier':26} {'bins':>4} {'examples':>8} {'truth':>6} {'ours':>6} {'width':>6} {'quantiles':>9} {'basic':>6}"
    )
    for bins in map(int, options.bins.split(",")):
        with mock.patch.multiple(scores, BINS=bins, RESAMPLES=RESAMPLES):
            for kind in KINDS:
                for examples in SIZES:
                    (ours, quantiles, basic), width, without = covered(kind, examples, options.draws)
                    row = f"{kind.name:26} {bins:4} {examples:8}"
                    print(
                        f"{row} {true_error(kind, bins):6.3f} {ours:6.3f} {width:6.3f} {quantiles:9.3f} {basic:6.3f}",
                        flush=True,
                    )
                    if ours < LOWEST or without:
                        missed.append(" ".join(row.split()))
    print(f"\n* the method was developed on these kinds. {time.perf_counter() - started:.0f} s")
    print("all hold" if not missed else "MISSED: " + "; ".join(missed))


if __name__ == "__main__":
    main()
