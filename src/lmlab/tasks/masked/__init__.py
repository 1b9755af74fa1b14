"""Masked tokens: an encoder guesses tokens that are hidden from it, and fills the blanks of a text."""

from __future__ import annotations

from lmlab.models.registry import Kind, Role
from lmlab.tasks import TaskPackage

TASK = TaskPackage(__name__, reads_plain_text=True)
KINDS = (
    Kind(
        name="bert",
        where="lmlab.models.bert:BERT",
        about="an encoder Transformer that fills blanks: every place sees what is before and after it",
        role=Role.ENCODER,
        task=TASK,
        use='fill RUN "The [MASK] …"',
    ),
)
