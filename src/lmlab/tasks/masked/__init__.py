"""Masked tokens: an encoder guesses tokens that are hidden from it, and fills the blanks of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lmlab.learn.plugin import TaskPlugin
from lmlab.models.registry import Kind, Role

if TYPE_CHECKING:
    from lmlab.learn.prepared import Prepared
    from lmlab.learn.request import TrainingRequest
    from lmlab.learn.run import Run
    from lmlab.results import OtherResult
    from lmlab.tasks.masked.measure import MaskedResult


class MaskedTokens(TaskPlugin):
    """Guess tokens of a text from what stands before and after them."""

    reads_plain_text: ClassVar[bool] = True

    def prepare(self, request: TrainingRequest) -> Prepared:
        """Read a text, and build an encoder."""
        from lmlab.learn.prepare_text import prepare_text
        from lmlab.tasks.masked.learner import Masking

        return prepare_text(request, Masking)

    def measure(
        self, run: Run, data: Any = None, *, part: str = "test", seed: int = 0, device: str = "auto"
    ) -> OtherResult:
        """The masked loss beside that of counts, and the pseudo-log-likelihood."""
        from lmlab.tasks.masked.measure import evaluate

        return evaluate(run, data, part=part, seed=seed, device=device)

    def show(self, result: MaskedResult) -> None:
        """Print what `measure` returned."""
        from lmlab.tasks.masked.show import print_scores

        print_scores(result)


KINDS = (
    Kind(
        name="bert",
        where="lmlab.models.bert:BERT",
        about="an encoder Transformer that fills blanks: every place sees what is before and after it",
        role=Role.ENCODER,
        task=MaskedTokens(),
        use='fill RUN "The [MASK] …"',
    ),
)
