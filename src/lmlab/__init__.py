"""lmlab: a laboratory for language models.

import lmlab
run = lmlab.train("gpt", "mytext.txt", out="runs/mine", budget="3m")
print(lmlab.evaluate(run).bits_per_byte)
print(lmlab.generate(run, "Once upon")[0].text)
"""

# ruff: noqa: F403, F405  (what the face offers is named once, below)
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmlab import plugins as _plugins  # noqa: F401  (registers every task)
from lmlab.version import __version__ as __version__

__all__ = [
    "Mistake",
    "analogy",
    "check",
    "classify",
    "combine",
    "compare",
    "compress",
    "contract",
    "count",
    "curves",
    "data",
    "decompress",
    "evaluate",
    "explain",
    "explain_attention",
    "explain_dot_products",
    "explain_gates",
    "explain_gradients",
    "explain_heads",
    "explain_matrix",
    "explain_positions",
    "explain_sandbox",
    "explain_search",
    "export",
    "fill",
    "fine_tune",
    "generate",
    "generate_many",
    "grade",
    "latent",
    "load",
    "machine",
    "mistakes",
    "mix",
    "neighbours",
    "plan",
    "plan_steps",
    "prove",
    "read",
    "recipe",
    "resume",
    "score",
    "settings",
    "strings",
    "sweep",
    "train",
    "translate",
    "vectors",
    "word_map",
]

if TYPE_CHECKING:
    from lmlab.face import *  # for whoever checks types; a verb is imported when it is asked for


def __getattr__(name: str) -> Any:
    """Import the face only when it is used: its verbs need torch, and `import lmlab` should not."""
    if name in __all__:
        from lmlab import face
        from lmlab.arguments import held_to_its_signature

        found = getattr(face, name)
        return found if isinstance(found, type) else held_to_its_signature(found)
    raise AttributeError(f"module 'lmlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is offered, for an editor to complete; not what this file is made with."""
    return [*__all__, "__version__"]
