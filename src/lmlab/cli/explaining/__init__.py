"""The topics of `lmlab explain TOPIC`: each is its own subcommand."""

from __future__ import annotations

import difflib
from importlib import import_module
from pathlib import Path
from typing import Any

import typer.core

from lmlab.cli.build import build_command
from lmlab.config import Mistake
from lmlab_derive.shared.help import print_so_far

TOPICS = dict.fromkeys(("attention", "gates", "heads", "matrix", "search"), "inside")
TOPICS |= dict.fromkeys(
    ("gradients", "positions", "dot-products", "sandbox"), "theory"
)  # values: the module of the topic


def topic(name: str) -> Any:
    """Return the click command of a topic."""
    return build_command(name, getattr(import_module(f"{__name__}.{TOPICS[name]}"), name.replace("-", "_")))


class WithTopics(typer.core.TyperCommand):
    """A command that runs a subcommand instead if its first argument names one in `TOPICS`."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse the arguments after the command's name, or pass those after a topic to its subcommand."""
        if args and args[0] in TOPICS:
            return topic(args[0]).make_context(f"{info_name} {args[0]}", args[1:], parent=parent, **extra)
        near = difflib.get_close_matches(args[0], TOPICS, n=1, cutoff=0.75) if args else []
        if near and not Path(args[0]).exists():
            raise Mistake(
                f"{args[0]} is no run and no topic; did you mean lmlab explain {near[0]}?", code="topic-unknown"
            )
        return super().make_context(info_name, args, parent=parent, **extra)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help of the command, then the list of topics."""
        super().format_help(ctx, formatter)
        print_so_far(formatter)
        from lmlab_derive.shared.table import print_list

        print("Topics, each with --help of its own:")
        print_list({f"lmlab explain {name}": topic(name).get_short_help_str(limit=200) for name in TOPICS})
