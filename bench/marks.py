"""Numbers in prose that come from records.

A comment behind a number names its measurement, `7.63 <!-- results/decoding#6x192-one.ratio -->`, and `make results` writes the
newest measurement in its place, at the precision that is printed. Without a field it is the value, or the value and its
interval: `0.887 [0.883, 0.891] <!-- results/accuracy#dan -->`. A percent sign stands for a hundredth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from record import REPOSITORY, RESULTS, Measurement, newest

NUMBER = r"-?\d[\d,]*(?:\.\d+)?"
MARKED = re.compile(
    rf"(?P<number>{NUMBER})(?P<percent>%?)(?P<ends> \[{NUMBER}, {NUMBER}\])?"
    r"(?P<mark>\s?<!-- results/(?P<benchmark>[\w-]+)#(?P<key>[\w-]+)(?:\.(?P<field>[a-z_]+))? -->)"
)
MARK = re.compile(r"<!-- results/.*?-->")
FIELDS = ("value", "ratio", "peer_value", "low", "high", "repetitions")
CODE = re.compile(r"^```[\s\S]*?^```$|^ {4}[^\n]*$|`[^`\n]*`", re.MULTILINE)
LIKE_MEASUREMENTS = re.compile(
    rf"{NUMBER}(?:%|\s?(?:times\b|×(?!\s?\d)|ms\b|s\b|seconds?\b|minutes?\b|GB\b|tokens/s|tokens a second|words a second"
    r"|bits per|bits a|nats|BLEU))|\d+\.\d{3,}|\[-?\d+\.\d+, -?\d+\.\d+\]"
)


@dataclass(frozen=True, kw_only=True)
class Allowed:
    """This class is a number that looks like a measurement and is none."""

    pattern: str
    reason: str


ALLOWED = (
    Allowed(pattern=r"\b95%", reason="the level of an interval"),
    Allowed(pattern=r"\([Pp]ublished[^)]*\)", reason="a number of the literature"),
    Allowed(pattern=r"15% of the tokens of a step[^.]*\.", reason="how `bert` is trained: settings"),
    Allowed(pattern=r"0\.3 nats free", reason="a setting of `variational`"),
    Allowed(pattern=r"15% of them", reason="how `bert` is trained: settings"),
    Allowed(pattern=r"(?m)^.*\b2 ×.*$", reason="a formula"),
    Allowed(pattern=r"in 8 bits and", reason="a data type"),
    Allowed(
        pattern=r"1\.3 times those of float32|tried from 120 s|plain one 1\.1 times as fast|\(0\.15 × the step's others\)",
        reason="a threshold of the execution plan",
    ),
    Allowed(pattern=r"[Mm]ore than 2% of", reason="a threshold of copied rows"),
    Allowed(pattern=r"(to|within) 1e-[45] nats", reason="a promise that tests hold"),
    Allowed(pattern=r"4 MiB; 30 s|within 30 seconds", reason="limits of the server"),
    Allowed(pattern=r"4 times the width|accumulated 5 times|learning rate of 0\.003", reason="settings"),
    Allowed(
        pattern=r"(?s)Each published run, predicted.*?(?=\nSources:|\n## |\Z)",
        reason="computed from published hours, with no machine in it",
    ),
)


def pages() -> list[Path]:
    """Return the pages whose numbers are held to records; docs/results.md is made from them."""
    docs = REPOSITORY / "docs"
    found = [REPOSITORY / "README.md", *sorted(docs.glob("*.md")), *sorted((docs / "notes").glob("*.md"))]
    return [page for page in found if page != docs / "results.md"]


def refreshed(text: str, folder: Path = RESULTS) -> str:
    """Return the text with every marked number as its newest measurement has it."""
    wanted = {found["benchmark"] for found in MARKED.finditer(text)}
    known = {f"{name}#{key}": measured for name in wanted for key, (measured, _) in newest(name, folder).items()}
    return MARKED.sub(lambda found: _number(found, known), text)


def _number(found: re.Match[str], known: Mapping[str, Measurement]) -> str:
    name = f"{found['benchmark']}#{found['key']}"
    if name not in known:
        raise LookupError(f"no record has the measurement results/{name}")
    measured = known[name]
    field = found["field"] or "value"
    assert field in FIELDS, f"{found[0]}: a field is one of {', '.join(FIELDS)}"
    number = printed(getattr(measured, field), found["number"], found["percent"])
    ends = found["ends"] or ""
    if ends:
        low, high = re.findall(NUMBER, ends)
        ends = f" [{printed(measured.low, low, '')}, {printed(measured.high, high, '')}]"
    return f"{number}{found['percent']}{ends}{found['mark']}"


def printed(value: float | None, like: str, percent: str) -> str:
    """Return the value with as many decimals as `like` has."""
    if value is None:
        raise LookupError(f"{like} is marked with a field that its measurement does not have")
    decimals = len(like.partition(".")[2])
    shown = f"{100 * value if percent else value:.{decimals}f}"
    return f"{float(shown):,.{decimals}f}" if "," in like or abs(value) >= 10_000 else shown


def unmarked(text: str, allowed: Sequence[Allowed] = ALLOWED) -> Iterator[tuple[int, str]]:
    """Yield (line, number) for what looks like a measurement in prose and has neither a mark nor a reason."""
    blank = CODE.sub(lambda found: _blank(found[0]), text)
    blank = MARKED.sub(lambda found: _blank(found[0]), blank)
    for one in allowed:
        blank = re.sub(one.pattern, lambda found: _blank(found[0]), blank)
    for found in LIKE_MEASUREMENTS.finditer(blank):
        yield blank.count("\n", 0, found.start()) + 1, found[0]


def _blank(text: str) -> str:
    """Spaces in the place of the text, line breaks kept."""
    return re.sub(r"[^\n]", " ", text)


def dangling(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, mark) for marks that stand behind no number."""
    rest = MARKED.sub(lambda found: _blank(found[0]), text)
    for found in MARK.finditer(rest):
        yield rest.count("\n", 0, found.start()) + 1, found[0]
