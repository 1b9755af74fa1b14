"""What goes into a training step, and what comes out of it: a batch of token windows, and its loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The loss of a batch: a sum, and how many things it is over. Sum first, divide once.

    parts: what the total is made of, by name (a reconstruction, a divergence), each a sum over the same things; empty
        where the total has no parts.
    """

    total: Tensor  # nats, differentiable
    count: int  # of what is predicted: tokens, examples
    parts: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def mean(self) -> Tensor:
        """Nats for each thing that is predicted."""
        return self.total / self.count


@dataclass(frozen=True)
class Windows:
    """A batch of token windows, each from its own begin; where the mask is False a token is not predicted."""

    tokens_BT: Tensor
    mask_BT: Tensor | None = None
    known: int | None = None  # tokens under the mask, if they were counted before the batch went to another device

    @property
    def count(self) -> int:
        """Tokens that are predicted."""
        if self.known is not None:
            return self.known
        return self.tokens_BT.numel() if self.mask_BT is None else int(self.mask_BT.sum())

    def to(self, device: torch.device) -> Windows:
        """Return the batch on another device. Copying to a GPU does not wait for it: the GPU does its work in order."""
        if device.type != "cuda":
            return self._each(lambda t: t.to(device))
        return self._each(lambda t: t if t.is_cuda else t.pin_memory().to(device, non_blocking=True), self.count)

    @property
    def rows(self) -> int:
        """Windows in the batch."""
        return len(self.tokens_BT)

    def select(self, rows: slice) -> Self:
        """Return the batch of these rows."""
        mask_BT = None if self.mask_BT is None else self.mask_BT[rows]
        return replace(self, tokens_BT=self.tokens_BT[rows], mask_BT=mask_BT, known=None)

    def split(self, rows: int) -> Iterator[Self]:
        """Cut the batch into batches of at most so many rows."""
        for first in range(0, len(self.tokens_BT), rows):
            yield self.select(slice(first, first + rows))

    def _each(self, change: Callable[..., Tensor], known: int | None = None) -> Windows:
        return Windows(change(self.tokens_BT), None if self.mask_BT is None else change(self.mask_BT), known)
