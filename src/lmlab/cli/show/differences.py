"""Terminal output of paired differences, and of finished runs that are compared."""

from __future__ import annotations

from lmlab.comparison.differences import COLUMNS, MEANING, difference_rows
from lmlab.comparison.findings import RankingFound
from lmlab.comparison.finished_runs import RunsCompared
from lmlab.page import numbers
from lmlab_derive.shared.console import result_console, say
from lmlab_derive.shared.table import Column, print_table


def print_differences(found: RankingFound | None) -> None:
    """Print the paired difference of every pair of models, and what the table means."""
    console = result_console()
    if found is None or not found.pairs:
        say(console, "There are no differences: fewer than two models have a rank.")
        return
    columns = [
        Column(title, left=index < 2, expendable=int(title == "95% interval")) for index, title in enumerate(COLUMNS)
    ]
    print_table(console, columns, difference_rows(found), elsewhere="--csv FILE has them")
    note = f" They are {found.note}." if found.note.startswith("for ") else f" Here nothing can be told: {found.note}."
    say(console, f"{MEANING}{note}", style="dim")


def print_runs(found: RunsCompared) -> None:
    """Print the ranking of finished runs, and below it those that a check refused a rank."""
    console = result_console()
    say(console, f"{found.text}: {numbers.counted(found.bytes, 'byte')}")
    rows = []
    for name, result in found.results.items():
        place = "" if found.ranking is None else found.ranking.models[name].shown
        low, high = result.interval.low, result.interval.high
        interval = "" if low is None or high is None else f"{low:.3f}–{high:.3f}"
        kind, tokens = str(result.model["name"]), str(result.model["tokenizer"])
        rows.append([place, name, kind, tokens, numbers.bits(result.bits_per_byte), interval])
    titles = ("rank", "run", "model", "tokenizer", "bits per byte", "95% interval")
    print_table(console, [Column(title, left=index in (1, 2, 3)) for index, title in enumerate(titles)], rows)
    for name, result in found.refused.items():
        say(
            console,
            f"{name}: no rank, {result.certificate.verdict} ({numbers.bits(result.bits_per_byte)})",
            style="red",
        )
    console.print()
