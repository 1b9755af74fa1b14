"""Word vectors: counting which words stand near which, learning vectors, and what lies near a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmlab.learn.plugin import TaskPlugin
from lmlab.models.registry import Kind, Role

if TYPE_CHECKING:
    from lmlab.learn.prepared import Prepared
    from lmlab.learn.request import TrainingRequest
    from lmlab.learn.run import Run
    from lmlab.results import OtherResult
    from lmlab.tasks.word_vectors.measure import VectorsResult


class WordVectorLearning(TaskPlugin):
    """Predict how often words stand near each other, by vectors."""

    def prepare(self, request: TrainingRequest) -> Prepared:
        """Count the pairs of words of a text, and build a model of their logarithms."""
        from lmlab.tasks.word_vectors.learner import prepare

        return prepare(request)

    def measure(
        self, run: Run, data: Any = None, *, part: str = "test", seed: int = 0, device: str = "auto"
    ) -> OtherResult:
        """The objective and the variance explained on held-out pairs, beside word frequencies alone."""
        from lmlab.tasks.word_vectors.measure import evaluate

        return evaluate(run, data, part=part, seed=seed, device=device)

    def show(self, result: VectorsResult) -> None:
        """Print what `measure` returned."""
        from lmlab.tasks.word_vectors.show import print_scores

        print_scores(result)


KINDS = (
    Kind(
        name="glove",
        where="lmlab.models.glove:GloVe",
        about="word vectors from which words stand near which, by weighted least squares",
        role=Role.WORD_VECTORS,
        task=WordVectorLearning(),
        use="vectors RUN neighbours WORD",
    ),
)
