"""Word pairs: two words combined into one vector, with a label, and what lies near a pair."""

from __future__ import annotations

from lmlab.models.registry import Kind, Role
from lmlab.tasks import TaskPackage

TASK = TaskPackage(__name__)
KINDS = (
    Kind(
        name="autoencoder",
        where="lmlab.models.autoencoder:Autoencoder",
        about="combines the vectors of two words into one, from which both can be brought back",
        role=Role.AUTOENCODER,
        task=TASK,
        data="austen",
        use="combine RUN WORD WORD",
    ),
)
