"""The interface between a training objective and the training loop: batches, loss, metrics and the threshold for divergence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

if TYPE_CHECKING:
    import torch

    from lmlab.interface import Learner, Loss

PartName = Literal["train", "valid"]


class Batch(Protocol):
    """A batch that `Learner.loss` accepts. It can be split by rows and moved to a device."""

    @property
    def count(self) -> int:
        """The number of predicted items, which is the count of the batch's loss."""
        ...

    @property
    def rows(self) -> int:
        """The number of rows. A batch can be split into micro-batches at row boundaries."""
        ...

    def select(self, rows: slice) -> Self:
        """Return a batch of the selected rows."""
        ...

    def to(self, device: torch.device) -> Self:
        """Return the batch on another device."""
        ...


class Task(ABC):
    """A training objective: batches, loss, validation data and metrics.

    The training loop, checkpoints and run records use only this interface.
    """

    name: ClassVar[str]  # in the run record
    thing: ClassVar[str]  # the item that `Loss.count` counts: "token" or "example"
    unit: ClassVar[str]  # of displayed losses, such as "bits per byte"
    rows: int  # average number of rows of a batch

    @abstractmethod
    def batch(self, seed: int, step: int) -> Batch:
        """Return the batch of a step as a function of (seed, step) alone, so that a resumed run sees the same batches.

        Every process draws the whole batch and then selects its micro-batches (`learn/micro_batches.py`).
        """

    def pieces(self, batch: Any) -> Sequence[Any]:
        """Split a batch into pieces that are trained in order, one optimizer step each.

        The default is one piece. Tasks that carry state from one piece to the next use several.
        """
        return (batch,)

    def loss(self, model: Learner, piece: Any, carry: Any) -> tuple[Loss, Any]:
        """Return the loss of a piece and the state for the next piece.

        Args:
            model: the model in training.
            piece: one piece of a batch, from `pieces`.
            carry: the state from the previous piece; None for the first piece.
        """
        return model.loss(piece), None

    @abstractmethod
    def validation(self) -> Iterable[Batch]:
        """Return the validation batches, which are the same on every call. Empty: the last weights are kept, not the best
        ones.
        """

    @abstractmethod
    def measured(self, nats: float, part: PartName) -> Mapping[str, float]:
        """Convert a mean loss to the logged metrics, by name. The metric named after `unit` is the one displayed.

        Args:
            nats: mean loss in nats per item.
            part: the part of the data that the loss was measured on.
        """

    @property
    @abstractmethod
    def worst_nats(self) -> float:
        """The mean loss in nats per item above which training has diverged."""

    def training_flops(self, model: Learner) -> float | None:
        """Return the average forward and backward FLOPs per item by the model's formula, without the optimizer; None: unknown.

        The default is correct for tasks in which one row is one item.
        """
        return model.training_flops(1)

    @property
    def enough_steps(self) -> int | None:
        """The number of steps after which further training only overfits or gains nothing. None: no such number is known."""
        return None

    def calibrated(self, model: Learner, read: float) -> float | None:
        """Calibrate the model's logits after training if the task needs it; see `NeuralLanguageModel.calibrate`.

        Args:
            model: the trained model.
            read: the number of items it was trained on.

        Returns:
            The factor of the logits; None if they are unchanged.
        """
        return None

    def sample(self, model: Learner) -> str | None:
        """Return a text that the model generates in its present state, to be logged. None: the task has no samples."""
        return None

    def shown(self, nats: float, part: PartName) -> float:
        """Convert a mean loss in nats per item to the unit of the task."""
        return self.measured(nats, part)[self.unit.replace(" ", "_")]
