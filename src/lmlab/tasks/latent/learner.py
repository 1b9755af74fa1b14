"""Learning a bound: segments one after the other, the weight of the KL rising in the first steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import torch

from lmlab.interface import Learner, Loss, Windows
from lmlab.learn.next_token import CARRIED_CHUNKS, SAMPLE_TOKENS, NextToken
from lmlab.learn.prepare_text import prepare_text
from lmlab.models.variational import Segments, Variational
from lmlab.tasks.latent.generating import written

if TYPE_CHECKING:
    from lmlab.learn.prepared import Prepared
    from lmlab.learn.request import TrainingRequest


def prepare(request: TrainingRequest) -> Prepared:
    """Read a text, and construct a latent-variable model."""
    return prepare_text(request, Bound)


@dataclass(frozen=True)
class Stretches(Windows):
    """Stretches of several segments, and the step in which the first of them is learned."""

    step: int = 0

    def to(self, device: torch.device) -> Stretches:
        """The same on another device."""
        there = super().to(device)
        return Stretches(there.tokens_BT, there.mask_BT, there.known, self.step)


@dataclass(frozen=True, kw_only=True)
class Bound(NextToken):
    """The bound of a text under a latent-variable model; its bits per byte are at most these."""

    name = "variational bound"
    warm_up: int = 0

    @classmethod
    def of(cls, model: Any, *arguments: Any, **options: Any) -> Self:
        """In stretches of whole segments, the state carried from one to the next."""
        assert isinstance(model, Variational)
        task = super().of(model, *arguments, **options)
        chunks = min(CARRIED_CHUNKS, max(1, task.train.tokens // task.length))
        return replace(task, chunks=chunks, warm_up=model.config.warm_up)

    def batch(self, seed: int, step: int) -> Stretches:
        """Stretches, drawn from (seed, step)."""
        return Stretches(super().batch(seed, step).tokens_BT, step=step)

    def pieces(self, batch: Any) -> Sequence[Windows]:
        """One segment of each stretch at a time, each with the weight that the KL has in its step."""
        found = []
        for i, tokens_BT in enumerate(batch.tokens_BT.split(self.length, dim=1)):
            weight = torch.full((), min(1.0, (batch.step + i + 1) / max(1, self.warm_up)), device=tokens_BT.device)
            found.append(Segments(tokens_BT, kl_weight=weight))
        return found

    def loss(self, model: Learner, piece: Any, carry: Any) -> tuple[Loss, Any]:
        """The bound of a segment, with the state carried on."""
        assert isinstance(model, Variational)
        return model.loss_carried(piece, carry)

    def sample(self, model: Learner) -> str:
        """A few tokens from a z of the prior, always with the same luck."""
        assert isinstance(model, Variational)
        luck = torch.Generator().manual_seed(0)
        z_1K = torch.randn(1, model.config.latent, generator=luck)
        ids_BT = written(model, z_1K, tokens=min(SAMPLE_TOKENS, model.config.segment), luck=luck)
        return self.tokenizer.decode(ids_BT[0].tolist())
