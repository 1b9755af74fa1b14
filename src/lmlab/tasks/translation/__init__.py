"""Translation: one text in several languages, learned from pairs of sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmlab.learn.plugin import TaskPlugin
from lmlab.models.registry import Kind, Role

if TYPE_CHECKING:
    from lmlab.learn.prepared import Prepared
    from lmlab.learn.request import TrainingRequest
    from lmlab.learn.run import Run
    from lmlab.results import OtherResult
    from lmlab.tasks.translation.scores import TranslationResult


class Translation(TaskPlugin):
    """Write a sentence in other languages."""

    def prepare(self, request: TrainingRequest) -> Prepared:
        """Read pairs of sentences, and build a translator."""
        from lmlab.tasks.translation.learner import prepare

        return prepare(request)

    def measure(
        self,
        run: Run,
        data: Any = None,
        *,
        part: str = "test",
        seed: int = 0,
        device: str = "auto",
        against: Any = None,
    ) -> OtherResult:
        """BLEU, chrF and bits per byte in every language, alone or against another translator."""
        from lmlab.tasks.translation.measure import evaluate

        return evaluate(run, data, part=part, seed=seed, device=device, against=against)

    def show(self, result: TranslationResult) -> None:
        """Print what `measure` returned."""
        from lmlab.tasks.translation.show import print_scores

        print_scores(result)


KINDS = (
    Kind(
        name="translator",
        where="lmlab.models.translator:Translator",
        about="an encoder-decoder Transformer: one encoder, any number of languages to translate into",
        role=Role.TRANSLATOR,
        task=Translation(),
        data="numbers",
        use='translate RUN "…"',
    ),
)
