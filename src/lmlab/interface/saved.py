"""The interface of every model that a run stores and loads, whatever its task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from torch import Tensor


class Saved(ABC):
    """A model that a run stores and loads exactly.

    A class is one kind of model. `Config` is its frozen dataclass of settings. An instance is a trained or newly initialized
    model.
    """

    name: ClassVar[str]
    Config: ClassVar[type]

    config: Any

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return all fitted parameters by name. A run stores them as model.safetensors."""

    @classmethod
    @abstractmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """Return the model whose `tensors()` these are. Its scores are bit-identical to those of the stored model."""

    @property
    def notes(self) -> list[str]:
        """Remarks for readers of the results, one line each, such as a fallback that was used or a limit that was reached."""
        return []

    @property
    def parameters_count(self) -> int:
        """The number of fitted parameters. For count tables: stored probabilities and weights."""
        return sum(t.numel() for t in self.tensors().values())
