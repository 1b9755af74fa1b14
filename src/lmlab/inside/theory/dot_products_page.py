"""Dot products and their softmax as a picture and as a page."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes

from lmlab.inside.theory.dot_products import BINS, NEAR, AtWidth, DotProducts, Softmax, cosine_density
from lmlab.inside.theory.publish import DASHES, Panel, figures, opening, to_try, together
from lmlab.page.figures import series_colour
from lmlab_derive.shared import html

TITLE = "Why scores are divided by √d"
CURVES = 4  # widths whose cosines are drawn


def picture(found: DotProducts) -> str:
    """All panels in one."""
    return together(TITLE, _panels(found))


def page(found: DotProducts, command: str) -> str:
    """The whole page."""
    widest = found.widths[-1]
    lead = (
        "A dot product of two random vectors is a sum of as many terms as they are wide, so its standard deviation grows with"
        f" √d: at width {widest.width:,} it is {math.sqrt(widest.variance):,.0f}. A softmax of such scores puts nearly"
        f" everything on one key ({widest.unscaled.largest_weight:.2f} of the weight on the average), and there it is"
        " <em>flat</em>: hardly any gradient comes back. Divided by √d, scores are alike at every width."
    )
    columns: list[tuple[str, Callable[[AtWidth], str]]] = [
        ("width d", lambda at: f"{at.width:,}"),
        ("variance of q·k, measured", lambda at: f"{at.variance:,.1f} ± {at.variance_error:,.1f}"),
        ("2σ²μ·μ + dσ⁴", lambda at: f"{at.predicted_variance:,.1f}"),
        ("largest weight", lambda at: f"{at.unscaled.largest_weight:.3f}"),
        ("… scaled", lambda at: f"{at.scaled.largest_weight:.3f}"),
        ("gradient", lambda at: f"{at.unscaled.jacobian_norm:.3f}"),
        ("… scaled", lambda at: f"{at.scaled.jacobian_norm:.3f}"),
        ("flat", lambda at: f"{at.unscaled.flat:.0%}"),
        ("deviation of the cosine", lambda at: f"{at.cosine_deviation:.3f}"),
        ("1/√d", lambda at: f"{at.predicted_cosine_deviation:.3f}"),
        (f"|cos| &lt; {NEAR:g}", lambda at: f"{at.nearly_orthogonal:.3f}"),
        ("exactly", lambda at: f"{at.predicted_nearly_orthogonal:.3f}"),
    ]
    about = (
        f"<p>Queries and {found.keys} keys of independent normal entries (mean {found.mean:g}, standard deviation"
        f" {found.sigma:g}), {found.draws:,} draws; ± is one standard error. Gradient: the norm of the softmax's Jacobian"
        " diag(α) - ααᵀ, which is never above ½. Flat: the share of draws where it is below 0.01.</p>\n"
    )
    body = [
        opening(TITLE, lead, command),
        "<h2>See it</h2>\n" + figures(_panels(found)),
        "<h2>In numbers</h2>\n" + about + html.table_of(found.widths, columns, label="Dot products by width"),
        "<h2>Questions to try yourself on</h2>\n" + to_try(QUESTIONS),
    ]
    return html.document(TITLE, "\n".join(body))


QUESTIONS = [
    (
        "Do unscaled scores make gradients explode?",
        "No: they make them vanish. The Jacobian of a softmax has norm at most ½ whatever the scores are, and where one weight"
        " is nearly 1 it is nearly 0.",
    ),
    (
        "Why √d and not d?",
        "The standard deviation of q·k is √d σ²; what is divided by √d has σ², at every width. Divided by d the scores would"
        " shrink to nothing, and every key would get the same weight.",
    ),
    (
        "What if the entries have a mean?",
        "Then q·k has mean μ·μ, which the softmax does not notice as long as all keys share it, and variance 2σ²μ·μ + dσ⁴. Try"
        " <code>--mean 1</code>.",
    ),
    (
        "How can thousands of directions be nearly orthogonal?",
        "In d dimensions the cosine of two random directions has standard deviation 1/√d: at width 1024 practically all pairs"
        " are within 6° of a right angle. So a wide vector has room for many features that hardly disturb each other.",
    ),
]


def _panels(found: DotProducts) -> list[Panel]:
    return [
        Panel("spread of q·k", lambda axes: _spread(axes, found),
              "Standard deviation over width; dots are measured, lines are √(2σ²μ·μ + dσ⁴), and the same over √d."),
        Panel("largest attention weight", lambda axes: _softmax(axes, found, lambda s: s.largest_weight, 1 / found.keys),
              f"Mean over draws; dashed: 1/{found.keys}, all keys alike."),
        Panel("gradient through the softmax", lambda axes: _softmax(axes, found, lambda s: s.jacobian_norm, 0.5),
              "Norm of ∂weights/∂scores, mean over draws; dashed: ½, which it never exceeds."),
        Panel("cosine of two random directions", lambda axes: _cosines(axes, found),
              "Steps are sampled, lines are exact: the wider, the nearer to a right angle."),
    ]  # fmt: skip


def _spread(axes: Axes, found: DotProducts) -> None:
    widths = [at.width for at in found.widths]
    for series, (name, scale) in enumerate({"q·k": 0.0, "q·k/√d": 0.5}.items()):
        look: dict[str, Any] = {"color": series_colour(1 - series)}
        axes.plot(
            widths,
            [math.sqrt(at.variance) / at.width**scale for at in found.widths],
            "o",
            markersize=5,
            label=name,
            **look,
        )
        axes.plot(
            widths, [math.sqrt(at.predicted_variance) / at.width**scale for at in found.widths], linewidth=1.2, **look
        )
    _logarithmic_width(axes, found)
    axes.set_yscale("log")
    axes.set_ylabel("standard deviation")
    axes.legend(fontsize=8)


def _softmax(axes: Axes, found: DotProducts, of: Callable[[Softmax], float], limit: float) -> None:
    widths = [at.width for at in found.widths]
    axes.plot(widths, [of(at.unscaled) for at in found.widths], "o-", markersize=4, color=series_colour(1), label="q·k")
    axes.plot(
        widths, [of(at.scaled) for at in found.widths], "o-", markersize=4, color=series_colour(0), label="q·k/√d"
    )
    axes.axhline(limit, color=series_colour(None), linewidth=1, linestyle=DASHES)
    _logarithmic_width(axes, found)
    axes.set_ylim(0, None)
    axes.legend(fontsize=8)


def _logarithmic_width(axes: Axes, found: DotProducts) -> None:
    axes.set_xscale("log")
    axes.set_xticks([at.width for at in found.widths], [str(at.width) for at in found.widths], fontsize=8)
    axes.minorticks_off()
    axes.set_xlabel("width d")
    axes.grid(axis="y")


def _cosines(axes: Axes, found: DotProducts) -> None:
    drawn: list[AtWidth] = [at for at in found.widths if at.width > 3][:CURVES]
    edges = [-1 + 2 * i / BINS for i in range(BINS + 1)]
    fine = [-0.995 + 0.01 * i for i in range(200)]
    for series, at in enumerate(drawn):
        colour = series_colour(series)
        axes.stairs([share * BINS / 2 for share in at.cosines], edges, fill=True, color=colour, alpha=0.25)
        axes.plot(
            fine, [cosine_density(x, at.width) for x in fine], color=colour, linewidth=1.4, label=f"d = {at.width}"
        )
    axes.set_xlim(-1, 1)
    axes.set_xlabel("cosine")
    axes.set_ylabel("density")
    if drawn:
        axes.legend(fontsize=8)
