"""The attention sandbox as a page with sliders, which computes everything itself, and as a picture."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from lmlab.inside.theory.publish import opening, subscripted, to_try
from lmlab.inside.theory.sandbox import (
    ALONE,
    BINS,
    LOST,
    NEAR,
    RANGES,
    Numbers,
    Sandbox,
    SandboxSettings,
    attend,
    averaged,
    draws,
    queries,
    values,
)
from lmlab.page.figures import INK, RULE, SOFT, note, panels, series_colour, svg
from lmlab_derive.shared import html, mathml
from lmlab_derive.shared.html import Row, escape

TITLE = "One head, two heads: an attention sandbox"
COLOURS = {"one": 1, "two": 0}
NAMES = {"one": "one head", "two": "two heads"}
MOST_ON_PAGE = {"samples": 2000, "seed": 99}  # that a slider offers


class Slider(NamedTuple):
    """What a setting is called on the page, what it means, and the steps of its slider (None: any)."""

    name: str
    about: str
    step: float | None = None
    unit: str = ""


SLIDERS = {
    "query_a": Slider("query along key a, x", "λ: how loudly it asks for a"),
    "query_b": Slider("query along key b, y", "0: only a is asked for"),
    "temperature": Slider("temperature, τ", "scores are divided by it: high is soft, low is sharp"),
    "stretch": Slider("length of key a varies by", "standard deviation of γ in k_a = (1 + γ) μ_a; at first √½ = 0.71"),
    "noise": Slider("noise in every key, √α", "standard deviation of each entry"),
    "overlap": Slider("overlap of the keys, μ_a·μ_b", "0: at right angles"),
    "keys": Slider("number of keys, n", "a, b and others", 1),
    "value_a": Slider("where v_a lies", "on the circle of values", 1, "°"),
    "value_b": Slider("where v_b lies", "on the circle of values", 1, "°"),
    "samples": Slider("samples", "draws of all keys", 1),
    "seed": Slider("seed", "another draw", 1),
}
MORE = ("keys", "value_a", "value_b", "samples", "seed")  # what is set less often
HALF: dict[str, float] = {"query_a": 10, "query_b": 10, "temperature": 1, "noise": 0, "stretch": 0, "overlap": 0}
VARIES = HALF | {"stretch": 0.5**0.5}
PRESETS: dict[str, tuple[dict[str, float], str]] = {
    "Copy one value": (
        HALF | {"query_b": 0},
        "The query points along key a alone: on the left all weight goes to v_a, and the output is a copy of it. (Of the two"
        " heads the second asks for nothing and averages all values.)",
    ),
    "Average two": (
        HALF,
        "The query is λ(μ_a + μ_b): both keys get the same score, far above the rest, and the output stands in the ring,"
        " half-way. One head and two do the same.",
    ),
    "A key whose length varies": (
        VARIES,
        "One head compares two large scores, λ(1 + γ) and λ. Whichever is larger takes everything: the output jumps between v_a"
        " and v_b, and is hardly ever in the ring. Each of two heads compares its own large score with zero: only where γ"
        " falls below about -1 does the first lose v_a.",
    ),
    "The same, asked softly": (
        VARIES | {"temperature": 4},
        "A higher temperature makes one head's cliff gentle, so that it stays nearer to the ring more often; but now the other"
        " values leak in, and both clouds drift upwards.",
    ),
    "A little noise in every key": (
        HALF | {"noise": 0.1},
        "No key varies much, yet one head is thrown about: the two scores typically differ by 2λ√α = 2, and the softmax is"
        " sensitive to differences of 1. Two heads do not notice.",
    ),
    "Keys that are not at right angles": (
        VARIES | {"overlap": 0.5},
        "The second head asks for b, but key a answers too, and with it its noise. That c_2 is free of the noise in k_a hangs"
        " on μ_a·μ_b = 0.",
    ),
}
ROWS = {
    "mean": "share of v_a, mean",
    "deviation": "its standard deviation",
    "near": f"near half ({NEAR[0]:g} to {NEAR[1]:g})",
    "alone": f"v_a alone (above {ALONE:g})",
    "lost": f"v_a lost (at most {LOST:g})",
    "distance": "distance from ½(v_a + v_b)",
}


def page(found: Sandbox, command: str) -> str:
    """The whole page; it begins with these settings."""
    lead = (
        "Attention is a weighted average of values: each key is compared with the query, and the softmax of the scores gives"
        " the weights. Copying one value is easy. Averaging two with <em>one</em> head is easy too, until a key's length"
        " varies: then it tips over. <em>Two</em> heads, one for each value, stand."
    )
    presets = {name: {"settings": settings, "told": subscripted(told)} for name, (settings, told) in PRESETS.items()}
    script = resources.files("lmlab.inside.theory").joinpath("sandbox.js").read_text(encoding="utf-8")
    body = [
        opening(TITLE, lead, command),
        _stage(found.settings),
        _why(),
        _table(found),
        _formulas(),
        "<h2>Questions to try yourself on</h2>\n" + to_try(QUESTIONS),
    ]
    return html.document(
        TITLE,
        "\n".join(body),
        skip_to=("outputs", "the outputs"),
        after=f'<script type="application/json" id="presets">{json.dumps(presets)}</script>\n<script>{script}</script>\n',
    )


def _stage(settings: SandboxSettings) -> str:
    """What is chosen, what comes out of it, and what can be set, close together."""
    buttons = "".join(f'<button type="button" data-preset="{escape(name)}">{escape(name)}</button>' for name in PRESETS)
    heads = []
    for which, name in NAMES.items():
        asked = "asked for a and b at once" if which == "one" else "one asked for a, one for b"
        heads.append(
            f"<section><h3>{name.capitalize()} <small>{asked}</small></h3>"
            + _canvas(f"cloud-{which}", f"Outputs of {name} among the values", "0 0 320 180")
            + _canvas(f"histogram-{which}", f"How often the output of {name} holds how much of v_a", "0 0 320 198")
            + "</section>"
        )
    sliders = {name: _slider(name, settings) for name in SLIDERS}
    first = "".join(html for name, html in sliders.items() if name not in MORE)
    more = html.folded("More to set", f'<div class="sliders">{"".join(sliders[name] for name in MORE)}</div>')
    return (
        f'<h2>Choose, and watch</h2>\n<div class="choices">{buttons}</div>\n<p id="told" class="hint" role="status"></p>\n'
        f'<div class="stage" id="outputs">{"".join(heads)}</div>\n'
        '<p class="soft">Above: the values, larger where they get more weight; a dot is the output for one draw of the keys;'
        " the ring is the average that is wanted. Below: how often the output holds how much of v<sub>a</sub> (the attention"
        " weight of key a, averaged over heads); the line is the closed form, dashed where it does not hold because there is"
        " noise in every key. Dots are moved a little up or down, so that they do not hide one another.</p>\n"
        f'<form id="settings"><div class="sliders">{first}</div>{more}</form>\n'
    )


def _slider(name: str, settings: SandboxSettings) -> str:
    slider, value, (low, high) = SLIDERS[name], getattr(settings, name), RANGES[name]
    high = max(value, MOST_ON_PAGE.get(name, high))
    step = "any" if slider.step is None else f"{slider.step:g}"
    return (
        f'<label>{subscripted(slider.name)} <output id="{name}-is" for="{name}"></output>'
        f'<input type="range" id="{name}" name="{name}" min="{low:g}" max="{high:g}" step="{step}" value="{value!r}"'
        f' data-unit="{slider.unit}"><small>{subscripted(slider.about)}</small></label>'
    )


def _canvas(name: str, label: str, box: str) -> str:
    """Where the script draws."""
    return f'<svg class="figure" id="{name}" viewBox="{box}" role="img" aria-label="{escape(label)}"></svg>'


def _why() -> str:
    return (
        "<h2>Why</h2>\n<p>The share of v<sub>a</sub> in the output, as a function of how long key a happens to be. With"
        " equally loud queries one head has its cliff at γ = 0, in the middle of what γ usually is; two heads have theirs near"
        " γ = -1, at its edge.</p>\n"
        f'<figure tabindex="0">{_canvas("cliffs", "Share of v_a against the length of key a", "0 0 640 244")}</figure>\n'
    )


def _table(found: Sandbox) -> str:
    noisy = f"data-noisy{'' if found.settings.noise else ' hidden'}"  # shown where there is noise
    closed = f"closed form<span {noisy}><br>without the noise</span>"
    columns = ["over the draws of the keys", "one head, sampled", closed, "two heads, sampled", closed]
    rows = []
    for what, name in ROWS.items():
        cells = [
            f'<span data-of="{which}.{way}.{what}">{getattr(getattr(getattr(found, which), way), what):.3f}</span>'
            for which in NAMES
            for way in ("sampled", "closed")
        ]
        rows.append(Row([subscripted(name), *cells]))
    return (
        "<h2>In numbers</h2>\n"
        f'<p {noisy} class="hint"><strong>The closed forms do not hold here</strong>:'
        " they leave the noise in every key out, and now there is some. They say what would be without it."
        "</p>\n"
        + html.table(columns, rows, label="Sampled and by closed forms")
        + '<p>In one head, the score of a less that of b has standard deviation <strong id="score-deviation">'
        f"{found.score_deviation:.2f}</strong>. As long as that is small against 1 the softmax hardly notices.</p>\n"
    )


def _formulas() -> str:
    one = r"\alpha_a = \frac{e^{\lambda (1 + \gamma)}}{e^{\lambda (1 + \gamma)} + e^{\lambda} + n - 2}"
    two = (
        r"\frac{1}{2} \cdot \frac{e^{\lambda (1 + \gamma)}}{e^{\lambda (1 + \gamma)} + n - 1}"
        r" + \frac{1}{2} \cdot \frac{1}{e^{\lambda} + n - 1}"
    )
    return (
        "<h2>The closed forms</h2>\n<p>Where γ alone varies (noise 0), the share of v<sub>a</sub> is a function of γ. The"
        " column and the line have it for every query, temperature, overlap and number of keys; with keys at right angles,"
        " x = y = λ and τ = 1 it is, for one head and for two,</p>\n"
        + html.formula(mathml.to_mathml(one))
        + html.formula(mathml.to_mathml(two))
        + "<p>γ is normal, so the probability that the share is above a limit is the normal distribution function where the"
        " share crosses it; means are integrals over the density of γ. With two keys the first is the logistic function of λγ,"
        " and a sharp query makes it a coin: v<sub>a</sub> if γ &gt; 0, else v<sub>b</sub>.</p>\n"
    )


QUESTIONS = [
    (
        "How can one head copy a value exactly?",
        "It cannot, but nearly: with x = 10 and y = 0 the weight of a is e¹⁰/(e¹⁰ + n - 1). The query must be large against"
        " log n. Set x to 2 and more keys, and the others leak in.",
    ),
    (
        "Is the weight of a exactly one half when two are averaged?",
        "No: at γ = 0 it is e<sup>λ</sup>/(2e<sup>λ</sup> + n - 2). The n - 2 other keys have score 0, not weight 0; each adds"
        " e⁰ = 1 below. Set x and y to 2 and n to 10, and watch the output leave the ring.",
    ),
    (
        "Would a larger λ help one head against the varying length?",
        "It makes things worse: the cliff at γ = 0 becomes steeper, and the output is v<sub>a</sub> or v<sub>b</sub> by the"
        " toss of a coin. Two heads gain: their cliff moves towards γ = -1.",
    ),
    (
        "Are two heads right on every draw?",
        "No. With a variance of one half, γ is below -1 in 8 of 100 draws; then key a points away from its query, and"
        " v<sub>a</sub> is lost. The bar at 0 is theirs.",
    ),
    (
        "Why does the noise in key a not reach the second head?",
        "Because its query is at right angles to μ<sub>a</sub>. Move the overlap away from 0 and it does.",
    ),
]


def picture(found: Sandbox) -> str:
    """Outputs, how they are distributed, and why, for a document."""
    s = found.settings
    gamma_S, noise_SN2 = draws(s)
    with panels(7.6, 6.2, 2, 2) as (figure, axes):
        for place, (which, heads) in zip(axes, queries(s).items(), strict=False):
            _draw_cloud(place, s, averaged(s, heads, noise_SN2, gamma_S), which)
        _draw_histograms(axes[2], found)
        _draw_cliffs(axes[3], s)
        return svg(figure, TITLE)


def _draw_cloud(axes: Axes, s: SandboxSettings, weights_SN: Numbers, which: str) -> None:
    points, shown = values(s), 600
    outputs = weights_SN[:shown] @ points
    shake = 0.03 * np.sin(12.9898 * np.arange(1, len(outputs) + 1))  # dots on one line would hide each other
    axes.plot(*points[:2].T, color=RULE, linewidth=1)
    axes.plot(outputs[:, 0], outputs[:, 1] + shake, ".", color=series_colour(COLOURS[which]), markersize=4, alpha=0.3)
    axes.plot(*points[2:].T, "o", color=SOFT, markersize=4)
    axes.plot(*points[:2].T, "o", color=INK, markersize=7)
    axes.plot(*points[:2].mean(0), "o", markersize=14, markerfacecolor="none", color=INK)
    for name, point in zip(("value a", "value b"), points, strict=False):
        note(axes, name, tuple(point), (14 * point[0], 14 * point[1] + 10), color=INK, ha="center")
    axes.set_title(f"{NAMES[which]}: outputs", fontsize=10)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.margins(0.18)


def _draw_histograms(axes: Axes, found: Sandbox) -> None:
    edges = np.linspace(0, 1, BINS + 1)
    for which in NAMES:
        heads, colour = getattr(found, which), series_colour(COLOURS[which])
        axes.stairs(heads.sampled.histogram, edges, fill=True, color=colour, alpha=0.4, label=NAMES[which])
        axes.stairs(heads.closed.histogram, edges, color=colour, linewidth=1.2)
    axes.set_xlabel("share of value a in the output")
    axes.set_ylabel("share of draws")
    noisy = bool(found.settings.noise)
    axes.set_title(f"bars: sampled, lines: closed form{' without noise' if noisy else ''}", fontsize=10)
    axes.legend(fontsize=8)


def _draw_cliffs(axes: Axes, s: SandboxSettings) -> None:
    gamma = np.linspace(-2, 2, 401)
    quiet = np.zeros((s.keys, 2))
    if s.stretch > 0:
        axes.fill_between(gamma, 0.7 * np.exp(-((gamma / s.stretch) ** 2) / 2), color=SOFT, alpha=0.15, linewidth=0)
        note(axes, "how often γ", (0.5 * s.stretch, 0.64), (8, 0))
    for which, heads in queries(s).items():
        share = np.mean([attend(s, gamma, quiet, query)[:, 0] for query in heads], axis=0)
        look: dict[str, Any] = {"linewidth": 2, "label": NAMES[which]}
        axes.plot(gamma, share, color=series_colour(COLOURS[which]), **look)
    axes.set_xlabel("γ: key a is 1 + γ long")
    axes.set_ylabel("share of value a")
    axes.set_title("why", fontsize=10)
    axes.grid(axis="y")
    axes.legend(fontsize=8, loc="upper left")
