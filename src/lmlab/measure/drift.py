"""How far the mean of a stretch may lie from that of the longer text around it.

Difficulty changes along a text at every scale, the more the longer the scale. The course of a stretch is decomposed into waves
(cosines of 1, 2, … q half periods over its length), whose power falls with frequency like f^-a. The slope `a` tells how much
power lies in waves slower than the stretch, and so how far its mean lies from that of a text AROUND times as long that contains
it. No single stretch shows its slope well. So each slope gives that mean a Student t distribution, and counts by how well it
explains the waves and by its weight beforehand. The idea is that of Müller & Watson (2016), "Measuring uncertainty about
long-run predictions"; the weights were fitted on stretches of eleven real texts and tilted until their intervals covered.

Shapes: S slopes, q waves, P series, n places.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from lmlab.measure.student import mixture_quantile

AROUND = 5  # times the length of the stretch: the text that an interval is for
WAVES = 24
SLOPES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 1.8)
WEIGHTS = (0.02, 0.09, 0.23, 0.25, 0.17, 0.11, 0.09, 0.03, 0.01)  # of the slopes, before a stretch is looked at
STEEP, MOST_STEEP = (
    1.2,
    0.25,
)  # a stretch whose slopes from STEEP on weigh more than that says nothing of the text around it
GRID = 256  # places of a stretch at which variances are computed
PERIODS = 64  # stretches in the longest wave that counts
OFFSETS = 9  # places of the stretch in the text around it


def waves(series_nP: np.ndarray, q: int) -> np.ndarray:
    """The series' components along q cosines (q×P), scaled so that each has the variance of the sum if nothing drifts."""
    n = len(series_nP)
    cosines_qn = np.cos(math.pi * np.arange(1, q + 1)[:, None] * (np.arange(n) + 0.5) / n)
    return math.sqrt(2.0) * (cosines_qn @ series_nP)


def half_widths(waves_qP: np.ndarray, level: float) -> np.ndarray:
    """Half the width of the interval of each series' mean over the text around it (P).

    Infinite where the slowest waves dominate: then the text around the stretch may be unlike it by any amount.
    """
    q = len(waves_qP)
    around_S, wave_Sq = _spectra(q)
    power_PS = np.maximum((waves_qP.T**2) @ (1.0 / wave_Sq).T, np.finfo(np.float64).tiny)
    log_PS = np.log(WEIGHTS) - 0.5 * np.log(wave_Sq).sum(axis=1) - 0.5 * q * np.log(power_PS)
    weights_PS = np.exp(log_PS - log_PS.max(axis=1, keepdims=True))
    weights_PS /= weights_PS.sum(axis=1, keepdims=True)
    half_P = mixture_quantile(np.sqrt(around_S * power_PS / q), weights_PS, q, level)
    steep_P = weights_PS[:, np.array(SLOPES) >= STEEP].sum(axis=1) > MOST_STEEP
    return np.where(steep_P & (waves_qP != 0.0).any(axis=0), np.inf, half_P)


@lru_cache(maxsize=32)
def _spectra(q: int) -> tuple[np.ndarray, np.ndarray]:
    """(variance of the stretch's mean about that of the text around it, variances of its waves), for each slope."""
    places = (np.arange(GRID) + 0.5) / GRID
    weights = [math.sqrt(2.0) * np.cos(math.pi * k * places) / GRID for k in range(1, q + 1)]
    for start in np.linspace(0, (AROUND - 1) * GRID, OFFSETS).astype(int):
        apart = np.full(AROUND * GRID, -1.0 / (AROUND * GRID))
        apart[start : start + GRID] += 1.0 / GRID
        weights.append(apart)
    power = np.array([np.abs(np.fft.rfft(weight, GRID * PERIODS)[1:]) ** 2 for weight in weights])
    frequency = np.arange(1, power.shape[1] + 1)
    table = power @ frequency[:, None] ** -np.array(SLOPES)
    return table[q:].mean(axis=0), table[:q].T
