"""JSON at the edge: frozen dataclasses written as plain data, and read again by the types of their fields."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Records, tuples, mappings and numbers as JSON can hold them; null stands for a number that is not finite.

    A record whose class has a `to_json` of its own is asked for it.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if own := getattr(value, "to_json", None):
            return own()
        return fields_to_json(value)
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fields_to_json(record: Any) -> dict[str, Any]:
    """The fields of a record by name: what a `to_json` of its own starts from."""
    return {field.name: to_json(getattr(record, field.name)) for field in dataclasses.fields(record)}


class Document:
    """A record that is a JSON document as it is."""

    def to_json(self) -> dict[str, Any]:
        """Every field by its name; null stands for a number that is not finite."""
        return fields_to_json(self)


def from_json(kind: type[T], value: Any) -> T:
    """A record again; keys that no field has are passed over."""
    found: T = _read(kind, value)
    return found


def _read(hint: Any, value: Any) -> Any:
    origin, members = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        if own := getattr(hint, "from_json", None):
            return own(value)
        hints = typing.get_type_hints(hint)
        known = {field.name for field in dataclasses.fields(hint)}
        return hint(**{key: _read(hints[key], item) for key, item in value.items() if key in known})  # type: ignore[operator]
    if origin is types.UnionType:
        return None if value is None else _read(next(m for m in members if m is not types.NoneType), value)
    if origin is tuple:
        kinds = members[:1] * len(value) if members[-1] is Ellipsis else members
        return tuple(_read(kind, item) for kind, item in zip(kinds, value, strict=True))
    if origin is dict:
        return {key: _read(members[1], item) for key, item in value.items()}
    return value
