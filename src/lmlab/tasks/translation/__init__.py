"""Translation: one text in several languages, learned from pairs of sentences."""

from __future__ import annotations

from lmlab.models.registry import Kind, Role
from lmlab.tasks import TaskPackage

TASK = TaskPackage(__name__)
KINDS = (
    Kind(
        name="translator",
        where="lmlab.models.translator:Translator",
        about="an encoder-decoder Transformer: one encoder, any number of languages to translate into",
        role=Role.TRANSLATOR,
        task=TASK,
        data="numbers",
        use='translate RUN "…"',
    ),
)
