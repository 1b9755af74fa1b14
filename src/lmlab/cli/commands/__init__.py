"""The commands of `lmlab`: a file of this folder is a command of its name.

The file defines `command`, a function with typer's options; `SECTION`, where `lmlab --help` lists it; and, where the command is
more than a function, `COMMAND_CLASS`, a subclass of typer's command. A file is imported when its command is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, get_args

from lmlab.cli.build import build_command

Section = Literal[
    "Compare", "Train", "Use a trained model", "Look inside", "Other tasks", "Mathematics", "Housekeeping"
]  # in the order of the help


@cache
def names() -> tuple[str, ...]:
    """Return the names of all commands, without importing them."""
    return tuple(module.name for module in iter_modules(__path__))


@cache
def load(name: str) -> Any:
    """Import a command and return it as a click command."""
    module = import_module(f"{__name__}.{name}")
    command = build_command(name, module.command, getattr(module, "COMMAND_CLASS", None))
    command.rich_help_panel = module.SECTION
    return command


class Commands(Mapping[str, Any]):
    """The click commands by name; each is imported at its first lookup."""

    def __getitem__(self, name: str) -> Any:
        if name not in names():
            raise KeyError(name)
        return load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(names())

    def __len__(self) -> int:
        return len(names())

    def by_section(self) -> list[tuple[str, Any]]:
        """Return names and commands in the order of the help."""
        sections = get_args(Section)
        return sorted(self.items(), key=lambda item: sections.index(item[1].rich_help_panel))
