"""Gates as a page shows them: the text coloured by one unit, and a map of all units over the text, drawn when looked at."""

from __future__ import annotations

import numpy as np

from lmlab.inside.attention_section import packed_bytes
from lmlab.inside.gates import GateLayer, Gates, Unit, features, followed
from lmlab.inside.sections import Section
from lmlab_derive.shared import html
from lmlab_derive.shared.html import Row, escape

MOST_UNITS = 64  # of a layer on the page: those that follow something, and those whose memory varies most
TELLING = 10  # units named in the table
DOES = {
    "update gate z": "how much is written anew: h ← (1 − z) h + z ĥ. Near 0 a unit keeps what it has.",
    "reset gate r": "how much of the old state what is to be written may see: ĥ = tanh(W x + r U h).",
    "input gate i": "how much of the candidate is written: c ← f c + i c̃.",
    "forget gate f": "how much of the cell is kept: c ← f c + i c̃. Near 1 a unit remembers, and its gradient lives on.",
    "output gate o": "how much of the cell is shown: h = o tanh(c).",
}  # what a gate is for; of a cell of someone else's, nothing is said


KEEP = ("forget gate f", "update gate z")  # the gates that decide what is kept: the page opens on one


def opening(found: Gates, name: str, learned: dict[str, str]) -> str:
    """The heading of a page of gates alone, with the unit that tells most. learned: what is known of the training."""
    told = telling_units(found)
    lead = f"It has read {len(found.tokens):,} tokens, and no unit follows anything plain about the text."
    if told:
        best = told[0]
        memory = list(found.layers[0].values)[-1]
        lead = (
            f"The {memory} of unit {best.unit} of layer {best.layer} follows {best.follows} (correlation"
            f" {best.correlation:+.2f}), which nobody taught it.{_gate_of(found, best)}"
        )
    facts = html.facts({"model": found.model, "text": f"{len(found.tokens):,} tokens", **learned})
    return f'<h1>The gates of {escape(name)}</h1>\n<p class="lead">{escape(lead)}</p>\n{facts}'


def _gate_of(found: Gates, unit: Unit) -> str:
    """What the gate that decides what this unit keeps goes along with, if with anything plain."""
    values = found.layers[unit.layer - 1].values
    gate = _opens_on(values)
    of_all_TH = values[gate]
    name, most = followed(of_all_TH[:, unit.unit - 1], features(found.tokens), of_all_TH.shape[1])
    return f" Its {gate} goes along with {name} ({most:+.2f})." if name else ""


def _opens_on(values: dict[str, np.ndarray]) -> str:
    """The gate or memory that a page shows first."""
    return next((name for name in values if name in KEEP), next(iter(values)))


def section(found: Gates, index: int, name: str) -> Section:
    """The section of one model; index: among all of the page. name: of the run."""
    key = f"gates-{index}"
    layers = []
    for layer in found.layers:
        chosen = _shown(layer)
        values = {name: value[:, chosen] for name, value in layer.values.items()}
        layers.append(
            {
                "units": [_unit(layer.units[i]) for i in chosen],
                "telling": max(range(len(chosen)), key=lambda i: abs(layer.units[chosen[i]].correlation)),
                "values": {name: {"shares": bool(v.min() >= 0), "data": _packed(v)} for name, v in values.items()},
            }
        )
    data = {"tokens": list(found.tokens), "layers": layers}
    title = f"What {name} keeps and forgets"
    return Section(html=_html(found, key, name), title=title, data={key: data}, scripts=("shared.js", "gates.js"))


def _shown(layer: GateLayer) -> list[int]:
    """The units that are shown, those that keep longest first."""
    memory_TH = list(layer.values.values())[-1]
    telling = sorted(range(len(layer.units)), key=lambda i: -abs(layer.units[i].correlation))[:TELLING]
    varying = np.argsort(-memory_TH.std(0), kind="stable").tolist()
    chosen = list(dict.fromkeys([*telling, *varying]))[:MOST_UNITS]
    return sorted(chosen, key=lambda unit: -layer.units[unit].keeps)


def _packed(values: np.ndarray) -> str:
    """Shares from 0 to 1, others from -2 to 2, as bytes."""
    scaled = values if values.min() >= 0 else (values + 2.0) / 4.0
    return packed_bytes(np.rint(255 * scaled.clip(0.0, 1.0)).astype(np.uint8))


