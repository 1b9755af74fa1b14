"""What a model may let us see of itself beyond its predictions. A model of any kind joins by having the method."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from lmlab.layers.gating import Gating
from lmlab.layers.looking import Looks, Unfolded


@runtime_checkable
class BacksOff(Protocol):
    """A model that answers from the longest history whose continuation it has counted."""

    def orders(self, tokens_T: Tensor) -> Tensor:
        """For each token: how long the longest n-gram is that ends with it and was counted, at least 1."""
        ...


@runtime_checkable
class Attentive(Protocol):
    """A model that weighs what it has read."""

    def looks(self, tokens_T: Tensor) -> Iterator[Looks]:
        """What each of its layers looked at while it read these tokens, one layer after the other."""
        ...


@runtime_checkable
class AttentiveAround(Protocol):
    """An encoder, whose places weigh all others, before and after them."""

    def looks_around(self, window_T: Tensor) -> Iterator[Looks]:
        """What each of its layers looked at in one window, the symbols around it included, one layer after the other."""
        ...


@runtime_checkable
class AttentiveAcross(Protocol):
    """A translator, which weighs a source while it writes a target."""

    def looks_across(self, source_S: Tensor, target_T: Tensor, language: int) -> Iterator[Looks]:
        """What each of its layers looked at, one after the other; both texts with their ends."""
        ...


@runtime_checkable
class Headed(Protocol):
    """An attentive model of any kind whose heads can be switched off one at a time."""

    def without_head(self, layer: int, head: int) -> AbstractContextManager[None]:
        """While it lasts, one head of one layer (both from 0) adds nothing."""
        ...


@runtime_checkable
class Gated(Protocol):
    """A recurrent model whose cells have gates."""

    @property
    def gate_names(self) -> tuple[str, ...]:
        """Of the gates; nothing where the cells have none."""
        ...

    def gates(self, tokens_T: Tensor) -> Iterator[Gating]:
        """What the gates of each layer did after each of these tokens was read, one layer after the other."""
        ...


@runtime_checkable
class Unfolding(Protocol):
    """A model with self-attention whose heads can be written as matrices."""

    config: Any  # with layers, heads, width and context

    def unfolded(self, tokens_T: Tensor, layer: int, head: int) -> Unfolded:
        """What one head of one layer (both from 0) did with these tokens."""
        ...
