"""The tasks besides language modelling, a package each; `lmlab.plugins` lists the packages."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lmlab.learn.plugin import TaskPlugin

if TYPE_CHECKING:
    from lmlab.learn.prepared import Prepared
    from lmlab.learn.request import TrainingRequest
    from lmlab.learn.run import Run
    from lmlab.results import OtherResult


class TaskPackage(TaskPlugin):
    """A task whose package holds `learner.prepare`, `measure.evaluate` and `show.print_scores`, imported when called."""

    def __init__(self, package: str, *, reads_plain_text: bool = False) -> None:
        """package: the `__name__` of the package. reads_plain_text: whether models are trained on windows of plain text."""
        self.package, self.reads_plain_text = package, reads_plain_text

    def _module(self, name: str) -> Any:
        return import_module(f"{self.package}.{name}")

    def prepare(self, request: TrainingRequest) -> Prepared:
        """Read the data of a request and construct the model that is trained on it."""
        prepared: Prepared = self._module("learner").prepare(request)
        return prepared

    def measure(
        self, run: Run, data: Any = None, *, part: str = "test", seed: int = 0, device: str = "auto", **options: Any
    ) -> OtherResult:
        """Measure a trained model. options: further arguments that `evaluate` of the package takes."""
        result: OtherResult = self._module("measure").evaluate(
            run, data, part=part, seed=seed, device=device, **options
        )
        return result

    def show(self, result: Any) -> None:
        """Print a result that `measure` returned."""
        self._module("show").print_scores(result)
