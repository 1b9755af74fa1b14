"""A sweep in the terminal: one row a cell, and the differences in words."""

from __future__ import annotations

import math

from lmlab.cli.show.console import result_console, say
from lmlab.cli.show.table import Column, print_table
from lmlab.measure.seeds import LEVEL
from lmlab.page.numbers import bits, plus_minus
from lmlab.sweeps import Cell, Difference, Sweep
from lmlab.sweeps.grid import Point


def print_sweep(found: Sweep, seeds: int) -> None:
    """The table, the differences, and where the picture is."""
    console = result_console()
    many = f"mean and {LEVEL:.0%} interval over {seeds} seeds" if seeds > 1 else "one seed"
    measured = next((f" of {c.measured.bytes:,} {c.measured.part} bytes" for c in found.cells if c.measured), "")
    say(console, f"perplexity per token{measured}, {many}")
    keys = list(found.cells[0].settings)
    columns = [Column(key, left=True) for key in keys]
    columns += [Column("perplexity"), Column("bits per byte", expendable=1), Column("# parameters", expendable=2)]
    rows = [[*(str(cell.settings[key]) for key in keys), *_numbers(cell)] for cell in found.cells]
    print_table(console, columns, rows, elsewhere="--json has them")
    for cell in found.cells:
        if not cell.perplexity:
            say(console, f"{_point(cell.settings)} failed: {cell.errors[0]}", style="red")
    for sentence in {c.measured.sentence for c in found.cells if c.measured and c.measured.sentence}:
        say(console, sentence, style="dim")
    for difference in found.differences:
        say(console, _in_words(difference))
    if found.differences:
        together = f"Intervals of differences are over paired seeds and hold all together at {LEVEL:.0%}."
        say(console, together, style="dim")
    say(console, f"Figure: {found.figure}")


def _numbers(cell: Cell) -> list[str]:
    """Perplexity, bits per byte and parameters of a cell."""
    if not cell.perplexity:
        return ["failed"]
    mean, margin = cell.mean_and_margin()
    missing = f" ({len(cell.errors)} failed)" if cell.errors else ""
    mean_bits = math.fsum(cell.bits_per_byte) / len(cell.bits_per_byte)
    return [f"{mean:.3f}{plus_minus(margin)}{missing}", bits(mean_bits), f"{cell.parameters:,}"]


def _in_words(difference: Difference) -> str:
    """One difference as a sentence."""
    changed, before, after = difference.setting, difference.before, difference.after
    rest = _point({key: value for key, value in before.items() if key != changed})
    verdict = "real" if difference.real else "not told apart by these seeds"
    return (
        f"{changed} {before[changed]} → {after[changed]}{f' at {rest}' if rest else ''}:"
        f" {difference.difference:+.3f}{plus_minus(difference.margin)}, {verdict}"
    )


def _point(settings: Point) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items())
