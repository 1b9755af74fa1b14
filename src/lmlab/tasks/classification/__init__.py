"""Labels for texts: training a classifier, measuring it, and looking at its mistakes."""

from __future__ import annotations

from lmlab.models.registry import Kind, Role
from lmlab.tasks import TaskPackage

TASK = TaskPackage(__name__)
KINDS = (
    Kind(
        name="dan",
        where="lmlab.models.dan:DAN",
        about="a classifier: the average of a text's word vectors, a layer or more above it",
        role=Role.CLASSIFIER,
        task=TASK,
        data="authors",
        use='classify RUN "…"',
    ),
    Kind(
        name="classifier",
        where="lmlab.models.classifier:Classifier",
        about="an encoder that gives texts labels, begun with a trained `bert` (`--from`) or afresh",
        role=Role.CLASSIFIER,
        task=TASK,
        data="authors",
        begins_with="bert",
        use='classify RUN "…"',
    ),
)
