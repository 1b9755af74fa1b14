"""Two simpler ways to combine, fitted to the same pairs: adding the two vectors, and the best linear map to as many numbers.

Each is given what it can use: the linear decoder with the least squared error, and a logistic regression for the labels. The
linear map keeps the first principal components of [x₁; x₂]: no linear map of that width brings more back. N pairs, F features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch.nn import functional as F

STEPS = 60  # of the logistic regression, by L-BFGS


@dataclass(frozen=True)
class Simple:
    """features = x @ map; decoded linearly, labelled by a softmax."""

    map_X2F: np.ndarray
    decoder_FX2: np.ndarray  # the last row is the bias
    labels_FK: np.ndarray  # likewise

    @classmethod
    def fit(
        cls, way: Literal["addition", "linear"], x_NX2: np.ndarray, labels_N: np.ndarray, width: int, labels: int
    ) -> Simple:
        """width: of the linear map's parent; that of a sum is the width of a word."""
        half = x_NX2.shape[1] // 2
        if way == "addition":
            map_X2F = np.concatenate([np.eye(half), np.eye(half)])
        else:
            _, _, directions = np.linalg.svd(np.cov(x_NX2, rowvar=False))
            map_X2F = directions[:width].T
        features_NF = _with_one(x_NX2 @ map_X2F)
        decoder_FX2, *_ = np.linalg.lstsq(features_NF, x_NX2, rcond=None)
        return cls(map_X2F, decoder_FX2, _logistic(features_NF, labels_N, labels))

    def brought_back(self, x_NX2: np.ndarray) -> np.ndarray:
        """x' of each pair."""
        found: np.ndarray = _with_one(x_NX2 @ self.map_X2F) @ self.decoder_FX2
        return found

    def probabilities(self, x_NX2: np.ndarray) -> np.ndarray:
        """Of the labels: N×K."""
        logits_NK = torch.from_numpy(_with_one(x_NX2 @ self.map_X2F) @ self.labels_FK)
        return torch.softmax(logits_NK, dim=1).numpy()


def _with_one(features_NF: np.ndarray) -> np.ndarray:
    return np.concatenate([features_NF, np.ones((len(features_NF), 1))], axis=1)


def _logistic(features_NF: np.ndarray, labels_N: np.ndarray, labels: int) -> np.ndarray:
    """The softmax with the least cross-entropy, and a touch of decay so that there always is one."""
    x_NF, y_N = torch.from_numpy(features_NF), torch.from_numpy(labels_N)
    w_FK = torch.zeros(features_NF.shape[1], labels, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([w_FK], max_iter=STEPS, line_search_fn="strong_wolfe")

    def cost() -> torch.Tensor:
        search.zero_grad()
        found = F.cross_entropy(x_NF @ w_FK, y_N) + 1e-6 * w_FK.square().sum()
        found.backward()
        return found

    search.step(cost)
    best: np.ndarray = w_FK.detach().numpy()
    return best
