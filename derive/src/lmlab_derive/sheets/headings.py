"""Lines that name the questions of a key, or say which question an answer is to: `question 1a (3 points)`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

_HEADING = re.compile(r"\s*question(?:\s*:\s*|\s+)(?P<name>[^#]*?)\s*(?:#.*)?$", re.IGNORECASE)
_POINTS = re.compile(r"(?P<name>.*?)[\s,:(\[]*(?<![\w.])(?P<points>\d+(?:\.\d+)?)\s*(?:points?|marks?|pts?)\s*[)\]]?$")


@dataclass(frozen=True)
class Heading:
    """A line that names a question."""

    line: int
    name: str
    points: Fraction | None = None


def headings(text: str) -> tuple[list[Heading], str]:
    """The lines that name questions, and the text without them; every other line keeps its number."""
    found, rest = [], []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        match = _HEADING.match(line)
        if match is None or not match["name"]:
            rest.append(line)
            continue
        worth = _POINTS.match(match["name"])
        name = worth["name"] if worth and worth["name"] else match["name"]
        found.append(Heading(number, name.rstrip(" .:,"), Fraction(worth["points"]) if worth else None))
        rest.append("")
    return found, "\n".join(rest)


def same_name(name: str) -> str:
    """A question's name as it is compared: 1A) and 1a are one."""
    return "".join(re.findall(r"\w+", name)).casefold()


def section(named: Sequence[Heading], line: int) -> Heading | None:
    """The heading above a line."""
    return max((heading for heading in named if heading.line < line), key=lambda heading: heading.line, default=None)
