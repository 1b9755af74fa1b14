"""Golden values: what is measured, where the values are kept, and how far a number may move.

A group is a file of values/: a value of JSON for each of its cases. Deliberate changes touch the groups they mean: intervals,
splits and certificates stand apart from scores, and nothing else depends on how one file is divided.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from golden_places import Place

VALUES = Path(__file__).with_name("values")
NEAR_ZERO = 1e-6  # what any number may move: a log-probability near 0 is kept to so many digits behind the point


@dataclass(frozen=True, kw_only=True)
class Group:
    """Cases that are measured alike.

    measure: the values of a case, as JSON holds them. tolerance: how far a number may move, as a share of it, and `why`.
    slow: cases that take more than a second or two. may_grow: keys may be added, and none may go.
    """

    name: str
    cases: tuple[str, ...]
    measure: Callable[[str, Place], Any]
    tolerance: float
    why: str
    slow: frozenset[str] = frozenset()
    may_grow: bool = False

    @property
    def path(self) -> Path:
        """The file of its values."""
        return VALUES / f"{self.name}.json"

    def golden(self) -> dict[str, Any]:
        """The kept values by case."""
        found: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}
        return found

    def moved(self, golden: Any, found: Any) -> list[str]:
        """A line for every value that is not what it was."""
        return [f"{at or 'it'}: {was!r} -> {now!r}" for at, was, now in self._moved(golden, found, "")]

    def _moved(self, was: Any, now: Any, at: str) -> Iterator[tuple[str, Any, Any]]:
        if isinstance(was, dict) and isinstance(now, dict):
            for key in was.keys() | (set() if self.may_grow else now.keys()):
                if key in was and key in now:
                    yield from self._moved(was[key], now[key], f"{at}/{key}")
                else:
                    yield f"{at}/{key}", was.get(key, "nothing"), now.get(key, "nothing")
        elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
            for number, (old, new) in enumerate(zip(was, now, strict=True)):
                yield from self._moved(old, new, f"{at}/{number}")
        elif _is_number(was) and _is_number(now):
            if not math.isclose(was, now, rel_tol=self.tolerance, abs_tol=NEAR_ZERO if self.tolerance else 0.0):
                yield at, was, now
        elif was != now or type(was) is not type(now):
            yield at, was, now


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """A value as it comes back from its file."""
    return json.loads(json.dumps(value))


def write(group: Group, values: Mapping[str, Any]) -> None:
    """Write the values of a group, a line for each list of numbers."""
    VALUES.mkdir(exist_ok=True)
    group.path.write_text(_written(values) + "\n", encoding="utf-8")


def _written(value: Any, indent: str = "") -> str:
    """JSON in which what holds no other container stands in one line."""
    inner = indent + "  "
    members = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    if not any(isinstance(member, Mapping | list) for member in members):
        line = json.dumps(value, ensure_ascii=False)
        if len(line) <= 110 or not isinstance(value, Mapping):
            return line
    if isinstance(value, Mapping):
        lines = [
            f"{inner}{json.dumps(key, ensure_ascii=False)}: {_written(item, inner)}" for key, item in value.items()
        ]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(f"{inner}{_written(item, inner)}" for item in value) + f"\n{indent}]"
