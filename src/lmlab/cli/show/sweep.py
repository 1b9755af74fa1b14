"""Terminal output of a sweep: one row per cell, the best cell, and the differences in words."""

from __future__ import annotations

import math

from lmlab.measure.seeds import LEVEL
from lmlab.models.registry import Way, kind_of
from lmlab.page.numbers import bits, plus_minus
from lmlab.sweeps import Cell, Difference, Sweep
from lmlab.sweeps.grid import Point
from lmlab_derive.shared.console import result_console, say
from lmlab_derive.shared.table import Column, print_table

DIGITS = 4


def print_sweep(found: Sweep) -> None:
    """Print the table, the best cell, the differences, and the path of the figure."""
    console = result_console()
    seeds, counts = found.runs // len(found.cells), kind_of(found.model).way is Way.COUNTS
    many = f"mean and {LEVEL:.0%} interval over {seeds} seeds" if seeds > 1 else "one seed"
    many = f"the same with every seed, since {found.model} counts" if counts else many
    measured = next((f" of {c.measured.bytes:,} {c.measured.part} bytes" for c in found.cells if c.measured), "")
    say(console, f"{found.unit}{measured}, {many}")
    keys = list(found.cells[0].settings)
    columns = [Column(key, left=True) for key in keys]
    columns += [Column("bits per byte"), Column("validation"), Column("# parameters", expendable=1)]
    rows = [[*(str(cell.settings[key]) for key in keys), *_numbers(cell)] for cell in found.cells]
    print_table(console, columns, rows, elsewhere="--json has them")
    for cell in found.cells:
        if not cell.perplexity and cell.errors:
            say(console, f"{_point(cell.settings)} failed: {cell.errors[0]}", style="red")
    for sentence in {c.measured.sentence for c in found.cells if c.measured and c.measured.sentence}:
        say(console, sentence, style="dim")
    if any(cell.diverged for cell in found.cells):
        say(console, "A run that diverged is measured with the best weights before that.", style="dim")
    say(console, _choice(found))
    for difference in found.differences:
        say(console, _in_words(difference, counts, seeds))
    if found.differences and seeds > 1 and not counts:
        together = f"Intervals of differences are over paired seeds and hold all together at {LEVEL:.0%}."
        say(console, together, style="dim")
    say(console, f"Figure: {found.figure}")


def _choice(found: Sweep) -> str:
    """Return a sentence that names the best cell and the criterion."""
    if found.best is None and any(cell.valid_mean is not None for cell in found.cells):
        return "No best cell is named: every one holds some of the validation part impossible."
    if found.best is None and not any(cell.perplexity and not cell.valid_bits_per_byte for cell in found.cells):
        return "No best cell is named: none came to its end with every seed."
    if found.best is None:
        return "No best cell is named: there is no validation part to choose by, and the test part has no say."
    by = "by validation, in bits per byte (the test part has no say in it)"
    if not found.tied:
        return f"Best {by}: {_point(found.best.settings)}"
    alike = [_point(cell.settings) for cell in (found.best, *found.tied)]
    return f"Best {by}: {' and '.join(alike)}, which tie at {bits(found.best.valid_mean)}"


def _numbers(cell: Cell) -> list[str]:
    """Return the scores and the parameter count of a cell, as table cells."""
    if not cell.perplexity:
        return ["failed" if cell.errors else "no turn yet"]
    mean, margin = cell.mean_and_margin()
    without = {"diverged": cell.diverged, "failed": len(cell.errors), "still to come": cell.missing}
    missing = ", ".join(f"{number} {what}" for what, number in without.items() if number)
    missing = f" ({missing})" if missing else ""
    shown = f"{mean:.{DIGITS}f}{plus_minus(margin, DIGITS)}{missing}"
    return [shown, "" if cell.valid_mean is None else bits(cell.valid_mean), f"{cell.parameters:,}"]


def _in_words(difference: Difference, counts: bool, seeds: int) -> str:
    """Describe one difference in a sentence."""
    changed, before, after = difference.setting, difference.before, difference.after
    rest = _point({key: value for key, value in before.items() if key != changed})
    where = f"{changed} {before[changed]} → {after[changed]}{f' at {rest}' if rest else ''}"
    if math.isnan(difference.difference):
        return f"{where}: no difference to tell, as both are infinite"
    verdict = "real" if difference.real else "not told apart by these seeds"
    if seeds == 1:
        verdict = "which one seed cannot tell from luck"
    if counts:
        verdict = "on this text; counting leaves nothing to luck"
        verdict = "a tie on this text" if round(difference.difference, DIGITS) == 0 else verdict
    return (
        f"{where}:"
        f" {difference.difference:+.{DIGITS}f}{plus_minus(difference.margin, DIGITS)} {difference.unit}, {verdict}"
    )


def _point(settings: Point) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items())
