"""The interface of a task: how its models are prepared for training, measured, and their results printed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmlab.learn.prepared import Prepared
    from lmlab.learn.request import TrainingRequest
    from lmlab.learn.run import Run
    from lmlab.results import OtherResult


class TaskPlugin(ABC):
    """A task: the preparation, measurement and display of its models.

    The registry entry of every kind of model for the task holds an object of this class. Plug-ins are created whenever lmlab
    is imported, so their methods import what they need when they are called.
    """

    # Whether models are trained on windows of plain text. Such runs can be fine-tuned, extended and planned.
    reads_plain_text: bool = False

    @abstractmethod
    def prepare(self, request: TrainingRequest) -> Prepared:
        """Read the data of a request and construct the model that is trained on it."""

    @abstractmethod
    def measure(
        self, run: Run, data: Any = None, *, part: str = "test", seed: int = 0, device: str = "auto"
    ) -> OtherResult:
        """Measure a trained model.

        Args:
            run: the run that holds the model.
            data: other data, which is measured as a whole. None: the data of the run, of which `part` is measured.
            part: the part of the run's own data.
            seed: the seed of any sampling.
            device: the device to compute on.
        """

    @abstractmethod
    def show(self, result: Any) -> None:
        """Print a result that `measure` returned."""