def _unit(unit: Unit) -> str:
    follows = f", follows {unit.follows} ({unit.correlation:+.2f})" if unit.follows else ""
    return f"unit {unit.unit}, keeps {unit.keeps:,.1f} tokens{follows}"


def _html(found: Gates, key: str, name: str) -> str:
    layers = "".join(f'<option value="{i}">{escape(layer.name)}</option>' for i, layer in enumerate(found.layers))
    first = _opens_on(found.layers[0].values)
    choices = "".join(
        f'<label><input type="radio" name="{key}-gate" value="{escape(gate)}"'
        f"{' checked' if gate == first else ''}> {escape(gate)}</label>"
        for gate in found.layers[0].values
    )
    return (
        f'<section class="gates" data-of="{key}"><h2>What {escape(name)} keeps and forgets</h2>\n'
        f"<p>{_how_many(found)}The text is coloured by one unit after it read each token, ⏎ being the end of a line: blue is"
        " positive (of a gate: open), red negative. Below, in stronger colours, all units over a stretch of the text, those"
        " that keep longest on top. Point at a token or at the map to read a value. Choose a unit in the list or on the map;"
        f" the arrow keys go from unit to unit. At first the {escape(first)} is shown; choose another gate, or what the unit"
        " remembers.</p>\n"
        f'<fieldset class="modes"><legend>Show</legend>{choices}</fieldset>\n'
        f'<p class="where"><label>layer <select class="layer">{layers}</select></label>'
        f' <label>unit <select class="unit"></select></label></p>\n<p class="said" role="status"></p>\n'
        f'<p class="tokens strip long" tabindex="0" role="group" aria-label="The text, by one unit of {escape(name)}"></p>\n'
        '<div class="large"><canvas class="map" tabindex="0" role="img" aria-label="All units over the text; the arrow'
        ' keys choose a unit"></canvas></div>\n'
        f'<p class="where"><label>from token <input type="range" min="0" max="{max(0, len(found.tokens) - 1)}" value="0"'
        f' aria-label="First token of the map, {escape(name)}"></label> <output></output></p>\n'
        f"{tables(found)}</section>"
    )


def tables(found: Gates) -> str:
    """Means of the gates, and the units that follow something."""
    rows = []
    for layer in found.layers:
        for gate in layer.gates:
            name = f"{layer.name}: {gate.name}" if len(found.layers) > 1 else gate.name
            numbers = [f"{gate.mean:.2f}", f"{gate.open:.0%}", f"{gate.closed:.0%}"]
            rows.append(Row([escape(name), escape(DOES.get(gate.name, "")), *numbers]))
    units = [
        Row([f"{u.layer}.{u.unit}", escape(u.follows), f"{u.correlation:+.2f}", f"{u.keeps:,.1f}"])
        for u in telling_units(found)
    ]
    told = "<h3>Units that follow something</h3>\n<p>Correlation of a unit's memory with something plain about the text.</p>\n"
    columns = ["unit", "follows", "correlation", "keeps, tokens"]
    return (
        html.table(["gate", "what it does", "mean", "above 0.9", "below 0.1"], rows, label="Gates", words=(0, 1))
        + (told + html.table(columns, units, label="Units", words=(1,)) if units else "")
        + '<p class="soft">A unit keeps so many tokens: after them a third (1/e) of what it remembered is left, by the mean of'
        " the logarithm of the gate that keeps. A single token that shuts this gate counts for much: a unit that keeps a whole"
        " line and begins anew with the next one keeps few tokens by this measure."
        " States made from these gates differ from the fast kernel's by at most"
        f" {found.difference:.1e}.</p>\n"
    )


def telling_units(found: Gates) -> list[Unit]:
    """Those that follow something most closely."""
    units = [unit for layer in found.layers for unit in layer.units if unit.follows]
    return sorted(units, key=lambda unit: -abs(unit.correlation))[:TELLING]


def _how_many(found: Gates) -> str:
    most = max(len(layer.units) for layer in found.layers)
    if most <= MOST_UNITS:
        return ""
    return f"{MOST_UNITS} of its {most} units a layer are shown: those that follow something or vary most. "
