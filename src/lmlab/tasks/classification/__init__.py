"""Labels for texts: training a classifier, measuring it, and looking at its mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmlab.learn.plugin import TaskPlugin
from lmlab.models.registry import Kind, Role

if TYPE_CHECKING:
    from lmlab.learn.prepared import Prepared
    from lmlab.learn.request import TrainingRequest
    from lmlab.learn.run import Run
    from lmlab.results import OtherResult
    from lmlab.tasks.classification.scores import ClassifierResult


class Classification(TaskPlugin):
    """Give a text one of several labels."""

    def prepare(self, request: TrainingRequest) -> Prepared:
        """Read a table of texts with labels, and build a classifier."""
        from lmlab.tasks.classification.learner import prepare

        return prepare(request)

    def measure(
        self, run: Run, data: Any = None, *, part: str = "test", seed: int = 0, device: str = "auto"
    ) -> OtherResult:
        """Accuracy, F1, bits and calibration, beside a majority and a bag of words."""
        from lmlab.tasks.classification.measure import evaluate

        return evaluate(run, data, part=part, seed=seed, device=device)

    def show(self, result: ClassifierResult) -> None:
        """Print what `measure` returned."""
        from lmlab.tasks.classification.show import print_scores

        print_scores(result)


KINDS = (
    Kind(
        name="dan",
        where="lmlab.models.dan:DAN",
        about="a classifier: the average of a text's word vectors, a layer or more above it",
        role=Role.CLASSIFIER,
        task=Classification(),
        data="authors",
        use='classify RUN "…"',
    ),
    Kind(
        name="classifier",
        where="lmlab.models.classifier:Classifier",
        about="an encoder that gives texts labels, begun with a trained `bert` (`--from`) or afresh",
        role=Role.CLASSIFIER,
        task=Classification(),
        data="authors",
        begins_with="bert",
        use='classify RUN "…"',
    ),
)
