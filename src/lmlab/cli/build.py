"""Builds a click command from a function with typer's options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from lmlab_derive.shared.help import CONTEXT, name_values, refuse_empty_paths


def build_command(name: str, function: Callable[..., Any], cls: type[Any] | None = None) -> Any:
    """Return the click command of a function. cls: a subclass of typer's command; None: typer's own."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=CONTEXT)
    alone.command(name, cls=cls)(function)
    command = typer.main.get_command(alone)
    name_values(command)
    refuse_empty_paths(command)
    return command
