"""The ranking as rows of nine columns, for the report and the terminal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from lmlab.comparison.findings import Entry, Findings, RankingFound
from lmlab.comparison.score_found import Score
from lmlab.measure.ranks import PIECES
from lmlab.page import numbers

COLUMNS = [
    "rank",
    "model",
    "bits per byte",
    "95% interval",
    "parameters",
    "FLOPs",
    "seconds",
    "tokens/s",
    "memory",
]
NAME = COLUMNS.index("model")
LETTERS = (
    "Two models share a letter exactly when they cannot be told apart: when the interval of their paired difference includes"
    " zero, all pairs taken together at 95%."
)
UNRANKED = ("uncertified", "failed")  # kinds of lines that stand below the ranking


@dataclass(frozen=True, kw_only=True)
class Line:
    """One row of the ranking.

    Attributes:
        cells: the values of the first columns, as many as apply.
        detail: text that replaces the other columns.
    """

    kind: Literal["model", "uncertified", "yardstick", "entropy", "failed"]
    name: str
    cells: tuple[str, ...]
    bits_per_byte: float = math.inf
    detail: str = ""


def lines(found: Findings) -> list[Line]:
    """Return models, compressor baselines and the exact entropy by bits per byte, then entries without a rank."""
    cells: tuple[str, ...]
    rows = [_of_model(entry, found.ranking) for entry in found.entries]
    for stick in found.yardsticks:
        bits = stick.bits_per_byte
        cells = ("", stick.name, numbers.bits(bits), "", "", "", f"{stick.seconds:.1f}")
        rows.append(Line(kind="yardstick", name=stick.name, cells=cells, bits_per_byte=bits, detail=stick.detail))
    entropy = found.corpus.entropy_bits_per_byte
    if entropy is not None:
        name, detail = "exact entropy", "of the source that wrote the text: no model can do better in the long run"
        cells = ("", name, numbers.bits(entropy))
        rows.append(Line(kind="entropy", name=name, cells=cells, bits_per_byte=entropy, detail=detail))
    return sorted(rows, key=lambda row: (row.kind in UNRANKED, row.bits_per_byte))


def why_not_ranked(score: Score) -> str:
    """Return the checks that a score did not pass, in words; empty: it passed all."""
    failed = [check for check in score.checks if check.passed is False]
    return "; ".join(
        f"its check {check.name.replace('_', ' ')} {'failed' if failed else 'is not known'} ({check.detail})"
        for check in failed or [check for check in score.checks if check.passed is None]
    )


def _place(entry: Entry, ranking: RankingFound | None) -> str:
    """Return the possible ranks and the letters of an entry."""
    if entry.rank is None:
        return "–"
    return str(entry.rank) if ranking is None else ranking.models[entry.name].shown


def what_ranks_mean(found: Findings) -> str:
    """Explain the ranks and letters, and the population that they are for."""
    about = ""
    if found.ranking is not None:
        note = found.ranking.note
        about = f" These intervals are {note}." if note.startswith("for ") else f" Here nothing can be: {note}."
    return (
        f"{LETTERS} The ranks are those that a model may have.{about}{_against_first_sight(found)}{_throughout(found)}"
    )


def _throughout(found: Findings) -> str:
    """Name the pairs that share a letter and yet differ in the same direction in every piece of this text; empty: none."""
    pairs = [pair for pair in found.ranking.pairs if pair.throughout and not pair.apart] if found.ranking else []
    each = ", ".join(
        f"{pair.a} than {pair.b}" if (pair.difference or 0.0) < 0.0 else f"{pair.b} than {pair.a}" for pair in pairs
    )
    return (
        f" Better throughout this text, in each of {PIECES} pieces of it, though they share a letter: {each}."
        if each
        else ""
    )


def _against_first_sight(found: Findings) -> str:
    """Explain why entries with disjoint intervals share a letter, or overlapping ones do not; empty: no such pair."""
    ends = {e.name: e.result.interval for e in found.entries if e.result is not None and e.result.interval is not None}
    tied, apart = "", ""
    seeds = " and allows for what other seeds would have changed" if found.luck.measured else ""
    for pair in found.ranking.pairs if found.ranking is not None else ():
        if pair.a not in ends or pair.b not in ends:
            continue
        (low_a, high_a), (low_b, high_b) = ends[pair.a], ends[pair.b]
        overlap = low_a <= high_b and low_b <= high_a
        if not pair.apart and not overlap:
            tied = (
                f" The intervals of {pair.a} and {pair.b} by themselves have no number in common, and yet they share a letter:"
                f" each of these holds for one model alone, a letter for all pairs at once{seeds}."
            )
        if pair.apart and overlap:
            apart = (
                f" Those of {pair.a} and {pair.b} overlap, and yet these two are told apart: what is hard for one of them is"
                " hard for the other too, so their difference is surer than either number."
            )
    return tied + apart


def _of_model(entry: Entry, ranking: RankingFound | None) -> Line:
    result = entry.result
    if result is None:
        return Line(kind="failed", name=entry.name, cells=("", entry.name), detail=entry.error or entry.status)
    bits = result.bits_per_byte
    if entry.status == "failed":  # it has a score but no rank
        detail = (
            f"measured with {numbers.bits(bits)} bits per byte, and failed when it was looked at closely: {entry.error}"
        )
        cells: tuple[str, ...] = (_place(entry, ranking), entry.name, numbers.bits(bits))
        return Line(kind="failed", name=entry.name, cells=cells, bits_per_byte=_or_infinite(bits), detail=detail)
    cells = (
        _place(entry, ranking),
        entry.name,
        numbers.bits(bits),
        numbers.interval(result.interval),
        f"{result.parameters:,}",
        numbers.short(entry.training_flops),
        f"{entry.seconds:.1f}",
        numbers.short(entry.tokens_per_second),
        numbers.memory_size(entry.peak_memory_bytes),
    )
    if not result.certified:
        detail = f"not ranked: {why_not_ranked(result)}"
        return Line(
            kind="uncertified", name=entry.name, cells=cells[:3], bits_per_byte=_or_infinite(bits), detail=detail
        )
    return Line(kind="model", name=entry.name, cells=cells, bits_per_byte=_or_infinite(bits))


def _or_infinite(bits: float | None) -> float:
    return math.inf if bits is None else bits
