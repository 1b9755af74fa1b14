"""The settings of a model in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmlab_derive.shared.console import result_console, say
from lmlab_derive.shared.table import Column, print_table

if TYPE_CHECKING:
    from lmlab.learn.about_settings import Setting, Settings


def print_settings(found: Settings) -> None:
    """Two tables: of the model, and of the training loop."""
    console = result_console()
    say(console, f"{found.model}: {found.about}")
    if found.text is not None:
        here = f"here: {found.text} in {found.tokenizer} tokens with a budget of {found.budget}"
        timed = ", as steps were timed just now" if found.by_the_clock else ""
        say(console, f"{here}, {found.parameters:,} parameters{timed}")
    for option, settings in (("--set", found.settings), ("--learn", found.learning)):
        if settings:
            print()
            _print(option, settings, with_here=found.text is not None)
    if not found.settings:
        say(console, "It has no settings.")


def _print(option: str, settings: Sequence[Setting], *, with_here: bool) -> None:
    columns = [Column(option, left=True), Column("default", left=True)]
    columns += [Column("here", left=True)] if with_here else []
    columns.append(Column("what it is", left=True))
    rows = []
    for s in settings:
        here = [_shown(s.here)] if with_here else []
        meaning = f"{s.meaning} ({s.kind})" if "|" in s.kind else s.meaning
        rows.append([s.name, "auto" if s.default is None else _shown(s.default), *here, meaning])
    print_table(result_console(), columns, rows)


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
