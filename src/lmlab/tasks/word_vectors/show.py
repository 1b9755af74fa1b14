"""Word vectors in the terminal: their scores, and what lies near what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab_derive.shared.console import result_console, say, say_notes
from lmlab_derive.shared.table import Column, print_table

if TYPE_CHECKING:
    from lmlab.tasks.word_vectors.measure import VectorsResult
    from lmlab.tasks.word_vectors.space import Neighbour


def print_scores(result: VectorsResult) -> None:
    """The vectors and what frequencies alone say, in one table."""
    console = result_console()
    where = f"all pairs of {result.data}" if result.part == "whole" else f"the {result.part} pairs of {result.data}"
    say(console, f"{result.model} on {where}: {result.pairs:,} pairs of {result.words:,} words")
    columns = [Column("", left=True), Column("objective"), Column("variance explained")]
    rows = [(result.model, result.scores), ("frequencies alone", result.frequencies)]
    cells = [[name, s.objective.shown(5), str(s.explained)] for name, s in rows]
    print_table(console, columns, cells, "--json has all")
    gain = result.gain
    sure = (
        "It explains more than the frequencies of the words do"
        if gain.low > 0
        else "It explains less than the frequencies of the words do"
        if gain.high < 0
        else "In what it explains it is not told apart from the frequencies of the words"
    )
    say(console, f"{sure}: {gain.shown(4, '+')} (95% intervals over words).")
    say_notes(console, result.notes)


def print_neighbours(near: Mapping[str, Sequence[Neighbour]]) -> None:
    """One line a word."""
    for word, ones in near.items():
        say(result_console(), f"{word}: {_listed(ones)}")


def print_analogy(words: Sequence[str], best: Sequence[Neighbour]) -> None:
    """What is to the third as the second to the first."""
    a, b, c = words
    say(result_console(), f"{a} is to {b} as {c} is to: {_listed(best)}")


def print_written(words: int, path: Path) -> None:
    """Where it was written."""
    say(result_console(), f"{words:,} words: {path}")


def _listed(ones: Sequence[Neighbour]) -> str:
    return ", ".join(f"{one.word} {one.cosine:.2f}" for one in ones)
