"""Terminal output of the explanations that need no run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab_derive.shared.console import result_console, say
from lmlab_derive.shared.table import Column, print_each, print_table

if TYPE_CHECKING:
    from lmlab.inside.theory.dot_products import AtWidth, DotProducts
    from lmlab.inside.theory.gradients import Through
    from lmlab.inside.theory.positions import Positions
    from lmlab.inside.theory.sandbox import Sandbox
    from lmlab.inside.theory.through_time import Ended, Gradients


def print_gradients(found: Gradients, *written: Path | None) -> None:
    """Print the gradient norms at the farthest step with their bounds, then the results of training."""
    console = result_console()
    columns: list[tuple[Column, Callable[[Through], str]]] = [
        (Column("weights", left=True), lambda flow: flow.name),
        (Column("gradient", left=True), lambda flow: flow.verdict),
        (Column(f"norm, {found.length} steps back"), lambda flow: f"{flow.norms[-1]:.2g}"),
        (Column("a step"), lambda flow: f"×{flow.factor:.3f}"),
        (Column("at least", expendable=3), lambda flow: f"{flow.lower[-1]:.1g}"),
        (Column("at most", expendable=2), lambda flow: f"{flow.upper[-1]:.1g}"),
        (Column("gates keep", expendable=1), lambda flow: "" if flow.kept is None else f"{flow.kept[-1]:.1g}"),
    ]
    print_each(console, found.flows, columns)
    if found.trainings:
        say(
            console,
            f"\nTrained to remember a sign over {found.trained_length} steps; bits at the end, a guess costs 1:",
        )
        ended: list[tuple[Column, Callable[[Ended], str]]] = [
            (Column("start", left=True), lambda end: end.start),
            (Column("gradients", left=True), lambda end: end.clipped),
            (Column("learned"), lambda end: f"{end.learned} of {end.runs}"),
            (Column("bits, median"), lambda end: f"{end.median_bits:.3f}"),
        ]
        print_each(console, found.ended, ended)
    print_written(*written)


def print_sandbox(found: Sandbox, *written: Path | None) -> None:
    """Print the sampled values beside the closed forms, for one head and for two."""
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
    closed = "closed form" if found.settings.noise == 0 else "without the noise"
    heads = ["one head, sampled", closed, "two heads, sampled", closed]
    print_table(
        console, [Column(f"{found.settings.samples:,} draws of the keys", left=True), *map(Column, heads)], rows
    )
    say(console, f"In one head the scores of a and b differ by {found.score_deviation:.3g} (standard deviation).")
    if found.settings.noise:
        say(console, "The closed forms leave the noise in every key out, and do not hold with it.", style="dim")
    print_written(*written)


def print_positions(found: Positions, *written: Path | None) -> None:
    """Print the rotation of each pair of dimensions, and the numerical errors."""
    console, k = result_console(), found.offset
    columns = [Column("pair"), Column("positions a turn"), Column(f"degrees by k = {k}")]
    rows = [[str(i), f"{pair.wavelength:,.1f}", f"{pair.turn_degrees:,.2f}"] for i, pair in found.listed_pairs.items()]
    print_table(console, columns, rows)
    say(console, f"R_k PE(n) is PE(n + {k}) for every n to {found.rotation_error:.0e}, and R_k knows k alone.")
    say(console, f"The best matrix for sines alone misses by {found.missed[-1].sines_alone:.2f}.")
    say(
        console,
        f"Rotary scores at one distance differ by at most {found.rotary_deviation:.0e}, wherever the pair stands.",
    )
    print_written(*written)


def print_dot_products(found: DotProducts, *written: Path | None) -> None:
    """Print variance, softmax weights, gradient and angle at each width."""
    columns: list[tuple[Column, Callable[[AtWidth], str]]] = [
        (Column("width d"), lambda at: f"{at.width:,}"),
        (Column("variance of q·k"), lambda at: f"{at.variance:,.1f} ± {at.variance_error:,.1f}"),
        (Column("in theory", expendable=1), lambda at: f"{at.predicted_variance:,.1f}"),
        (Column("largest weight"), lambda at: f"{at.unscaled.largest_weight:.3f}"),
        (Column("scaled by 1/√d"), lambda at: f"{at.scaled.largest_weight:.3f}"),
        (Column("gradient"), lambda at: f"{at.unscaled.jacobian_norm:.3f}"),
        (Column("scaled"), lambda at: f"{at.scaled.jacobian_norm:.3f}"),
        (Column("deviation of cos", expendable=2), lambda at: f"{at.cosine_deviation:.3f}"),
        (Column("1/√d", expendable=3), lambda at: f"{at.predicted_cosine_deviation:.3f}"),
    ]
    print_each(result_console(), found.widths, columns)
    say(
        result_console(),
        f"± is one standard error, over {found.draws:,} draws: one row in three differs from theory by more.",
    )
    print_written(*written)


def print_written(*written: Path | None) -> None:
    """Print the paths of the page and the picture."""
    for path in written:
        if path is not None:
            print(f"Written: {path}")
