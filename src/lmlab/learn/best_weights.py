"""Copies of the best weights of a run by validation, which the trained model receives at the end."""

from __future__ import annotations

import torch
from torch import Tensor

from lmlab.interface import Learner


class BestWeights:
    """A copy of the best weights by validation.

    Until validation first improves, the object also holds the initial weights, to return to if training diverges.
    """

    def __init__(self, model: Learner) -> None:
        self.model = model
        self.best: dict[str, Tensor] = {}
        self.fresh: dict[str, Tensor] | None = None

    def keep(self) -> None:
        """Copy the present weights of the model as the best ones."""
        self.best = self.copied()

    def copied(self) -> dict[str, Tensor]:
        """Return copies of the present weights of the model."""
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def restore(self) -> None:
        """Restore the best weights to the model."""
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                p.copy_(self.best[name])

    def fall_back(self) -> bool:
        """Replace the best weights by the initial ones, unless validation has improved; return whether they were replaced."""
        if self.fresh is None:
            return False
        self.best = self.fresh
        return True
