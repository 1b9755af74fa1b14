"""Lines that name the questions of a key, or say which question an answer is to: `question 1a (3 points)`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lmlab_derive.read.tokens import ENDS

_HEADING = re.compile(r"\s*question(?:\s*:\s*|\s+)(?P<name>[^#]*?)\s*(?:#.*)?$", re.IGNORECASE)
_WITH_ANSWER = re.compile(  # Question 2. dJ/dW = ...: the name of the question, and what is answered
    r"(?P<name>[(\[]?\w{1,6}(?:\.\w{1,3})?[).\]]*\s*(?:[(\[]\d+\s*(?:points?|marks?|pts?)[)\]])?)(?:\s*:(?!=)|(?=\s)|(?<=[).\]]))\s*(?P<rest>\S.*)"
)
_RELATION = re.compile(r"[=<>≤≥]|\\(?:le|ge|leq|geq)(?![a-z])")
_POINTS = re.compile(r"(?P<name>.*?)[\s,:(\[]*(?<![\w.])(?P<points>\d+(?:\.\d+)?)\s*(?:points?|marks?|pts?)\s*[)\]]?$")


@dataclass(frozen=True)
class Heading:
    """A line that names a question."""

    line: int
    name: str
    points: Fraction | None = None


def headings(text: str) -> tuple[list[Heading], str]:
    """The lines that name questions, and the text without their names; every line keeps its number."""
    found, rest = [], []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        match = _HEADING.match(line)
        if match is None or not match["name"]:
            rest.append(line)
            continue
        named, answer = match["name"], ""
        if _RELATION.search(named):
            both = _WITH_ANSWER.match(named)
            if both is None:
                rest.append(line)
                continue
            named, answer = both["name"].strip(), both["rest"]
        worth = _POINTS.match(named)
        name = worth["name"] if worth and worth["name"] else named
        found.append(Heading(number, name.rstrip(" .:,"), Fraction(worth["points"]) if worth else None))
        rest.append(ENDS + answer)
    return found, "\n".join(rest)


def same_name(name: str) -> str:
    """A question's name as it is compared: 1A) and 1a are one."""
    return "".join(re.findall(r"\w+", name)).casefold()


def section(named: Sequence[Heading], line: int) -> Heading | None:
    """The heading above a line, or on it."""
    return max((heading for heading in named if heading.line <= line), key=lambda heading: heading.line, default=None)
