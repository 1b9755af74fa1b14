"""Records: JSON holds all of them, and they come back as they were."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from lmlab.records import fields_to_json, from_json, to_json


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


@dataclass(frozen=True)
class Own:
    inside: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"own": self.inside}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Own:
        return cls(found["own"])


@dataclass(frozen=True)
class Holder:
    own: Own


def test_a_record_comes_back_from_json_as_it_was() -> None:
    a, b = Point(1.0, "a"), Point(2.0)
    line = Line((a, b), (b, a, b), {"first": a}, None)
    assert from_json(Line, json.loads(json.dumps(to_json(line)))) == line


def test_keys_that_no_field_has_are_passed_over_and_missing_ones_have_their_default() -> None:
    assert from_json(Point, {"x": 1.0, "colour": "red"}) == Point(1.0)


def test_numbers_that_json_cannot_hold_are_null() -> None:
    assert to_json([math.inf, -math.inf, math.nan, 1.5]) == [None, None, None, 1.5]
    assert fields_to_json(Point(math.nan)) == {"x": None, "name": ""}


def test_a_record_may_speak_for_itself() -> None:
    holder = Holder(Own({"a": 1}))
    assert to_json(holder) == {"own": {"own": {"a": 1}}}
    assert from_json(Holder, to_json(holder)) == holder
