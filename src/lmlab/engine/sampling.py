"""Drawing a token: temperature, then top-k, top-p and min-p, then one number of the row's own random stream.

V vocabulary, K tokens that are kept.
"""

from __future__ import annotations

import numpy as np

from lmlab.engine.options import Options

Kept = tuple[np.ndarray, np.ndarray]  # ids_K ascending, p_K (float64, sums to 1)


def kept(logp_V: np.ndarray, options: Options) -> Kept:
    """The tokens that may be drawn and their probabilities.

    The temperature comes first, so that the filters see the distribution that is sampled from; each filter sees what the
    one before it left, made to sum to 1 again. A filter keeps at least the likeliest token. Of equally likely tokens the
    lower ids count as likelier, so the result does not depend on how a library sorts.
    """
    assert options.temperature > 0, "temperature 0 is greedy"
    ids_K = np.arange(len(logp_V)) if options.top_k is None else _top_k(logp_V, options.top_k)
    logp_K = logp_V[ids_K].astype(np.float64)
    best = logp_K.max()
    assert np.isfinite(best), "a distribution gives some token a probability"
    with np.errstate(over="ignore"):  # a tiny temperature sends all but the best to -inf, that is to probability 0
        p_K = np.exp((logp_K - best) / options.temperature)
    if options.top_p is not None and options.top_p < 1:
        nucleus = _top_p(p_K, options.top_p)
        ids_K, p_K = ids_K[nucleus], p_K[nucleus]
    if options.min_p is not None:
        likely = p_K >= options.min_p * p_K.max()
        ids_K, p_K = ids_K[likely], p_K[likely]
    return ids_K, p_K / p_K.sum()


def draw(choices: Kept, generator: np.random.Generator) -> int:
    """One of the kept tokens, by the share of [0, 1) that a uniform number falls into."""
    ids_K, p_K = choices
    ends_K = np.cumsum(p_K)
    at = int(np.searchsorted(ends_K, generator.random() * ends_K[-1], side="right"))
    return int(ids_K[min(at, int(np.flatnonzero(p_K)[-1]))])  # the product may round up to the very end


def _top_k(logp_V: np.ndarray, k: int) -> np.ndarray:
    """The k likeliest ids, ascending."""
    if k >= len(logp_V):
        return np.arange(len(logp_V))
    least = np.partition(logp_V, len(logp_V) - k)[len(logp_V) - k]
    above = np.flatnonzero(logp_V > least)
    return np.sort(np.concatenate([above, np.flatnonzero(logp_V == least)[: k - len(above)]]))


def _top_p(p_K: np.ndarray, top_p: float) -> np.ndarray:
    """Places of the fewest likeliest tokens that hold a share of at least `top_p`, ascending."""
    total = p_K.sum()
    # All tokens below this together hold less than 1 - top_p, so none of them is needed; usually that spares most of
    # the sorting.
    candidates = np.flatnonzero(p_K >= (1 - top_p) * total / len(p_K))
    order = candidates[np.argsort(-p_K[candidates], kind="stable")]
    count = int(np.searchsorted(np.cumsum(p_K[order]), top_p * total)) + 1
    return np.sort(order[:count])
