"""The codec between frozen dataclasses and JSON.

`to_json` writes a record as plain JSON data: a key for each field, and a key for each property marked with `in_json`.
`from_json` reads it again and checks every value against the type of its field. The class declares where its document differs:

    @dataclass(frozen=True, kw_only=True)
    class Line(JsonRecord):
        start: Point
        end: Point
        label: str = field(metadata=json_key("name", old=("title",)))  # written as "name"; older files say "title"
        figure: str = field(default="", metadata=NOT_IN_JSON)

        @property
        @in_json
        def length(self) -> float: ...

JSON has no infinity and no NaN, so null is written for them. What is read for null in a field of type `float` is NaN, or what
`json_key(null=...)` says.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import html
import math
import reprlib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, overload

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_MARK = "json"  # where a field's metadata and a marked getter keep their `_Key`


class WrongKey(ValueError):
    """A key that is missing, or whose value has another type; the message is the path to it, as in `model.config`."""


@dataclass(frozen=True, kw_only=True)
class _Key:
    name: str | None = None
    old: tuple[str, ...] = ()
    null: float = math.nan
    flat: bool = False
    is_written: bool = True


def json_key(
    name: str | None = None, *, old: Sequence[str] = (), null: float = math.nan, flat: bool = False
) -> dict[str, Any]:
    """Return the metadata of a field whose key in JSON differs from its name.

    Args:
        name: the key; None: the field's own name.
        old: names of the key in older documents, read where `name` is absent.
        null: the number that null stands for, in a field of type `float`.
        flat: the keys of the field's value stand among those of the record that holds it.
    """
    return {_MARK: _Key(name=name, old=tuple(old), null=null, flat=flat)}


NOT_IN_JSON: dict[str, Any] = {_MARK: _Key(is_written=False)}  # metadata of a field that a document leaves out


@overload
def in_json(name: F, /) -> F: ...
@overload
def in_json(name: str | None = None, /, *, flat: bool = False) -> Callable[[F], F]: ...
def in_json(name: Any = None, /, *, flat: bool = False) -> Any:
    """Mark the getter of a property: its value is written as a key of the document. Stands below `@property`.

    Args:
        name: the key; None: the property's own name.
        flat: the keys of the value stand among those of the record.
    """
    if callable(name):
        return in_json()(name)

    def mark(getter: F) -> F:
        setattr(getter, _MARK, _Key(name=name or getter.__name__, flat=flat))
        return getter

    return mark


def to_json(value: Any) -> Any:
    """Return a value as JSON can hold it: records and mappings as objects, sequences and arrays as lists.

    An object with a method `to_json` is asked for its own document.
    """
    if value is None or isinstance(value, bool | int | str):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, type):
        if own := getattr(value, "to_json", None):
            return own()
        if dataclasses.is_dataclass(value):
            return fields_to_json(value)
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if hasattr(value, "tolist"):  # arrays and their numbers
        return to_json(value.tolist())
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, enum.Enum):
        return to_json(value.value)
    raise TypeError(f"JSON cannot hold a {type(value).__name__}: {value!r}")


def fields_to_json(record: Any) -> dict[str, Any]:
    """Return the document of a record: its fields, then its marked properties."""
    document: dict[str, Any] = {}
    for attribute, about in _keys(record.__class__).items():
        written = to_json(getattr(record, attribute))
        document |= written if about.flat else {str(about.name): written}
    return document


class JsonRecord:
    """A record that gives its own JSON document, and shows itself in a notebook: by a picture, or as a table of its fields."""

    def _repr_html_(self) -> str:
        draw = _DISPLAYS.get(type(self))
        return _table(self) if draw is None else draw(self)

    def to_json(self) -> dict[str, Any]:
        """Return the document: every field, and what is computed from them."""
        return fields_to_json(self)


_DISPLAYS: dict[type, Callable[[Any], str]] = {}
SHOWN = 120  # characters of a value in a notebook or in a terminal


def display(kind: type[T], draw: Callable[[T], str]) -> None:
    """Let records of this kind show themselves in a notebook as the HTML that `draw` makes of them."""
    _DISPLAYS[kind] = draw


def brief(record: Any) -> str:
    """Return a record as a line: its fields, long values cut. To be the `__repr__` of records that hold many numbers."""
    return f"{type(record).__name__}({', '.join(f'{name}={value}' for name, value in _shown(record))})"


def _shown(record: Any) -> list[tuple[str, str]]:
    found = [(field.name, getattr(record, field.name)) for field in dataclasses.fields(record)]
    return [(name, _one_line(value)) for name, value in found]


def _one_line(value: Any) -> str:
    if isinstance(value, tuple | list) and len(value) > 3:
        return f"{len(value)} items"
    text = value if isinstance(value, str) else reprlib.repr(value)
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _table(record: Any) -> str:
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in _shown(record)
    )
    return f"<div><b>{html.escape(type(record).__name__)}</b><table>{rows}</table></div>"


@functools.cache
def _keys(cls: Any) -> dict[str, _Key]:
    """Return the key of every attribute that is written."""
    found = {}
    for field in dataclasses.fields(cls):
        about: _Key = field.metadata.get(_MARK, _Key())
        if about.is_written:
            found[field.name] = dataclasses.replace(about, name=about.name or field.name)
    for base in reversed(cls.__mro__):
        for name, attribute in vars(base).items():
            getter = getattr(attribute, "fget", None) or getattr(attribute, "func", None)
            if isinstance(mark := getattr(getter, _MARK, None), _Key):
                found[name] = mark
    return found


def from_json(kind: type[T], value: Any, where: str = "") -> T:
    """Return the record that a document holds. Keys that no field has are ignored, absent ones have the field's default.

    Args:
        kind: the class of the record, or any other type hint made of records and plain values.
        value: what `json.loads` returned.
        where: the path to the value, for the message.

    Raises:
        WrongKey: a key is missing, or its value is not of the type of its field.
    """
    found: T = _read(kind, value, where, _Key())
    return found


def _read(hint: Any, value: Any, where: str, about: _Key) -> Any:
    origin, members = typing.get_origin(hint), typing.get_args(hint)
    if own := getattr(hint, "from_json", None):
        return own(value)
    if dataclasses.is_dataclass(hint):
        return _read_record(hint, value, where)
    if origin in (typing.Union, types.UnionType):
        return _read_union(members, value, where, about)
    if origin is typing.Literal:
        return _checked(value, any(value == one and type(value) is type(one) for one in members), where)
    if origin is tuple:
        return _read_tuple(members, value, where)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        _checked(value, isinstance(value, Mapping), where)
        names = int if members[0] is int else str
        return {names(name): _read(members[1], item, _below(where, name), _Key()) for name, item in value.items()}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        items = _read_tuple((members[0], ...), value, where)
        return list(items) if origin is list else items
    return _read_plain(origin or hint, value, where, about)


def _read_record(kind: Any, value: Any, where: str) -> Any:
    _checked(value, isinstance(value, Mapping), where)
    hints, found = typing.get_type_hints(kind), {}
    for field in dataclasses.fields(kind):
        about: _Key = field.metadata.get(_MARK, _Key())
        if about.flat:
            found[field.name] = _read(hints[field.name], value, where, about)
            continue
        written = about.name or field.name
        name = next((name for name in (written, *about.old) if name in value), None)
        if name is not None and about.is_written:
            found[field.name] = _read(hints[field.name], value[name], _below(where, name), about)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise WrongKey(_below(where, written))
    return kind(**found)


def _read_union(members: Sequence[Any], value: Any, where: str, about: _Key) -> Any:
    if value is None and types.NoneType in members:
        return None
    others = [member for member in members if member is not types.NoneType]
    for member in others[:-1]:
        try:
            return _read(member, value, where, about)
        except WrongKey:
            continue
    return _read(others[-1], value, where, about)


def _read_tuple(members: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    _checked(value, isinstance(value, list | tuple), where)
    hints = [members[0]] * len(value) if members[-1] is Ellipsis else members
    _checked(value, len(hints) == len(value), where)
    return tuple(_read(hints[i], item, _below(where, i), _Key()) for i, item in enumerate(value))


def _read_plain(hint: Any, value: Any, where: str, about: _Key) -> Any:
    if hint in (Any, object):
        return value
    if hint is float and value is None:
        return about.null
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)  # JSON has one kind of number, and other tools write 1.0 for 1
    if hint in (int, float):
        return _checked(value, isinstance(value, int | hint) and not isinstance(value, bool), where)
    if hint is Path or (isinstance(hint, type) and issubclass(hint, enum.Enum)):
        try:
            return hint(value)
        except (TypeError, ValueError):
            raise WrongKey(where) from None
    return _checked(value, isinstance(value, hint), where)


def _checked(value: T, is_right: bool, where: str) -> T:
    if not is_right:
        raise WrongKey(where or "the document")
    return value


def _below(where: str, name: object) -> str:
    return f"{where}.{name}" if where else str(name)
