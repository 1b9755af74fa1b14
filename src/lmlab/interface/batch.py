"""The input and output of a training step: a batch of token windows, and its loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The loss of a batch: a sum of nats and the number of predicted items it covers.

    Losses of several batches are summed first and divided once, because a mean of batch means is wrong for unequal batches.

    Attributes:
        parts: the components of the total by name, such as reconstruction and divergence. Each is a sum over the same items.
            Empty if the total has no components.
    """

    total: Tensor  # nats, differentiable
    count: int  # number of predicted items: tokens or examples
    parts: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def mean(self) -> Tensor:
        """The mean loss in nats per predicted item."""
        return self.total / self.count


@dataclass(frozen=True)
class Windows:
    """A batch of token windows. A token whose mask is False, such as padding, is not predicted."""

    tokens_BT: Tensor
    mask_BT: Tensor | None = None
    known: int | None = None  # `count`, if it was computed before a copy to a GPU; computing it there would synchronize

    @property
    def count(self) -> int:
        """The number of tokens that are predicted."""
        if self.known is not None:
            return self.known
        return self.tokens_BT.numel() if self.mask_BT is None else int(self.mask_BT.sum())

    def to(self, device: torch.device) -> Windows:
        """Return the batch on another device.

        A copy to a GPU returns before it is complete; kernels that use the copy are queued behind it.
        """
        if device.type != "cuda":
            return self._each(lambda t: t.to(device))
        return self._each(lambda t: t if t.is_cuda else t.pin_memory().to(device, non_blocking=True), self.count)

    @property
    def rows(self) -> int:
        """The number of windows in the batch."""
        return len(self.tokens_BT)

    def select(self, rows: slice) -> Self:
        """Return a batch of the selected rows."""
        mask_BT = None if self.mask_BT is None else self.mask_BT[rows]
        return replace(self, tokens_BT=self.tokens_BT[rows], mask_BT=mask_BT, known=None)

    def split(self, rows: int) -> Iterator[Self]:
        """Split the batch into batches of at most `rows` rows."""
        for first in range(0, len(self.tokens_BT), rows):
            yield self.select(slice(first, first + rows))

    def _each(self, change: Callable[..., Tensor], known: int | None = None) -> Windows:
        return Windows(change(self.tokens_BT), None if self.mask_BT is None else change(self.mask_BT), known)
