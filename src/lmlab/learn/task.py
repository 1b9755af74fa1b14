"""What the loop learns: where batches come from, what is measured and in which unit, and when it has gone wrong."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

if TYPE_CHECKING:
    import torch

    from lmlab.interface import Learner, Loss

PartName = Literal["train", "valid"]


class Batch(Protocol):
    """What `Learner.loss` takes: rows that can be told apart and moved to where the model is."""

    @property
    def count(self) -> int:
        """How many things it predicts: the count of its loss."""
        ...

    @property
    def rows(self) -> int:
        """How many rows it has: what it can be cut between."""
        ...

    def select(self, rows: slice) -> Self:
        """Return the batch of these rows."""
        ...

    def to(self, device: torch.device) -> Self:
        """The same on another device."""
        ...


class Task(ABC):
    """One thing that can be learned. The loop, the checkpoint and the record of a run know nothing else of it."""

    name: ClassVar[str]  # in the record of a run
    thing: ClassVar[str]  # what a `Loss` counts: "token", "example"
    unit: ClassVar[str]  # of the numbers that are shown, such as "bits per byte"
    rows: int  # of a batch, on average

    @abstractmethod
    def batch(self, seed: int, step: int) -> Batch:
        """The batch of a step, a function of (seed, step) alone, so that a resumed run sees what it would have seen.

        Every process draws all of it, and takes its micro-batches of it (`learn/micro_batches.py`).
        """

    def pieces(self, batch: Any) -> Sequence[Any]:
        """A batch as it is worked off, a step for each piece: one, unless something is carried from one to the next."""
        return (batch,)

    def loss(self, model: Learner, piece: Any, carry: Any) -> tuple[Loss, Any]:
        """What a piece costs, and what the next one is given (None to the first)."""
        return model.loss(piece), None

    @abstractmethod
    def validation(self) -> Iterable[Batch]:
        """What the model is validated on, always the same; nothing: the last weights are kept."""

    @abstractmethod
    def measured(self, nats: float, part: PartName) -> Mapping[str, float]:
        """A mean of nats per thing as the numbers that are written down, by name; that of the unit is the one shown."""

    @property
    @abstractmethod
    def worst_nats(self) -> float:
        """Mean nats per thing above which training has diverged."""

    def training_flops(self, model: Learner) -> float | None:
        """Operations of learning from one thing, on average, by the model's formula, the update apart; None: not known.

        By itself that of a batch that is one thing alone.
        """
        return model.training_flops(1)

    @property
    def enough_steps(self) -> int | None:
        """Steps after which more of the same teaches it by heart, or nothing; None: there is no such number."""
        return None

    def calibrated(self, model: Learner, read: float) -> float | None:
        """After so many things were read: `NeuralLanguageModel.calibrate`, where the task and its validation call for it."""
        return None

    def sample(self, model: Learner) -> str | None:
        """Something that the model makes as it is now, to be looked at later; None: there is nothing to look at."""
        return None

    def shown(self, nats: float, part: PartName) -> float:
        """A mean of nats per thing in the unit of the task."""
        return self.measured(nats, part)[self.unit.replace(" ", "_")]
