"""Models whose last layer is a softmax over the vocabulary: their scores, and how sure it was before each token."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from torch import Tensor

from lmlab.interface import NeuralLanguageModel, State
from lmlab.layers.heads import SIGNS, Head, nats_alone, nats_and_signs, signs_of


class SoftmaxModel(NeuralLanguageModel):
    """A language model that says how its head reads a text; scores with and without signs follow from it."""

    signs: ClassVar[int] = SIGNS

    @abstractmethod
    def said_by(self, head: Head, numbers: int, tokens_BT: Tensor) -> Tensor:
        """What the head says of each token given what the model may see before it, so many numbers, B×T×F; no gradients."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        """Nats of each token given what the model may see before it, B×T."""
        return self.said_by(nats_alone, 1, tokens_BT)[..., 0]

    def score_with_signs(self, tokens_BT: Tensor) -> tuple[Tensor, Tensor]:
        """And how sure the softmax was before it."""
        found_BTF = self.said_by(nats_and_signs, 1 + SIGNS, tokens_BT)
        return found_BTF[..., 0], found_BTF[..., 1:]

    def signs_after(self, logp_BV: Tensor, state: State) -> Tensor:
        """How sure the softmax is."""
        return signs_of(logp_BV)
