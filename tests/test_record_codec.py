"""Records: JSON holds all of them, they come back as they were, and a value of another type is named by its key."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pytest

from lmlab.records import NOT_IN_JSON, JsonRecord, WrongKey, from_json, in_json, json_key, to_json


class Way(Enum):
    BACK = "back"
    AROUND = "around"


@dataclass(frozen=True)
class Point:
    x: float
    name: str = ""


@dataclass(frozen=True)
class Line:
    ends: tuple[Point, Point]
    others: tuple[Point, ...]
    named: dict[str, Point]
    best: Point | None
    by_number: Mapping[int, float] = field(default_factory=dict)
    listed: list[int] = field(default_factory=list)
    sequence: Sequence[Point] = ()
    end: Point | str = ""
    way: Way = Way.BACK
    status: Literal["begun", "finished"] = "begun"
    file: Path = Path("line.txt")
    other: Any = None


@dataclass(frozen=True, kw_only=True)
class Named(JsonRecord):
    text: str = field(metadata=json_key("word", old=("title", "name")))
    bits: float = field(default=0.0, metadata=json_key(null=math.inf))
    picture: str = field(default="", metadata=NOT_IN_JSON)

    @property
    @in_json
    def length(self) -> int:
        return len(self.text)

    @cached_property
    @in_json("letters")
    def characters(self) -> tuple[str, ...]:
        return tuple(self.text)

    @property
    def unmarked(self) -> int:
        return 1


@dataclass(frozen=True, kw_only=True)
class Longer(Named):
    inside: Point = field(metadata=json_key(flat=True))

    @property
    def length(self) -> int:
        return 10 * super().length

    @property
    @in_json(flat=True)
    def shares(self) -> dict[str, float]:
        return {"near": 0.5}


def through_json(record: Any) -> Any:
    return json.loads(json.dumps(to_json(record), allow_nan=False))


def test_a_record_comes_back_from_json_as_it_was() -> None:
    a, b = Point(1.0, "a"), Point(2.0)
    line = Line((a, b), (b, a, b), {"first": a}, None)
    assert from_json(Line, through_json(line)) == line
    line = Line(
        (a, b), (), {}, b, {1: 0.5}, [3], (a,), a, Way.AROUND, "finished", Path("other/line.txt"), {"more": [1, None]}
    )
    assert from_json(Line, through_json(line)) == line


def test_keys_that_no_field_has_are_ignored_and_absent_ones_have_their_default() -> None:
    assert from_json(Point, {"x": 1.0, "colour": "red"}) == Point(1.0)


def test_numbers_that_json_cannot_hold_are_null_and_read_as_the_field_says() -> None:
    assert to_json([math.inf, -math.inf, math.nan, 1.5]) == [None, None, None, 1.5]
    assert to_json(Point(math.nan)) == {"x": None, "name": ""}
    assert math.isnan(from_json(Point, {"x": None}).x)
    assert from_json(Named, {"word": "", "bits": None}).bits == math.inf


def test_a_document_holds_what_is_declared_where_the_class_is() -> None:
    word = Named(text="ab", bits=math.inf, picture="<svg>")
    assert word.to_json() == {"word": "ab", "bits": None, "length": 2, "letters": ["a", "b"]}
    assert from_json(Named, word.to_json()) == Named(text="ab", bits=math.inf)


def test_a_subclass_adds_keys_and_computes_others_anew() -> None:
    longer = Longer(text="ab", inside=Point(1.0, "p"))
    said = {"word": "ab", "bits": 0.0, "x": 1.0, "name": "p", "length": 20, "letters": ["a", "b"], "near": 0.5}
    assert longer.to_json() == said
    assert from_json(Longer, said) == longer


def test_a_key_of_older_documents_is_read() -> None:
    assert from_json(Named, {"title": "ab"}) == from_json(Named, {"name": "ab"}) == Named(text="ab")
    assert from_json(Named, {"title": "old", "word": "new"}).text == "new"


def test_a_whole_number_may_be_written_with_a_point() -> None:
    found = from_json(Line, {**through_json(Line((Point(1.0), Point(2)), (), {}, None)), "listed": [3.0]}).listed
    assert found == [3]
    assert isinstance(found[0], int)


def test_arrays_are_lists() -> None:
    import numpy as np

    assert to_json({"a": np.array([[1.0, math.inf]]), "b": np.int64(2)}) == {"a": [[1.0, None]], "b": 2}


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot hold a object"):
        to_json({"a": object()})


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("ends", [{"x": 1.0}]),
        ("ends", None),
        ("ends.1.x", [{"x": 1.0}, {"x": "wide"}]),
        ("ends.1.x", [{"x": 1.0}, {"x": True}]),
        ("ends.0.x", [{}, {"x": 1.0}]),
        ("others", "ab"),
        ("named", []),
        ("named.a", {"a": 3}),
        ("best.name", {"x": 1.0, "name": None}),
        ("by_number.1", {"1": "a half"}),
        ("listed.0", [1.5]),
        ("end", 3),
        ("way", "sideways"),
        ("status", "stopped"),
        ("file", 3),
    ],
)
def test_a_value_of_another_type_is_named_by_its_key(where: str, value: object) -> None:
    document = through_json(Line((Point(1.0), Point(2.0)), (), {}, None))
    with pytest.raises(WrongKey) as wrong:
        from_json(Line, {**document, where.partition(".")[0]: value}, "line")
    assert str(wrong.value) == f"line.{where}"


@pytest.mark.parametrize("document", [None, 3, [], "text", {}])
def test_what_is_no_document_of_the_record_is_refused(document: object) -> None:
    with pytest.raises(WrongKey):
        from_json(Point, document)
