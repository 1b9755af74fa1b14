"""Help that is whole at every width and on every console: names on the left, words on the right, nothing cut.

And what goes for every option alike: what it takes has a name for people, and a file or a folder is never called "".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import typer.core

from lmlab_derive.shared.mistakes import Mistake

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}  # wider lines are hard to read


VALUES = {"path": "PATH", "float": "X", "int": "N"}  # by what is in the name of a type; anything else is TEXT


def name_values(command: Any) -> None:
    """What an option takes, in a word for people: N for a whole number, X for any, instead of a type of Python."""
    for param in command.params:
        if param.param_type_name == "option" and not param.is_flag and param.metavar is None:
            taken = _type_name(param)
            param.metavar = next((word for part, word in VALUES.items() if part in taken), "TEXT")


def refuse_empty_paths(command: Any) -> None:
    """A path of no characters (`--out "$NOTHING"`) would be the current folder, where nobody meant to write."""
    for param in command.params:
        if "path" in _type_name(param):
            param.process_value = partial(_process_path, param, param.process_value)


def _process_path(param: Any, process: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    if "" in (value if isinstance(value, (list, tuple)) else (value,)):
        raise Mistake(
            f"{{{param.name}}} is empty; name a file or a folder", code="argument-empty", **{param.name: None}
        )
    return process(ctx, value)


def _type_name(param: Any) -> str:
    described = getattr(param, "type_descriptor", None)  # newer versions of typer; older ones have a `type`
    return str(param.type if described is None else described.annotation).lower()


class Verbs(typer.core.TyperGroup):
    """The verbs by what one wants to do, each with its whole sentence."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for command in self.commands.values():
            name_values(command)
            refuse_empty_paths(command)

    def in_order(self) -> list[tuple[str, Any]]:
        """Return names and commands in the order of the help: that in which they are registered."""
        return list(self.commands.items())

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group of commands."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.in_order():
            about = command.get_short_help_str(limit=1000)
            sections.setdefault(str(getattr(command, "rich_help_panel", "Verbs")), []).append((name, about))
        longest = max(map(len, self.commands), default=0)
        for title, verbs in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(longest), about) for name, about in verbs])


def print_so_far(formatter: Any) -> None:
    """What help holds already, before more is printed below it."""
    print(formatter.getvalue())
    formatter.buffer.clear()
