"""The conversion of a training request into a prepared training; every training goes through `prepare`."""

from __future__ import annotations

from lmlab.config import Mistake
from lmlab.interface import TextLearner
from lmlab.learn.next_token import NextToken
from lmlab.learn.prepare_text import prepare_count, prepare_text
from lmlab.learn.prepared import Prepared
from lmlab.learn.request import TrainingRequest
from lmlab.models.registry import Kind, Way, trainable_kind


def prepare(request: TrainingRequest) -> Prepared:
    """Read the data of a request, create its tokenizer, choose sizes and hardware, and construct the model.

    Nothing is written and nothing is trained, but for a budget of seconds some steps are timed.
    """
    kind = trainable_kind(request.model)
    if kind.task is not None:
        return kind.task.prepare(request)
    if kind.way is Way.COUNTS:
        if request.world.size > 1:
            raise Mistake(
                f"{request.model} counts its text once, which is the work of one process; start it without torchrun",
                code="counts-in-one-process",
            )
        return prepare_count(request)
    if not issubclass(kind.load(), TextLearner):
        raise Mistake(
            f"{request.model} learns no task that lmlab knows: derive it from TextLearner or NeuralLanguageModel in"
            " lmlab.interface",
            code="model-without-task",
        )
    return prepare_text(request, NextToken)


def reads_plain_text(kind: Kind) -> bool:
    """Whether a kind of model is trained on a plain text alone, as language models are."""
    return kind.task is None or kind.task.reads_plain_text
