"""Which verbs there are. Signatures are cheap to import; what a verb needs it imports when it runs."""

from __future__ import annotations

from importlib import import_module

import typer

GROUPS = {  # of `lmlab --help`, in its order: what one wants to do
    "Compare": ("compare", "sweep", "curves"),
    "Train": ("train", "settings"),
    "Use a trained model": ("eval", "score", "generate", "mix", "compress", "decompress", "export"),
    "Look inside": ("explain", "count", "plan"),
    "Other tasks": ("fill", "classify", "translate", "vectors", "combine", "latent"),
    "Mathematics": ("check", "prove"),
    "Housekeeping": ("data", "machine", "contract"),
}
FILES = {"eval": "evaluate"}  # of verbs whose file is not called as they are


def register(app: typer.Typer) -> None:
    """Add every verb to the command line: the `command` of its file."""
    from lmlab.cli.explaining import WithTopics
    from lmlab.cli.train import WithSettings

    classes = {"train": WithSettings, "explain": WithTopics}
    for group, verbs in GROUPS.items():
        for verb in verbs:
            command = import_module(f"lmlab.cli.{FILES.get(verb, verb)}").command
            app.command(verb, cls=classes.get(verb), rich_help_panel=group)(command)
