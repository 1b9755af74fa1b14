"""How dot products spread with width, what that does to a softmax, and how random directions part.

Shapes: S draws, N keys, D width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lmlab.config import Mistake
from lmlab.records import JsonRecord

BINS = 40  # of the histogram of cosines, from -1 to 1
NEAR = 0.1  # a cosine as small as this passes for a right angle
MOST_WIDTH, MOST_NUMBERS = 4096, 2**27


@dataclass(frozen=True, kw_only=True)
class Softmax:
    """What the softmax of the scores of one query is like, as means over draws. flat: no gradient comes back through it."""

    largest_weight: float
    jacobian_norm: float  # of ∂weights/∂scores = diag(α) - ααᵀ, at most ½
    flat: float  # share of draws whose Jacobian has a norm below 0.01


@dataclass(frozen=True, kw_only=True)
class AtWidth:
    """Dot products of vectors of one width. error: the standard error of the measured variance."""

    width: int
    variance: float
    variance_error: float
    predicted_variance: float  # 2σ²μ·μ + dσ⁴
    unscaled: Softmax
    scaled: Softmax  # scores divided by √d
    cosine_deviation: float
    predicted_cosine_deviation: float  # 1/√d
    nearly_orthogonal: float  # share of pairs of random directions with |cos| < NEAR
    predicted_nearly_orthogonal: float
    cosines: tuple[float, ...]  # shares of pairs, by their cosine from -1 to 1


@dataclass(frozen=True, kw_only=True)
class DotProducts(JsonRecord):
    """The same at several widths. Entries of queries and keys are normal with this mean and standard deviation."""

    keys: int
    mean: float
    sigma: float
    draws: int
    seed: int
    widths: tuple[AtWidth, ...]


def dot_products(*, widths: Sequence[int], keys: int, mean: float, sigma: float, draws: int, seed: int) -> DotProducts:
    """Scores of random queries and keys, with and without scaling, and cosines of random directions."""
    _check(widths, keys, mean, sigma, draws)
    found = tuple(_at(width, keys, mean, sigma, draws, seed) for width in widths)
    return DotProducts(keys=keys, mean=mean, sigma=sigma, draws=draws, seed=seed, widths=found)


def cosine_density(cosine: float, width: int) -> float:
    """Of the cosine of two random directions: Γ(d/2)/(√π Γ((d-1)/2)) (1 - x²)^((d-3)/2), for widths above 1."""
    return math.exp(_log_constant(width) + (width - 3) / 2 * math.log(1 - cosine**2))


def cosine_share(low: float, high: float, width: int, nodes: int = 400) -> float:
    """The probability that the cosine lies between these: its density integrated, by angles, where it has no poles."""
    start, end, log_constant = math.acos(high), math.acos(low), _log_constant(width)
    step = (end - start) / nodes
    sines = (math.sin(start + (i + 0.5) * step) for i in range(nodes))  # density × |dx/dθ| = constant · sin^(d-2) θ
    return step * sum(math.exp(log_constant + (width - 2) * math.log(sine)) for sine in sines)


def _log_constant(width: int) -> float:
    return math.lgamma(width / 2) - math.lgamma((width - 1) / 2) - 0.5 * math.log(math.pi)


def _at(width: int, keys: int, mean: float, sigma: float, draws: int, seed: int) -> AtWidth:
    generator = torch.Generator().manual_seed(seed)
    q_SD = mean + sigma * torch.randn(draws, width, generator=generator)
    k_SND = mean + sigma * torch.randn(draws, keys, width, generator=generator)
    scores_SN = torch.einsum("snd,sd->sn", k_SND, q_SD).double()
    expected = width * mean**2
    squares_S = ((scores_SN - expected) ** 2).mean(1)  # scores of one query are not independent, queries are
    a_SD, b_SD = (torch.nn.functional.normalize(torch.randn(10 * draws, width, generator=generator)) for _ in range(2))
    cosines_S = (a_SD * b_SD).sum(1).double()
    counts = torch.histc(cosines_S, bins=BINS, min=-1, max=1)
    return AtWidth(
        width=width,
        variance=float(squares_S.mean()),
        variance_error=float(squares_S.std()) / math.sqrt(draws),
        predicted_variance=2 * sigma**2 * width * mean**2 + width * sigma**4,
        unscaled=_softmax(scores_SN),
        scaled=_softmax(scores_SN / math.sqrt(width)),
        cosine_deviation=float(cosines_S.std()),
        predicted_cosine_deviation=1 / math.sqrt(width),
        nearly_orthogonal=float((cosines_S.abs() < NEAR).double().mean()),
        predicted_nearly_orthogonal=cosine_share(-NEAR, NEAR, width) if width > 1 else 0.0,
        cosines=tuple(float(n) / len(cosines_S) for n in counts),
    )


def _softmax(scores_SN: Tensor) -> Softmax:
    weights_SN = torch.softmax(scores_SN, dim=1)
    jacobian_SNN = torch.diag_embed(weights_SN) - weights_SN[:, :, None] * weights_SN[:, None, :]
    norms_S = torch.linalg.matrix_norm(jacobian_SNN, 2)
    return Softmax(
        largest_weight=float(weights_SN.amax(1).mean()),
        jacobian_norm=float(norms_S.mean()),
        flat=float((norms_S < 0.01).double().mean()),
    )


def _check(widths: Sequence[int], keys: int, mean: float, sigma: float, draws: int) -> None:
    if not widths or not all(1 <= width <= MOST_WIDTH for width in widths):
        raise Mistake(
            f"{{widths}} are whole numbers from 1 to {MOST_WIDTH}, such as 4,64,1024",
            code="widths-out-of-range",
            widths=None,
        )
    if keys < 2 or draws < 2:
        raise Mistake("{keys} and {draws} are whole numbers from 2 up", code="draws-below-two", keys=None, draws=None)
    if max(widths) * keys * draws > MOST_NUMBERS:
        raise Mistake(
            "that is too much for memory: choose fewer {keys} or {draws}, or smaller {widths}",
            code="too-many-draws",
            keys=None,
            draws=None,
            widths=None,
        )
    if not math.isfinite(mean) or not 0 < sigma < math.inf:
        raise Mistake(
            "{mean} is a number and {sigma} one above 0", code="distribution-out-of-range", mean=None, sigma=None
        )
