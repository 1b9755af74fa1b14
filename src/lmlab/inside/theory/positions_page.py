"""Encodings of position as a picture and as a page."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes

from lmlab.inside.theory.positions import Positions
from lmlab.inside.theory.publish import DASHES, Panel, figures, opening, to_try, together
from lmlab.page.figures import INK, RULE, SOFT, note, series_colour
from lmlab_derive.shared import html, mathml
from lmlab_derive.shared.html import Row

TITLE = "How position n becomes n + k"
STARTS = (3, 20, 41)  # positions whose hands are drawn
TURNS = (300, 100, 30)  # degrees: of the hands that are drawn, the fastest that turn less


def picture(found: Positions) -> str:
    """All panels in one."""
    return together(TITLE, _panels(found))


def page(found: Positions, command: str) -> str:
    """The whole page."""
    k = found.offset
    lead = (
        "A sinusoidal encoding is a row of clocks: each pair of a sine and a cosine is a hand that turns at its own speed, the"
        f" first once in {found.pairs[0].wavelength:.1f} positions, the last once in {found.pairs[-1].wavelength:,.0f}. To go"
        f" {k} positions further, turn every hand by its own angle. <em>Where you start does not matter</em>, so distance is a"
        " rotation, and a linear map can learn it."
    )
    block = (
        r"\begin{pmatrix} \sin (n + k) \omega \\ \cos (n + k) \omega \end{pmatrix} ="
        r" \begin{pmatrix} \cos k \omega & \sin k \omega \\ - \sin k \omega & \cos k \omega \end{pmatrix}"
        r" \begin{pmatrix} \sin n \omega \\ \cos n \omega \end{pmatrix}"
    )
    rows = [
        Row([str(i), f"{pair.wavelength:,.1f}", f"{pair.turn_degrees % 360:.1f}°", f"{pair.turn_degrees / 360:.3f}"])
        for i, pair in found.listed_pairs.items()
    ]
    facts = {
        f"the turned PE(n) less PE(n + {k}), largest entry, every n": f"{found.rotation_error:.1e}",
        "PE(n)·PE(n + d): largest deviation over n": f"{found.similarity_deviation:.1e}",
        "rotary scores: largest deviation over n": f"{found.rotary_deviation:.1e}",
    }
    body = [
        opening(TITLE, lead, command),
        html.formula(mathml.to_mathml(block)),
        "<p>No n stands in the matrix. What is left below is rounding.</p>\n",
        html.facts(facts),
        "<h2>See it</h2>\n" + figures(_panels(found)),
        f"<h2>Angles of an offset of {k}</h2>\n"
        + html.table(["pair", "positions a turn", f"turned by k = {k}", "turns"], rows, label="Pairs"),
        "<h2>Questions to try yourself on</h2>\n" + to_try(QUESTIONS),
    ]
    return html.document(TITLE, "\n".join(body))


QUESTIONS = [
    (
        "Why does it take sines and cosines?",
        "With sines alone position 0 is the zero vector, and every matrix leaves it there: it never becomes position k. That is"
        " the flat line of the third panel. With both, a hand has a direction at every position.",
    ),
    (
        "Which matrix takes position 5 to position 8?",
        "The one that takes 0 to 3, or 97 to 100: a block for each pair as above with k = 3. <code>--offset 3</code> lists its"
        " angles.",
    ),
    (
        "What do rotary positions do differently?",
        "They add nothing to the token's vector. They turn the query by its position and the key by its own, so that their dot"
        " product feels the difference of the two angles: the same distance, the same score, wherever the pair stands.",
    ),
    (
        "Does the dot product of two encodings fall steadily with distance?",
        "No: it is a sum of cosines, Σ cos(dω), large at d = 0 and wavy after. It says near or far, not exactly how far.",
    ),
]


def _panels(found: Positions) -> list[Panel]:
    k = found.offset
    return [
        Panel(f"k = {k} turns a hand by one angle, wherever it starts", lambda axes: _clocks(axes, found),
              f"Three of the hands. Open dots: positions {', '.join(map(str, STARTS))}, each in its colour; full dots: {k}"
              " further. All arcs of one clock are equally long."),
        Panel("sinusoidal: PE(n)·PE(n + d)", lambda axes: _distance(axes, found.similarity, 0, "PE(n)·PE(n + d)"),
              "One line, because it is the same for every n."),
        Panel("is there a matrix from n to n + k?", lambda axes: _matrix(axes, found),
              "Largest error of the best matrix over all positions: with cosines only rounding is left, with sines alone none"
              " exists."),
        Panel("rotary: score of a query at n, a key at n + d", lambda axes: _distance(axes, found.rotary, 1, "score"),
              "One random query and key; again one line for every n."),
    ]  # fmt: skip


def _clocks(axes: Axes, found: Positions) -> None:
    chosen = [next((p for p in found.pairs if p.turn_degrees < most), found.pairs[-1]) for most in TURNS]
    for place, pair in enumerate(dict.fromkeys(chosen)):
        centre = 2.5 * place
        axes.add_patch(_circle(centre))
        for series, start in enumerate(STARTS):
            radius, omega = 1 - 0.17 * series, 2 * math.pi / pair.wavelength
            angles = [(start + found.offset * i / 60) * omega for i in range(61)]
            colour = series_colour(series)
            arc = [(centre + radius * math.sin(a), radius * math.cos(a)) for a in angles]
            axes.plot(*zip(*arc, strict=True), color=colour, linewidth=1.6)
            axes.plot(*arc[0], "o", color=colour, markerfacecolor="none", markersize=5)
            axes.plot(*arc[-1], "o", color=colour, markersize=5)
            axes.plot([centre, arc[-1][0]], [0, arc[-1][1]], color=colour, linewidth=0.6)
        note(axes, f"a turn in {pair.wavelength:,.0f}", (centre, -1.25), (0, 0), ha="center")
        note(axes, f"+{pair.turn_degrees:,.0f}°", (centre, -1.55), (0, 0), ha="center", color=INK)
    axes.set_xlim(-1.2, 2.5 * 2 + 1.2)
    axes.set_ylim(-1.75, 1.15)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _circle(centre: float) -> Any:
    from matplotlib.patches import Circle

    return Circle((centre, 0), 1.0, fill=False, edgecolor=RULE)


def _distance(axes: Axes, values: tuple[float, ...], series: int, label: str) -> None:
    axes.plot(values, color=series_colour(series), linewidth=1.6)
    axes.axhline(0, color=SOFT, linewidth=0.8, linestyle=DASHES)
    axes.set_xlabel("distance d")
    axes.set_ylabel(label)
    axes.grid(axis="y")


def _matrix(axes: Axes, found: Positions) -> None:
    offsets = [missed.offset for missed in found.missed]
    for series, (name, errors) in enumerate(
        {
            "sine and cosine": [missed.with_cosines for missed in found.missed],
            "sines alone": [missed.sines_alone for missed in found.missed],
        }.items()
    ):
        axes.plot(
            offsets,
            [max(error, 1e-16) for error in errors],
            "o-",
            markersize=3,
            color=series_colour(series),
            label=name,
        )
    axes.set_yscale("log")
    axes.set_ylim(1e-9, 10)
    axes.minorticks_off()
    axes.set_xlabel("offset k")
    axes.set_ylabel("largest error")
    axes.grid(axis="y")
    axes.legend(fontsize=8, loc="center right")
