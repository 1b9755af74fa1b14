"""A sweep in the terminal: one row a cell, and the differences in words."""

from __future__ import annotations

import math

from rich.table import Table

from lmlab.cli.show.console import result_console
from lmlab.measure.seeds import LEVEL
from lmlab.page.numbers import bits, plus_minus
from lmlab.sweeps import Cell, Difference, Sweep


def print_sweep(found: Sweep, seeds: int) -> None:
    """The table, the differences, and where the picture is."""
    console = result_console()
    many = f"mean and {LEVEL:.0%} interval over {seeds} seeds" if seeds > 1 else "one seed"
    measured = next((f" of {c.measured.bytes:,} {c.measured.part} bytes" for c in found.cells if c.measured), "")
    table = Table(title=f"perplexity per token{measured}, {many}", title_justify="left")
    keys = list(found.cells[0].settings)
    for key in keys:
        table.add_column(key)
    for name in ("perplexity", "bits per byte", "# parameters"):
        table.add_column(name, justify="right")
    for cell in found.cells:
        table.add_row(*(str(cell.settings[key]) for key in keys), *_numbers(cell))
    console.print(table)
    for sentence in {c.measured.sentence for c in found.cells if c.measured and c.measured.sentence}:
        console.print(sentence, style="dim", markup=False, highlight=False)
    for difference in found.differences:
        console.print(_in_words(difference), markup=False)
    if found.differences:
        together = f"Intervals of differences are over paired seeds and hold all together at {LEVEL:.0%}."
        console.print(together, style="dim")
    print(f"Figure: {found.figure}")


def _numbers(cell: Cell) -> list[str]:
    """Perplexity, bits per byte and parameters of a cell; or why there are none."""
    if not cell.perplexity:
        return [f"failed: {cell.errors[0]}", "", ""]
    mean, margin = cell.mean_and_margin()
    missing = f" ({len(cell.errors)} failed)" if cell.errors else ""
    mean_bits = math.fsum(cell.bits_per_byte) / len(cell.bits_per_byte)
    return [f"{mean:.3f}{plus_minus(margin)}{missing}", bits(mean_bits), f"{cell.parameters:,}"]


def _in_words(difference: Difference) -> str:
    """One difference as a sentence."""
    changed, before, after = difference.setting, difference.before, difference.after
    rest = ", ".join(f"{key}={value}" for key, value in before.items() if key != changed)
    verdict = "real" if difference.real else "not told apart by these seeds"
    return (
        f"{changed} {before[changed]} → {after[changed]}{f' at {rest}' if rest else ''}:"
        f" {difference.difference:+.3f}{plus_minus(difference.margin)}, {verdict}"
    )
