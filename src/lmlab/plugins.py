"""Every task of the lab besides language modelling, one line each: its package registers the kinds of models that learn it.

`lmlab` imports this module, so these packages import nothing heavy: what a task needs it imports when it is used.
"""

from __future__ import annotations

from importlib import import_module

from lmlab.models.registry import register

TASKS = (  # in the order of the models in lists
    "lmlab.tasks.classification",
    "lmlab.tasks.masked",
    "lmlab.tasks.latent",
    "lmlab.tasks.translation",
    "lmlab.tasks.word_vectors",
    "lmlab.tasks.word_pairs",
)

FORMATS = ("lmlab.exchange.huggingface_format",)  # of folders that other programs write

for package in TASKS:
    register(*import_module(package).KINDS)
for module in FORMATS:
    import_module(module)
