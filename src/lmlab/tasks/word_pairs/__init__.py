"""Word pairs: two words combined into one vector, with a label, and what lies near a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmlab.learn.plugin import TaskPlugin
from lmlab.models.registry import Kind, Role

if TYPE_CHECKING:
    from lmlab.learn.prepared import Prepared
    from lmlab.learn.request import TrainingRequest
    from lmlab.learn.run import Run
    from lmlab.results import OtherResult
    from lmlab.tasks.word_pairs.measure import CombiningResult


class WordPairCombination(TaskPlugin):
    """Combine the vectors of two words into one, and label the pair."""

    def prepare(self, request: TrainingRequest) -> Prepared:
        """Read a text or a table of pairs, make word vectors, and build an autoencoder."""
        from lmlab.tasks.word_pairs.learner import prepare

        return prepare(request)

    def measure(
        self, run: Run, data: Any = None, *, part: str = "test", seed: int = 0, device: str = "auto"
    ) -> OtherResult:
        """Variance explained and accuracy on held-out pairs, beside addition and a linear map."""
        from lmlab.tasks.word_pairs.measure import evaluate

        return evaluate(run, data, part=part, seed=seed, device=device)

    def show(self, result: CombiningResult) -> None:
        """Print what `measure` returned."""
        from lmlab.tasks.word_pairs.show import print_scores

        print_scores(result)


KINDS = (
    Kind(
        name="autoencoder",
        where="lmlab.models.autoencoder:Autoencoder",
        about="combines the vectors of two words into one, from which both can be brought back",
        role=Role.AUTOENCODER,
        task=WordPairCombination(),
        data="austen",
        use="combine RUN WORD WORD",
    ),
)
