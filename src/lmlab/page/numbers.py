"""Numbers as people read them, the same on a page and in a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

NO_MORE = 1_000_000  # words that anyone chooses between
SUFFIXES = {3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}


def finite(value: float | None) -> bool:
    """Whether there is a number to show; JSON writes null for one that is infinite."""
    return value is not None and math.isfinite(value)


def bits(value: float | None, digits: int = 4) -> str:
    """Bits per byte."""
    return f"{value:.{digits}f}" if value is not None and math.isfinite(value) else "infinite"


def interval(ends: Sequence[float] | None, digits: int = 3) -> str:
    """An interval of bits per byte; nothing where there is none."""
    return "" if ends is None else f"{ends[0]:.{digits}f}–{ends[1]:.{digits}f}"


def plus_minus(margin: float, digits: int = 3) -> str:
    """Half the width of an interval, to stand behind a number; nothing where it is not known."""
    return f" ± {margin:.{digits}f}" if math.isfinite(margin) else ""


def short(value: float | None) -> str:
    """Perplexities, operations, rates: a number in at most six characters; nothing where there is none."""
    if value is None:
        return ""
    if value < 10_000:
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    power = int(math.log10(value)) // 3 * 3
    return f"{value / 10**power:.1f}{SUFFIXES[power]}" if power in SUFFIXES else f"{value:.1e}"


def perplexity(value: float | None) -> str:
    """A perplexity; beyond a million no one reads it as a number of choices any more, and it is only said to be beyond."""
    return f"> {short(NO_MORE)}" if value is not None and value > NO_MORE else short(value)


def memory_size(size: int) -> str:
    """Memory, of so many bytes: in megabytes, and what is small in less."""
    if size >= 10_000_000:
        return f"{size / 1e6:,.0f} MB"
    if size >= 1_000_000:
        return f"{size / 1e6:.1f} MB"
    return f"{size / 1e3:,.0f} kB" if size >= 10_000 else f"{size:,} bytes"


def counted(number: int, noun: str) -> str:
    """ "1 document", "1,200 documents"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def clock(seconds: float) -> str:
    """Time left, as minutes:seconds; a question mark where nothing is known yet."""
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
