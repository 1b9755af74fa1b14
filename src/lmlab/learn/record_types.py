"""Whether the values of a record are of the kinds that its fields declare: run.json can be edited by anyone."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

PARTS = ("train", "valid", "test")


class WrongKey(ValueError):
    """A value that is missing or of another kind; the message is its key, with dots between the names."""


def check_types(record: Any, where: str) -> None:
    """WrongKey for the first field of a dataclass that holds something else than it declares. where: the record's own key."""
    hints = typing.get_type_hints(type(record))
    for field in dataclasses.fields(record):
        value, key = getattr(record, field.name), f"{where}.{field.name}"
        if not _fits(value, hints[field.name]):
            raise WrongKey(key)
        for part in value if isinstance(value, tuple) else (value,):
            if dataclasses.is_dataclass(part):
                check_types(part, key)


def check_parts(corpus: Mapping[str, Any], where: str) -> None:
    """WrongKey where a corpus does not say what its parts are; one of files has all three."""
    parts = corpus.get("parts")
    if not isinstance(parts, Mapping):
        raise WrongKey(where)
    for name in PARTS if "files" in corpus else parts:
        part = parts.get(name)
        if not isinstance(part, Mapping) or ("files" in corpus and not {"bytes", "sha256"} <= set(part)):
            raise WrongKey(f"{where}.{name}")


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, member) for member in typing.get_args(hint))
    if origin is typing.Literal:
        return value in typing.get_args(hint)
    if hint is Any:
        return True
    if hint in (int, float):
        return not isinstance(value, bool) and isinstance(value, int if hint is int else int | float)
    return isinstance(value, origin or hint)
