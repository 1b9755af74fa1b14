"""Bounds and texts of latent-variable models in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.page.raw_bytes import say_what_bytes_are
from lmlab_derive.shared.console import result_console, say, say_notes
from lmlab_derive.shared.table import Column, print_table

if TYPE_CHECKING:
    from lmlab.measure import Interval
    from lmlab.tasks.latent.measure import LatentResult
    from lmlab.tasks.latent.verbs import Written


def print_scores(result: LatentResult) -> None:
    """The two bounds and what the text costs without z; then what z costs, and how much of it is in use."""
    console = result_console()
    say(console, f"{result.model} on {result.where}: {result.bytes:,} bytes, {result.segments:,} segments")
    columns = [Column("bits per byte, at most", left=True), Column("estimate"), Column("95% interval", expendable=1)]
    rows = [
        [f"importance sampling, {result.draws} draws", *_figures(result.tightened)],
        ["the bound it was trained on", *_figures(result.bound)],
        ["with z from the prior", f"{result.blind:.4f}", ""],
    ]
    print_table(console, columns, rows, "--json has all")
    # what z costs need not be what it tells: far from the prior, and the same for every segment, it tells nothing of any
    nothing = "" if result.used else ", so that z tells nothing of them"
    used = f"{result.used} of its {result.latent} numbers differ from segment to segment{nothing}"
    say(console, f"z costs {result.kl_nats:.2f} nats a segment (how far it is from the prior); {used}.")
    say(console, "Bounds are not ranked with the numbers of models whose cost is exact.")
    say_notes(console, result.notes)


def print_written(found: Sequence[Written], svg: Path | None) -> None:
    """One text after the other. svg: where the bounds were drawn."""
    console = result_console()
    for one in found:
        head = "" if one.share is None else f"{one.share:.0%}".rjust(4) + "  "
        say(console, head + one.text.replace("\n", "↵"))
    say_what_bytes_are(one.text for one in found)
    if svg is not None:
        print(f"The bounds as a picture: {svg}")


def _figures(found: Interval) -> list[str]:
    bounded = found.low is not None and found.high is not None
    return [f"{found.estimate:.4f}", f"{found.low:.4f} to {found.high:.4f}" if bounded else "none"]
