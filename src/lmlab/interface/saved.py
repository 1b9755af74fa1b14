"""What a run keeps and brings back exactly, whatever its task is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from torch import Tensor


class Saved(ABC):
    """A model that a run keeps and brings back exactly.

    A class is one kind of model. `Config` is its frozen dataclass of settings; an instance is a trained (or fresh) model.
    """

    name: ClassVar[str]
    Config: ClassVar[type]

    config: Any

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return everything the model has learned, by name. A run saves it as model.safetensors."""

    @classmethod
    @abstractmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """Make the model whose `tensors()` these are. Its scores have the same bits as those of the saved model."""

    @property
    def notes(self) -> list[str]:
        """What a reader of the results should know (a fallback that was used, a limit that was met), one line each."""
        return []

    @property
    def parameters_count(self) -> int:
        """Numbers the model has learned (for count tables: stored probabilities and weights)."""
        return sum(t.numel() for t in self.tensors().values())
