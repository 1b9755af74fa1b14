"""What a model may let us see of itself beyond its predictions. A model of any kind joins by having the method."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class BacksOff(Protocol):
    """A model that answers from the longest history whose continuation it has counted."""

    def orders(self, tokens_T: Tensor) -> Tensor:
        """For each token: how long the longest n-gram is that ends with it and was counted, at least 1."""
        ...
