"""Settings as one writes them on the command line: a `Mistake` names a setting, and only here it gets its dashes."""

from __future__ import annotations

from shlex import quote
from typing import Any


def written_flag(parameter: Any, value: object) -> str:
    """A setting that is this parameter of a command, with its value (None: only its name)."""
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper() if value is None else str(value)
    flag = max(parameter.opts, key=len)
    return str(flag) if value is None or value is True else f"{flag} {quote(str(value))}"
