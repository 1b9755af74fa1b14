"""Models whose last layer is a softmax over the vocabulary: their scores, how sure it was before each token, and how sure it
should have been.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from lmlab.interface import NeuralLanguageModel, State, Windows
from lmlab.layers.heads import FEATURES, Head, confidence_of, nats_alone, nats_and_confidence, nats_at

FACTORS = tuple(np.linspace(0.4, 1.3, 10).round(1).tolist())  # of the logits, to look at
NEAR_ONE = 0.02  # a factor so near to 1 changes nothing that could be measured


class SoftmaxModel(NeuralLanguageModel):
    """A language model that says how its head reads a text; scores with and without them follow from it."""

    confidence_features: ClassVar[int] = FEATURES
    logits_follow: ClassVar[
        tuple[str, ...]
    ] = ()  # weights that double the logits, and nothing else, if they are doubled

    @abstractmethod
    def said_by(self, head: Head, numbers: int, tokens_BT: Tensor) -> Tensor:
        """What the head says of each token given what the model may see before it, so many numbers, B×T×F; no gradients."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        """Nats of each token given what the model may see before it, B×T."""
        return self.said_by(nats_alone, 1, tokens_BT)[..., 0]

    def score_with_confidence(self, tokens_BT: Tensor) -> tuple[Tensor, Tensor]:
        """And how sure the softmax was before it."""
        found_BTF = self.said_by(nats_and_confidence, 1 + FEATURES, tokens_BT)
        return found_BTF[..., 0], found_BTF[..., 1:]

    def confidence_after(self, logp_BV: Tensor, state: State) -> Tensor:
        """How sure the softmax is."""
        return confidence_of(logp_BV)

    @torch.no_grad()
    def calibrate(self, held_out: Iterable[Windows]) -> float | None:
        """One factor for all logits, the best on these windows, worked into the weights.

        A model that has read a text many times is surer of itself than it is right on text it has not read, and that
        by much the same factor everywhere (a temperature). Tied weights, which are read as well, stay as they are.
        """
        weights = [getattr(self, name) for name in self.logits_follow]
        total_K, count = np.zeros(len(FACTORS)), 0
        for windows in held_out if weights and None not in weights else ():
            nats_BTK = self.said_by(nats_at(FACTORS), len(FACTORS), windows.tokens_BT.to(weights[0].device))
            kept_NK = (
                nats_BTK.flatten(0, 1) if windows.mask_BT is None else nats_BTK[windows.mask_BT.to(nats_BTK.device)]
            )
            total_K += kept_NK.double().sum(0).cpu().numpy()
            count += len(kept_NK)
        factor = _lowest(np.array(FACTORS), total_K / count) if count else 1.0
        if abs(factor - 1) < NEAR_ONE:
            return None
        self.multiply_logits(factor)
        return factor

    @torch.no_grad()
    def multiply_logits(self, factor: float) -> None:
        """All of them, from now on, by the weights they follow."""
        for name in self.logits_follow:
            getattr(self, name).mul_(factor)


def _lowest(at_K: np.ndarray, height_K: np.ndarray) -> float:
    """Where a convex function is lowest: by the parabola through its lowest value and the two beside it."""
    i = int(np.argmin(height_K))
    if not 0 < i < len(at_K) - 1:
        return float(at_K[i])
    (left, middle, right), step = height_K[i - 1 : i + 2], at_K[i + 1] - at_K[i]
    return float(at_K[i] + step * (left - right) / (2 * (left - 2 * middle + right)))
