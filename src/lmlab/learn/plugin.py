"""What the lab asks of a task: how its models are prepared for training, measured and shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from lmlab.learn.prepared import Prepared
    from lmlab.learn.request import TrainingRequest
    from lmlab.learn.run import Run
    from lmlab.results import OtherResult


class TaskPlugin(ABC):
    """How models of one task are trained, measured and shown: data → learner → measure → show.

    The registry entry of every kind of model that learns the task holds an object of this class. A plug-in is made whenever
    lmlab is imported, so its methods import what they need when they are called.
    """

    # Whether models learn from windows of a plain text. Their runs can be fine-tuned, get more time, and be planned.
    reads_plain_text: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, request: TrainingRequest) -> Prepared:
        """Read the data of a request and build the model that learns from it."""

    @abstractmethod
    def measure(
        self, run: Run, data: Any = None, *, part: str = "test", seed: int = 0, device: str = "auto"
    ) -> OtherResult:
        """Measure a trained model on a part of its own data, or on all of other data."""

    @abstractmethod
    def show(self, result: Any) -> None:
        """Print what `measure` returned."""
