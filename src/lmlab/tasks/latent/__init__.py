"""Latent variables: the bound that is learned, those that are reported, and texts from places of the latent space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lmlab.learn.plugin import TaskPlugin
from lmlab.models.registry import Kind, Role

if TYPE_CHECKING:
    from lmlab.learn.prepared import Prepared
    from lmlab.learn.request import TrainingRequest
    from lmlab.learn.run import Run
    from lmlab.results import OtherResult
    from lmlab.tasks.latent.measure import LatentResult


class LatentVariables(TaskPlugin):
    """Learn a bound of the probability of a text, with a latent variable behind every segment."""

    reads_plain_text: ClassVar[bool] = True

    def prepare(self, request: TrainingRequest) -> Prepared:
        """Read a text, and build a latent-variable model."""
        from lmlab.learn.prepare_text import prepare_text
        from lmlab.tasks.latent.learner import Bound

        return prepare_text(request, Bound)

    def measure(
        self, run: Run, data: Any = None, *, part: str = "test", seed: int = 0, device: str = "auto"
    ) -> OtherResult:
        """Two bounds of the bits per byte of a text, and what the latent variable carries."""
        from lmlab.tasks.latent.measure import evaluate

        return evaluate(run, data, part=part, seed=seed, device=device)

    def show(self, result: LatentResult) -> None:
        """Print what `measure` returned."""
        from lmlab.tasks.latent.show import print_scores

        print_scores(result)


KINDS = (
    Kind(
        name="variational",
        where="lmlab.models.variational:Variational",
        about="a gru with a latent variable behind every segment, trained on a bound",
        role=Role.LATENT_VARIABLE_MODEL,
        task=LatentVariables(),
        use="latent RUN",
    ),
)
