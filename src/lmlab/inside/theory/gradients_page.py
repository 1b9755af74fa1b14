"""Gradients through time as pictures and as a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

from matplotlib.axes import Axes

from lmlab.inside.theory.clipping import LAST, LEARNED
from lmlab.inside.theory.gradients import GONE, WILD, Through
from lmlab.inside.theory.publish import DASHES, Panel, opening, side_by_side, to_try, together
from lmlab.inside.theory.through_time import Ended, Gradients
from lmlab.page.figures import INK, RULE, SOFT, drawing, note, series_colour, svg
from lmlab_derive.shared import html
from lmlab_derive.shared.html import escape

LOWEST, HIGHEST = 1e-14, 1e14  # norms that the pictures show
NEXT_NAME = 60.0  # a name is as high as this factor between norms
PANEL = (3.9, 3.3)  # inches
SMOOTH = 7  # steps of training that a point of a line is the mean of
DOTS: Any = (0, (1, 1.5))
TITLE = "How much of the past is left in a gradient"


def picture(found: Gradients) -> str:
    """All panels in one, for a document."""
    drawn = [Panel(name, partial(_draw_flows, flows=flows), "") for name, flows in _groups(found).items()]
    if found.trainings:
        drawn += [
            Panel("training without clipping", partial(_draw_training, found=found, clipped=False), ""),
            Panel("training with clipping", partial(_draw_training, found=found, clipped=True), ""),
        ]
    return together(TITLE, drawn)


def page(found: Gradients, command: str) -> str:
    """The whole page. command: what makes it."""
    lead = (
        "A network learns what to remember by following derivatives back through time. Each step back multiplies them by"
        " one more matrix, so they fade or grow by about the same <em>factor</em> at every step: after"
        f" {found.length} steps little is left of a factor below one, and one above it has become enormous."
    )
    sections = [
        opening(TITLE, lead, command),
        _flow_section(found),
        _bound_section(found),
        _training_section(found),
        _table(found),
        "<h2>Questions to try yourself on</h2>\n" + to_try(QUESTIONS),
    ]
    return html.document(TITLE, "\n".join(section for section in sections if section))


def _groups(found: Gradients) -> dict[str, list[Through]]:
    """Lines that stand in one panel: of one cell, of one forget bias, of one initialisation if there are several."""
    groups: dict[str, list[Through]] = {}
    several = len({flow.init for flow in found.flows}) > 1
    for flow in found.flows:
        parts = [flow.cell if flow.forget_bias is None else f"{flow.cell}, forget bias {flow.forget_bias:g}"]
        groups.setdefault(", ".join([*parts, flow.init] if several else parts), []).append(flow)
    return groups


def _draw_flows(axes: Axes, flows: Sequence[Through]) -> None:
    """Norms over steps back, a colour a scale; dashed, what is known without multiplying anything."""
    axes.axhspan(LOWEST, GONE, color=RULE, alpha=0.35, linewidth=0)
    axes.axhspan(WILD, HIGHEST, color=RULE, alpha=0.35, linewidth=0)
    for series, flow in enumerate(flows):
        colour = series_colour(series)
        back = range(len(flow.norms))
        axes.plot(back, _drawable(flow.norms), color=colour, linewidth=1.8)
        dashed = flow.blind if flow.kept is None else flow.kept
        assert dashed is not None
        axes.plot(back, _drawable(dashed), color=colour, linewidth=1, linestyle=DASHES)
    axes.set_yscale("log")
    place = LOWEST
    for series, flow in sorted(enumerate(flows), key=lambda pair: pair[1].norms[-1]):
        name, colour = f"×{flow.scale:g}", series_colour(series)
        last = max(back for back, size in enumerate(flow.norms) if LOWEST <= size <= HIGHEST)
        if last < len(flow.norms) - 1:  # its line leaves the picture: the name stands there, away from what is dashed
            fell = flow.norms[last] < 1
            offset, side = ((-18, 2), "right") if fell else ((5, -5), "left")
            note(axes, name, (last, flow.norms[last]), offset, color=colour, ha=side)
            continue
        place = min(max(flow.norms[-1], place * NEXT_NAME), HIGHEST)  # names stand apart where lines end together
        note(axes, name, (last, place), (4, 0), color=colour)
    axes.set_ylim(LOWEST, HIGHEST)
    axes.set_yticks([1e-12, 1e-6, 1.0, 1e6, 1e12], ["10⁻¹²", "10⁻⁶", "1", "10⁶", "10¹²"])
    axes.minorticks_off()
    axes.set_xlim(0, len(flows[0].norms) * 1.08)
    axes.set_xlabel("steps back from the last state")
    axes.grid(axis="y")


def _draw_bounds(axes: Axes, flow: Through) -> None:
    """One line between what it cannot fall below and what it cannot exceed."""
    back = range(len(flow.norms))
    upper, lower = _drawable(flow.upper), _drawable(flow.lower)
    axes.fill_between(back, lower, upper, color=series_colour(0), alpha=0.15)
    axes.plot(back, upper, color=series_colour(0), linewidth=1, linestyle=DASHES)
    axes.plot(back, lower, color=series_colour(0), linewidth=1, linestyle=DOTS)
    axes.plot(back, _drawable(flow.norms), color=series_colour(1), linewidth=1.8)
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.set_xlim(0, len(back) * 1.08)
    axes.set_xlabel("steps back from the last state")
    axes.grid(axis="y")


def _draw_training(axes: Axes, found: Gradients, clipped: bool) -> None:
    """Bits over steps: a thin line a run, a thick one through the middle of those of one start."""
    for series, start in enumerate(_starts(found)):
        runs = [run for run in found.trainings if run.start == start and (run.clip is not None) == clipped]
        for run in runs:
            axes.plot(_smooth(run.bits), color=series_colour(series), linewidth=0.7, alpha=0.55)
        longest = max(len(run.bits) for run in runs)
        middle = [median(run.bits[k] for run in runs if k < len(run.bits)) for k in range(longest)]
        axes.plot(_smooth(middle), color=series_colour(series), linewidth=2, label=start)
    axes.axhline(1.0, color=SOFT, linewidth=1, linestyle=DASHES)
    axes.set_ylim(0, 2.2)
    axes.set_yticks([0, 0.5, 1, 1.5, 2], ["0", "0.5", "guess: 1", "1.5", "2"])
    axes.set_xlabel("steps of training")
    axes.set_ylabel("bits")
    axes.grid(axis="y")
    axes.legend(loc="upper right", fontsize=8)


def _smooth(values: Sequence[float]) -> list[float]:
    """Means over the last few: single batches jump."""
    return [sum(values[max(0, k - SMOOTH + 1) : k + 1]) / min(k + 1, SMOOTH) for k in range(len(values))]


def _drawable(values: Sequence[float]) -> list[float]:
    """What a logarithmic axis can hold."""
    return [min(max(value, 1e-300), 1e300) for value in values]


def _starts(found: Gradients) -> list[str]:
    return list(dict.fromkeys(run.start for run in found.trainings))


def _flow_section(found: Gradients) -> str:
    figures = []
    for name, flows in _groups(found).items():
        with drawing(*PANEL) as (figure, axes):
            _draw_flows(axes, flows)
            axes.set_ylabel("norm of the derivative")
            axes.set_title(name, fontsize=10)
            gated = flows[0].kept is not None
            dashed = "the bound ‖U‖ᵏ, which no line exceeds"
            if gated:
                dashed = f"no bound, but what the gates alone keep, {'∏f' if flows[0].forget_bias is not None else '∏(1 - z)'}"
            told = ", ".join(f"×{flow.scale:g} {flow.verdict}" for flow in flows)
            figures.append((svg(figure, f"Norms through time, {name}"), f"{name}: {told}. Dashed: {dashed}."))
    return (
        "<h2>The norm of ∂(last state) / ∂(state k steps before)</h2>\n"
        f"<p>Before any training, {found.width} units, recurrent weights of the initialisation"
        f" ({escape(', '.join(dict.fromkeys(flow.init for flow in found.flows)))}) times the number beside each line, inputs of"
        f" spread {found.inputs:g}. Grey above: exploded, more than {WILD:g}. Grey below: vanished, less than {GONE:g}."
        " The line of an LSTM is of h and c together.</p>\n" + side_by_side(figures)
    )


def _bound_section(found: Gradients) -> str:
    chosen = [flows[len(flows) // 2] for flows in _groups(found).values()]
    figures = []
    for flow in chosen:
        with drawing(*PANEL) as (figure, axes):
            _draw_bounds(axes, flow)
            axes.set_ylabel("norm of the derivative")
            figures.append((svg(figure, f"Bounds, {flow.name}"), f"{flow.name}. Dashed: at most. Dotted: at least."))
    return (
        "<h2>What theory can promise</h2>\n"
        "<p>The orange line must lie between two that need no product of matrices. <strong>Above</strong> (dashed): the norm"
        " of a product is at most the product of the norms; for a plain cell that is at most (max|tanh′|·‖U‖)ᵏ = ‖U‖ᵏ, so"
        " with ‖U‖ &lt; 1 a gradient <em>must</em> vanish. <strong>Below</strong> (dotted): the determinant of a product is"
        " the product of the determinants, and the norm is at least the S-th root of its size, for a state of S numbers. Where"
        " every state is zero, a plain cell's product is Uᵏ itself, whose norm goes like ρ(U)ᵏ and is never below it (ρ: the"
        " largest size of an eigenvalue). So ρ(U) &gt; 1 is what explodes at rest; units in the flat ends of tanh can still"
        " prevent it. One size of the weights is drawn for each cell; the table below has the bounds of all.</p>\n"
        + side_by_side(figures)
    )


def _training_section(found: Gradients) -> str:
    if not found.trainings:
        return ""
    clip = next(run.clip for run in found.trainings if run.clip is not None)
    figures = []
    for clipped in (False, True):
        with drawing(*PANEL) as (figure, axes):
            _draw_training(axes, found, clipped)
            name = f"gradients shortened to norm {clip:g}" if clipped else "gradients as they are"
            caption = f"{name.capitalize()}. Thin: one run each. Thick: their median. Dashed: a guess."
            figures.append((svg(figure, f"Training with {name}"), caption))
    with drawing(*PANEL) as (figure, axes):
        for series, start in enumerate(_starts(found)):
            for number, run in enumerate(r for r in found.trainings if r.start == start and r.clip is None):
                look: dict[str, Any] = {"color": series_colour(series), "linewidth": 0.8, "alpha": 0.7}
                axes.plot(_drawable(run.gradient_norms), label=None if number else start, **look)
        axes.legend(fontsize=8)
        axes.axhline(clip, color=INK, linewidth=1, linestyle=DASHES)
        axes.set_yscale("log")
        axes.set_xlabel("steps of training")
        axes.set_ylabel("norm of the gradient")
        axes.grid(axis="y")
        figures.append(
            (svg(figure, "Gradient norms"), "Gradient norms where nothing is clipped; dashed: where clipping begins.")
        )
    columns: list[tuple[str, Callable[[Ended], str]]] = [
        ("start", lambda end: escape(end.start)),
        ("gradients", lambda end: end.clipped),
        ("learned", lambda end: f"{end.learned} of {end.runs}"),
        ("bits at the end, median", lambda end: f"{end.median_bits:.3f}"),
    ]
    return (
        "<h2>The same in training</h2>\n"
        f"<p>A plain recurrent network reads {found.trained_length} numbers. The first is +1 or -1, the rest is noise; after"
        " the last it must say which the first was. A guess costs one bit. Plain gradient descent, the same data with and"
        f" without clipping. Lines are means over the last {SMOOTH} steps. Learned means below {LEARNED:g} bits over"
        f" the last {LAST}.</p>\n"
        + side_by_side(figures)
        + html.table_of(found.ended, columns, label="Who learned to remember", words=(0, 1))
    )


def _steps(flow: Through) -> str:
    steps = flow.steps_to_a_thousandth
    return "never" if steps is None else str(steps)


def _table(found: Gradients) -> str:
    columns: list[tuple[str, Callable[[Through], str]]] = [
        ("weights", lambda flow: escape(flow.name)),
        ("gradient", lambda flow: flow.verdict),
        (f"norm, {found.length}<br>steps back", lambda flow: f"{flow.norms[-1]:.2g}"),
        ("factor a step", lambda flow: f"{flow.factor:.3f}"),
        ("steps until<br>below 1/1000", _steps),
        ("at least", lambda flow: f"{flow.lower[-1]:.1g}"),
        ("at most", lambda flow: f"{flow.upper[-1]:.1g}"),
        ("kept", lambda flow: "" if flow.kept is None else f"{flow.kept[-1]:.1g}"),
        ("‖U‖", lambda flow: f"{flow.weight_norm:.2f}"),
        ("ρ(U)", lambda flow: f"{flow.spectral_radius:.2f}"),
    ]
    about = (
        "<p>The norm at the far end; the factor that, taken at every step, gives it; after how many steps back less"
        " than a thousandth is left; the bounds it must lie between; what"
        " reaches back past all weights (kept: the product of 1 - z, or of f, of the best unit); the norm and the spectral"
        " radius of U.</p>\n"
    )
    return (
        "<h2>All numbers</h2>\n" + about + html.table_of(found.flows, columns, label="Norms and bounds", words=(0, 1))
    )


QUESTIONS = [
    (
        "Why does the plain network vanish at small weights whatever it reads?",
        "Because ‖U‖ &lt; 1 and |tanh′| ≤ 1: every step back multiplies by a matrix of norm below one. The dashed line"
        " ‖U‖ᵏ lies above the solid one and itself goes to zero.",
    ),
    (
        "Do large weights always explode?",
        "No. They push units into the flat ends of tanh, where the derivative is near zero. The bound grows like ‖U‖ᵏ, the"
        " line far slower. Try <code>--inputs 3</code>: with loud inputs it shrinks even at ×2.5.",
    ),
    (
        "What does the forget bias do?",
        "Along the cell only f stands between one step and the next, and f = σ(bias) at first: 0.5 for"
        " bias 0, 0.95 for 3. 0.5 to the power of 50 is 10⁻¹⁵, 0.95 to the power of 50 is 0.09: the dashed lines. So the"
        " bias keeps a gradient from vanishing; nothing in it forbids an explosion at very large weights.",
    ),
    (
        "Why do gated cells vanish too, before training?",
        "Because gates begin half open: z = 1/2 and f = 1/2 where nothing pulls them, so half is kept at every step, and"
        " 2⁻⁵⁰ is 10⁻¹⁵. A gate <em>can</em> keep everything; it must learn to, or be told so by its bias.",
    ),
    (
        "Which bias keeps a tenth of the gradient over 100 steps?",
        "f¹⁰⁰ = 0.1 asks for f = 0.977, and σ(bias) = 0.977 for a bias of 3.8. Try <code>--forget-biases 3.8 --length"
        " 100</code>.",
    ),
    (
        "Does a steep activation make gradients explode?",
        "Neither is steep: tanh has slope at most 1, the logistic function at most 1/4. They only ever shorten a gradient;"
        " what enlarges it is U (the dashed ‖U‖ᵏ).",
    ),
    (
        "What does clipping repair, and what not?",
        "It shortens a gradient that is too long and keeps its direction, so it tames the start that explodes. It can do"
        " nothing for the start that vanishes: that gradient holds no word of the first input, whatever its length.",
    ),
]
