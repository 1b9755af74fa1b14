"""Small pieces of HTML that all sections of the page share."""

from __future__ import annotations

import math
from html import escape as escape_html
from importlib import resources
from typing import Any

from lmlab.comparison import figures

CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(32) if code not in (9, 10)}
CONTROL_PICTURES |= {0x7F: "\u2421"} | dict.fromkeys(range(0x80, 0xA0), "\ufffd")

HEAT_BITS = (0.25, 0.75, 1.5, 2.5, 4.0, 6.0, 9.0)  # a token above the n-th has heat n


def escape(text: str) -> str:
    """Any text, safe inside HTML; control characters, which HTML cannot hold, as their pictures."""
    return escape_html(text).translate(CONTROL_PICTURES)


def asset(name: str) -> str:
    """A file that lies beside this one, as text."""
    return resources.files("lmlab.comparison").joinpath(name).read_text(encoding="utf-8")


def good(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Entries with a finite number, best first."""
    return [e for e in document["entries"] if e.get("result") and figures.finite(e["result"]["bits_per_byte"])]


def series_of(document: dict[str, Any]) -> dict[str, int]:
    """The colour of each entry that has a result."""
    return {entry["name"]: i for i, entry in enumerate(e for e in document["entries"] if e.get("result"))}


def coloured_name(entry: dict[str, Any], series: dict[str, int]) -> str:
    """An entry's name with its colour."""
    return f'<em class="name">{dot(series[entry["name"]])}{escape(entry["name"])}</em>'


def dot(index: int) -> str:
    """The colour of the index-th entry."""
    return f'<i class="dot" style="background:var(--series-{index % len(figures.SERIES)})"></i>'


def heat(bits: float | None) -> int:
    """How surprised a model was by a token, from 0 to the number of `HEAT_BITS`."""
    return len(HEAT_BITS) if bits is None else sum(bits > limit for limit in HEAT_BITS)


def heat_label(heat: int) -> str:
    """What a heat stands for."""
    if heat == 0:
        return f"below {HEAT_BITS[0]:g}"
    return f"{HEAT_BITS[heat - 1]:g}" + ("+" if heat == len(HEAT_BITS) else "")


def number(value: float | None) -> str:
    """A number short enough for a table."""
    if value is None:
        return ""
    if value < 100:
        return f"{value:.1f}"
    if value < 1e6:
        return f"{value:,.0f}"
    power = int(math.log10(value))
    return f"{value / 10**power:.1f}×10<sup>{power}</sup>"
