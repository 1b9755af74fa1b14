"""What theory shows of models' insides, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.cli.show.console import result_console, say
from lmlab.cli.show.table import Column, print_table

if TYPE_CHECKING:
    from lmlab.inside.theory.sandbox import Sandbox
    from lmlab.inside.theory.through_time import Gradients


def print_gradients(found: Gradients, *written: Path | None) -> None:
    """Norms at the far end between their bounds; then who learned."""
    console = result_console()
    columns = [
        Column("weights", left=True),
        Column("gradient", left=True),
        Column(f"norm, {found.length} steps back"),
        Column("a step"),
        Column("at least", expendable=3),
        Column("at most", expendable=2),
        Column("gates keep", expendable=1),
    ]
    rows = [
        [
            flow.name,
            flow.verdict,
            f"{flow.norms[-1]:.2g}",
            f"×{flow.factor:.3f}",
            f"{flow.lower[-1]:.1g}",
            f"{flow.upper[-1]:.1g}",
            "" if flow.kept is None else f"{flow.kept[-1]:.1g}",
        ]
        for flow in found.flows
    ]
    print_table(console, columns, rows)
    if found.trainings:
        say(
            console,
            f"\nTrained to remember a sign over {found.trained_length} steps; bits at the end, a guess costs 1:",
        )
        ended = [
            [
                end.start,
                "as they are" if end.clip is None else f"clipped at {end.clip:g}",
                f"{end.learned} of {end.runs}",
                f"{end.median_bits:.3f}",
            ]
            for end in found.ended
        ]
        heads = [Column("start", left=True), Column("gradients", left=True), Column("learned"), Column("bits, median")]
        print_table(console, heads, ended)
    print_written(*written)


def print_sandbox(found: Sandbox, *written: Path | None) -> None:
    """What was sampled beside the closed forms, for one head and for two."""
    console = result_console()
    named = {
        "share of value a, mean": "mean",
        "its standard deviation": "deviation",
        "near the average of a and b": "near",
        "value a alone": "alone",
        "value a lost": "lost",
        "distance from the average": "distance",
    }
    ways = [found.one.sampled, found.one.closed, found.two.sampled, found.two.closed]
    rows = [[name, *(f"{getattr(way, field):.4f}" for way in ways)] for name, field in named.items()]
    heads = ["one head, sampled", "closed form", "two heads, sampled", "closed form"]
    print_table(
        console, [Column(f"{found.settings.samples:,} draws of the keys", left=True), *map(Column, heads)], rows
    )
    say(console, f"In one head the scores of a and b differ by {found.score_deviation:.3g} (standard deviation).")
    if found.settings.noise:
        say(console, "The closed forms take the noise in every key as vanishing.", style="dim")
    print_written(*written)


def print_written(*written: Path | None) -> None:
    """Where the page and the picture are."""
    for path in written:
        if path is not None:
            print(f"Written: {path}")
