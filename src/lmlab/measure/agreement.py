"""Whether two ways to compute the same nats agree.

They must agree at every single place, up to rounding. A recurrent network can be chaotic, though: rounding grows from token to
token until single scores mean nothing, while each is a probability all the same. Where that is so is found with weights that
differ in their last bit. From there on the two ways must agree in their mean, as far as chance lets that be seen.
"""

from __future__ import annotations

import math

import numpy as np

from lmlab.measure.score import differences

NATS_TOLERANCE = 1e-3
"""How far one token's nats may differ between two ways to compute them. Matrix products summed in another order differ
by 1e-5 to 1e-4 nats at the end of a deep float32 network, more where a token costs much, hence relative above 10 nats;
a leak, a lost token or a shifted cache moves nats by tenths."""

SHAKEN = 1e-4  # nats by which a change of the weights in the last bit may move a score that is compared by itself
FEWEST_TOKENS = 16  # of a row that are compared by themselves in any case
LEAN_TOLERANCE = 2e-5  # nats, of the mean over many tokens: about the last bit of their scores
FEWEST_TO_LEAN = 64  # tokens
ERRORS = 4.0  # standard errors that a mean may lie beside zero by chance


def steady(nats_BT: np.ndarray, shaken_BT: np.ndarray, places_BT: np.ndarray) -> np.ndarray:
    """Which scores mean something by themselves: those before the first, in their row, that shaken weights move.

    places_BT: how many tokens of the row lie before each.
    """
    moved_BT = differences(nats_BT, shaken_BT) > SHAKEN
    return (np.cumsum(moved_BT, axis=1) == 0) | (places_BT < FEWEST_TOKENS)


def lean(a: np.ndarray, b: np.ndarray) -> float:
    """Nats by which one way is lower than the other on average, less what is chance; 0 where there are too few to tell.

    Rounding goes either way. Who takes a little less than is tolerated off every score is seen here.
    """
    with np.errstate(invalid="ignore"):  # infinities are the business of `disagreement`
        apart = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    apart = apart[np.isfinite(apart)]
    if len(apart) < FEWEST_TO_LEAN:
        return 0.0
    return max(0.0, abs(float(apart.mean())) - ERRORS * float(apart.std()) / math.sqrt(len(apart)))


def disagreement(a: np.ndarray, b: np.ndarray, by_itself: np.ndarray | None = None) -> float:
    """Nats by which two ways differ: the largest difference of one token; of chaotic ones the mean, less what is chance."""
    if by_itself is None or by_itself.all():
        return float(differences(a, b).max(initial=0.0))
    strict = float(differences(a[by_itself], b[by_itself]).max(initial=0.0))
    rest = np.asarray(a, dtype=np.float64)[~by_itself] - np.asarray(b, dtype=np.float64)[~by_itself]
    if not np.isfinite(rest).all():
        return math.inf
    by_chance = ERRORS * float(rest.std()) / math.sqrt(len(rest))
    return max(strict, abs(float(rest.mean())) - by_chance)
