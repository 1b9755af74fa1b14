"""How far the mean of a text may lie from that of its source, when difficulty drifts slowly, at a scale nobody knows.

A block bootstrap must be told how long blocks are, and a test for correlation between neighbours does not see what is
weak and far-reaching. So nothing is tested here. The course of a text is decomposed into waves (cosines of 1, 2, … q half
periods over its length). The variance of the mean is what the spectrum would be at frequency zero, just beyond the slowest
wave, and for that the waves are held against a family of spectra: flat (nothing drifts), and flat plus a drift that is
forgotten after a 64th of the text up to all of it, weak to overwhelming. Each member of the family gives the mean a Student t
distribution, and counts by how well it explains the waves (its likelihood, times its weight beforehand). The idea is that
of Müller & Watson (2016), "Measuring uncertainty about long-run predictions"; the weights were chosen by the coverage of
simulated series that forget after one place and up to a quarter of the text.

Shapes: S spectra, q waves, P series, n places.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from lmlab.measure.student import mixture_quantile

WAVES = 24
FLAT_WEIGHT = 0.8  # before looking: most texts hardly drift at the scale of their whole length
FORGOTTEN = tuple(2.0**k for k in range(7))  # lengths of memory in the text: it is the text divided by these
STRENGTHS = (4.0, 64.0, 1024.0)  # variance of the mean by the drift, in units of that without it
GRID = 512  # places at which a drift is computed


def waves(series_nP: np.ndarray, q: int) -> np.ndarray:
    """The series' components along q cosines (q×P), scaled so that each has the variance of the sum if nothing drifts."""
    n = len(series_nP)
    cosines_qn = np.cos(math.pi * np.arange(1, q + 1)[:, None] * (np.arange(n) + 0.5) / n)
    return math.sqrt(2.0) * (cosines_qn @ series_nP)


def half_widths(waves_qP: np.ndarray, level: float) -> np.ndarray:
    """Half the width of the interval of each series' sum, at this level (P)."""
    q = len(waves_qP)
    mean_S, wave_Sq, log_weight_S = _spectra(q)
    power_PS = np.maximum((waves_qP.T**2) @ (1.0 / wave_Sq).T, np.finfo(np.float64).tiny)
    log_PS = log_weight_S - 0.5 * np.log(wave_Sq).sum(axis=1) - 0.5 * q * np.log(power_PS)
    weights_PS = np.exp(log_PS - log_PS.max(axis=1, keepdims=True))
    weights_PS /= weights_PS.sum(axis=1, keepdims=True)
    return mixture_quantile(np.sqrt(mean_S * power_PS / q), weights_PS, q, level)


@lru_cache(maxsize=32)
def _spectra(q: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(variance of the mean, variances of the waves, logarithm of the weight beforehand) of each member of the family."""
    places = (np.arange(GRID) + 0.5) / GRID
    onto = np.concatenate(
        [np.ones((1, GRID)), math.sqrt(2.0) * np.cos(math.pi * np.arange(1, q + 1)[:, None] * places)]
    )
    spectra = [np.ones(q + 1)]
    for rate in FORGOTTEN:
        covariance = np.exp(-rate * np.abs(places[:, None] - places[None, :]))
        drift = ((onto @ covariance) * onto).sum(axis=1)
        spectra += [1.0 + strength * drift / drift[0] for strength in STRENGTHS]
    table = np.array(spectra)
    weights = np.full(len(table), (1.0 - FLAT_WEIGHT) / (len(table) - 1))
    weights[0] = FLAT_WEIGHT
    return table[:, 0], table[:, 1:], np.log(weights)
