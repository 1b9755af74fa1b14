"""Combined words in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab_derive.shared.console import result_console, say, say_notes
from lmlab_derive.shared.table import Column, print_table

if TYPE_CHECKING:
    from lmlab.tasks.word_pairs.measure import CombiningResult, Gain
    from lmlab.tasks.word_pairs.verbs import Combination


def print_scores(result: CombiningResult) -> None:
    """The combiner and what it must beat, in one table."""
    console = result_console()
    say(console, f"{result.model} on {result.where}: {result.pairs:,} pairs ({', '.join(result.classes[:6])})")
    columns = [
        Column("", left=True),
        Column("brought back"),
        Column("accuracy"),
        Column("bits per label", expendable=1),
    ]
    rows = [(result.model, result.scores), ("addition", result.addition), ("linear map", result.linear)]
    cells = [[name, str(s.explained), str(s.accuracy), str(s.bits)] for name, s in rows]
    print_table(console, columns, cells, "--json has all")
    say(console, f"Over addition: {_gain(result.over_addition)}.")
    say(console, f"Over the best linear map to {result.parent} numbers: {_gain(result.over_linear)}.")
    say(console, "Brought back is the share of the variance of the two vectors; 95% intervals over pairs.")
    say_notes(console, result.notes)


def print_combinations(found: Sequence[Combination], out: Path | None) -> None:
    """Each pair with its label and neighbours."""
    console = result_console()
    for one in found:
        near = ", ".join(f"{pair.word} {pair.cosine:.2f}" for pair in one.neighbours)
        say(console, f"{' '.join(one.words)}: {one.label} (p = {one.p[one.label]:.2f})")
        say(console, f"  near: {near}")
    if out is not None:
        say(console, f"Where they lie: {out}")


def _gain(gain: Gain) -> str:
    return f"{gain.explained.shown(sign='+')} brought back, {gain.accuracy.shown(sign='+')} in accuracy"
