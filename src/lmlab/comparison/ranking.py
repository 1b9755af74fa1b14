"""The ranking as lines of ten columns: what the page and the terminal both show."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from lmlab.comparison.findings import Entry, Findings, LuckFound
from lmlab.page import numbers

COLUMNS = [
    "rank",
    "model",
    "bits/byte",
    "95% interval",
    "ppl/word",
    "parameters",
    "FLOPs",
    "seconds",
    "tokens/s",
    "memory",
]
NAME = COLUMNS.index("model")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line. cells: as many of the columns as there is something to say of. detail: what is said instead of the rest."""

    kind: Literal["model", "uncertified", "yardstick", "entropy", "failed"]
    name: str
    cells: tuple[str, ...]
    bits_per_byte: float = math.inf
    detail: str = ""


def lines(found: Findings) -> list[Line]:
    """Models, yardsticks and the exact entropy by bits per byte; then what has no number."""
    cells: tuple[str, ...]
    rows = [_of_model(entry) for entry in found.entries]
    for stick in found.yardsticks:
        bits = stick.bits_per_byte
        cells = ("", stick.name, numbers.bits(bits), "", "", "", "", f"{stick.seconds:.1f}")
        rows.append(Line(kind="yardstick", name=stick.name, cells=cells, bits_per_byte=bits, detail=stick.detail))
    entropy = found.corpus.entropy_bits_per_byte
    if entropy is not None:
        name, detail = "exact entropy", "of the source that wrote the text: no model can do better in the long run"
        cells = ("", name, numbers.bits(entropy))
        rows.append(Line(kind="entropy", name=name, cells=cells, bits_per_byte=entropy, detail=detail))
    return sorted(rows, key=lambda row: row.bits_per_byte)


def _of_model(entry: Entry) -> Line:
    result = entry.result
    if result is None:
        return Line(kind="failed", name=entry.name, cells=("", entry.name), detail=entry.error or entry.status)
    bits = result.bits_per_byte
    cells = (
        str(entry.rank or "–"),
        entry.name,
        numbers.bits(bits),
        numbers.interval(result.interval),
        numbers.short(result.perplexity_per_word),
        f"{result.parameters:,}",
        numbers.short(entry.training_flops),
        f"{entry.seconds:.1f}",
        numbers.short(entry.tokens_per_second),
        numbers.megabytes(entry.peak_memory_bytes),
    )
    kind: Literal["model", "uncertified"] = "model" if result.certified else "uncertified"
    return Line(kind=kind, name=entry.name, cells=cells, bits_per_byte=math.inf if bits is None else bits)


def luck_in_words(luck: LuckFound) -> str:
    """What chance in training may have done to the numbers; nothing where nothing was learned."""
    if not luck.deviations:
        return ""
    low, high = min(luck.deviations.values()), max(luck.deviations.values())
    about = f"{high:.3f}" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f} to {high:.3f}"
    if luck.measured:
        return (
            f"Each learned model was trained with {luck.seeds} seeds, and its number is their mean. Between seeds of one"
            f" model it changes by about {about} bits per byte (standard deviation, measured here), and that is allowed"
            " for before two models count as different."
        )
    return (
        "Each model was trained once. Another seed would have changed the learned ones by about"
        f" {about} bits per byte (standard deviation, estimated from the loss curves), and that is allowed for"
        " before two models count as different."
    )
