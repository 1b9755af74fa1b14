"""The best weights of a run by validation, which it ends with."""

from __future__ import annotations

import torch
from torch import Tensor

from lmlab.interface import Learner


class BestWeights:
    """This class keeps copies of the best weights so far, and of the first ones until validation has seen better ones."""

    def __init__(self, model: Learner) -> None:
        self.model = model
        self.best: dict[str, Tensor] = {}
        self.fresh: dict[str, Tensor] | None = None

    def keep(self) -> None:
        """Copy the weights that the model has now: they are the best."""
        self.best = self.copied()

    def copied(self) -> dict[str, Tensor]:
        """Return copies of the weights that the model has now."""
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def give_back(self) -> None:
        """Give the model its best weights."""
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                p.copy_(self.best[name])

    def fall_back(self) -> bool:
        """Take the first weights for the best, where validation has seen no better ones; return whether it has not."""
        if self.fresh is None:
            return False
        self.best = self.fresh
        return True
