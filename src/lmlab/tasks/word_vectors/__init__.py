"""Word vectors: counting which words stand near which, learning vectors, and what lies near a word."""

from __future__ import annotations

from lmlab.models.registry import Kind, Role
from lmlab.tasks import TaskPackage

TASK = TaskPackage(__name__)
KINDS = (
    Kind(
        name="glove",
        where="lmlab.models.glove:GloVe",
        about="word vectors from which words stand near which, by weighted least squares",
        role=Role.WORD_VECTORS,
        task=TASK,
        use="vectors RUN neighbours WORD",
    ),
)
