"""Attention as a page shows it: all heads small, one large as a map, as lines and over the text, drawn when looked at.

The weights travel as bytes: 255 times the root of each, so that small ones stay apart, packed by zlib, a string a head.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lmlab.inside.attention import BEGIN, END, Attention, Layer
from lmlab.inside.head_descriptions import MOSTLY, PARTLY, Head
from lmlab.inside.sections import Section
from lmlab.layers.looking import Way
from lmlab.page.numbers import plus_minus
from lmlab_derive.shared import html
from lmlab_derive.shared.html import Row, escape

if TYPE_CHECKING:
    from lmlab.inside.heads_switched_off import HeadCost

CHANCE = ("same", "induction", "along")  # shares that mean little without what chance would give
TITLES = {
    Way.BACK: {
        "distance": "tokens off",
        "current": "just read",
        "previous": "before it",
        "beginning": "beginning",
        "same": "same",
        "induction": "induction",
    },
    Way.AROUND: {
        "distance": "tokens away",
        "current": "itself",
        "previous": "before it",
        "next": "after it",
        "beginning": "beginning",
        "end": "end",
        "same": "same",
    },
    Way.ACROSS: {"distance": "off the diagonal", "along": "as far along", "same": "same", "end": "end"},
}  # of the numbers of a head
ORDER = (Way.ACROSS, Way.AROUND, Way.BACK)  # what is most telling stands first


def by_way(found: Attention) -> dict[Way, list[Layer]]:
    """The layers by what they look at."""
    ways = [way for way in ORDER if any(layer.way is way for layer in found.layers)]
    return {way: [layer for layer in found.layers if layer.way is way] for way in ways}


def opening(found: Attention, name: str, learned: dict[str, str]) -> str:
    """The heading of a page of attention alone. learned: what is known of the training."""
    what = {"model": found.model, "heads": str(len(found.heads)), "text": f"{len(found.tokens):,} tokens"}
    if found.language is not None:
        source = next(layer.sees for layer in found.layers if layer.way is Way.ACROSS)
        what |= {"source": "".join(source[:-1]), found.language: "".join(found.tokens[:-1])}
    return f"<h1>Where {escape(name)} looks</h1>\n" + html.facts({**what, "context": found.policy, **learned})


def sections(found: Attention, index: int, name: str) -> list[Section]:
    """The sections of one model, one for each way of looking; index: of the model among all of the page. name: of the run."""
    return [_section(found, way, layers, index, name) for way, layers in by_way(found).items()]


def _section(found: Attention, way: Way, of_way: list[Layer], index: int, name: str) -> Section:
    key = f"attention-{index}" if len(by_way(found)) == 1 else f"attention-{index}-{way.value}"
    layers = [
        {
            "first": layer.first_T.tolist(),
            "begins": layer.begins_T.tolist(),
            "reach": layer.weights_HTC.shape[2],
            "names": [head.name for head in layer.heads],
        }
        for layer in of_way
    ]
    data = {
        "way": way.value,
        "asks": list(of_way[0].asks) if way is Way.ACROSS else None,  # else it follows from what is seen
        "sees": list(of_way[0].sees),
        "begin": BEGIN,
        "layers": layers,
    }
    heads = {
        f"{key}-{number}.{head}": packed(weights_TC)
        for number, layer in enumerate(of_way)
        for head, weights_TC in enumerate(layer.weights_HTC)
    }
    whole = _html(found, way, of_way, key, name)
    title, _ = _words(found, way, name)
    return Section(html=whole, title=title, data={key: data}, texts=heads, scripts=("shared.js", "attention.js"))


def packed(weights: np.ndarray) -> str:
    """Numbers from 0 to 1 as bytes, by their roots."""
    return packed_bytes(np.rint(255 * np.sqrt(weights)).astype(np.uint8))


def packed_bytes(values: np.ndarray) -> str:
    """Bytes as base64 of zlib, which a page unpacks when it needs them."""
    return base64.b64encode(zlib.compress(values.tobytes(), 6)).decode()


def _html(found: Attention, way: Way, layers: list[Layer], key: str, name: str) -> str:
    several = sum(len(layer.heads) for layer in layers) > 1
    keenest = min((head for layer in layers for head in layer.heads), key=lambda head: head.entropy)  # chosen at first
    rows = []
    for number, layer in enumerate(layers):
        boxes = "".join(_thumb(head, number, head is keenest) for head in layer.heads)
        rows.append(f'<div class="heads" role="group" aria-label="{escape(layer.name)}">{boxes}</div>')
    small = f'<div class="layers">{"".join(rows)}</div>' if several else ""
    how = "Choose a head. " if several else ""
    last = max(0, len(layers[0].asks) - 1)
    heading, words = _words(found, way, name)
    label = escape(heading)
    source = '<p class="tokens strip source" aria-label="The source"></p>\n' if way is Way.ACROSS else ""
    return (
        f'<section class="attention" data-of="{key}"><h2>{label}</h2>\n'
        f"<p>{words} {how}Point at a token, a row or a line; the arrow keys walk, and the slider moves through the text.</p>\n"
        f'{small}<p class="where"><label>from token <input type="range" min="0" max="{last}" value="0"'
        f' aria-label="First token shown: {label}"></label>'
        f' <output></output></p>\n<p class="said" role="status"></p>\n{source}'
        f'<p class="tokens strip rows" tabindex="0" role="group" aria-label="{label}; arrow keys walk"></p>\n'
        '<div class="large"><canvas class="map" tabindex="-1" role="img" aria-label="Heat map of one head"></canvas>'
        '<canvas class="lines" tabindex="-1" role="img" aria-label="Lines from each token to what it looked at"></canvas>'
        "</div>\n"
        f"{heads_table(way, layers)}{_checked(way, max(layer.difference for layer in layers))}</section>"
    )


def _words(found: Attention, way: Way, name: str) -> tuple[str, str]:
    """The heading of a section, as text, and how its maps are read, as HTML."""
    if way is Way.ACROSS:
        return f"Which words of the source {name} looks at while it writes", (
            "Each row of a map is the moment before one token of the translation is written: how attention is shared out over"
            f" the source, {END} being its end. Where a row is dark stands what the token is written from: an alignment that"
            " nobody taught it."
        )
    if way is Way.AROUND:
        whose = "its source" if found.language is not None else "the text"
        return f"What {name} looks at while it reads {whose}", (
            "Each row of a map is one place of the text: how its attention is shared out over all places, before and after it"
            f" and itself. {END} is the end symbol"
            + (", and stands behind every source." if found.language is not None else f", {BEGIN} the begin symbol.")
        )
    heading = f"What {name} looks at" if found.language is None else f"What {name} looks at of what it has written"
    return heading, (
        "Each row of a map is the moment after one token was read: how that token's attention is shared out over what came"
        f" before, {BEGIN} being the beginning of the "
        + ("window." if found.language is None else "translation, which names the language.")
    )


def _thumb(head: Head, layer: int, chosen: bool) -> str:
    return (
        f'<button type="button" aria-pressed="{str(chosen).lower()}" data-layer="{layer}" data-head="{head.head - 1}">'
        f'<canvas width="96" height="96" aria-hidden="true"></canvas><b>{escape(head.name)}</b>'
        f" {escape(head.seems)}</button>"
    )


def heads_tables(found: Attention, costs: Mapping[str, HeadCost]) -> str:
    """All heads, in a table for each way of looking; costs: what a text costs more without a head, by its name."""
    return "".join(
        f'{heads_table(way, layers, costs)}<p class="soft">{SHARES_ARE} {EXPLAINED[way]}</p>\n'
        for way, layers in by_way(found).items()
    )


def heads_table(way: Way, layers: list[Layer], costs: Mapping[str, HeadCost] | None = None) -> str:
    """Summaries of the heads of some layers, which look the same way."""
    heads = [head for layer in layers for head in layer.heads]
    columns = ["head", "seems to look at", TITLES[way]["distance"], "entropy,<br>bits"]
    columns += ["cost of its loss"] if costs else []
    columns += [f"{TITLES[way][name]}{'<br>(by chance)' * (name in CHANCE)}" for name in heads[0].shares]
    rows = []
    for head in heads:
        cells = [escape(head.name), escape(head.seems), f"{head.distance:.1f}", f"{head.entropy:.2f}"]
        cost = costs[head.name] if costs else None
        cells += [f"{cost.cost:+.4f} {plus_minus(cost.error, 4).strip()}"] if cost else []
        for name, share in head.shares.items():
            cells.append(f"{share:.2f}" + (f" ({head.chance[name]:.2f})" if name in CHANCE else ""))
        rows.append(Row(cells, style="yardstick" if cost and cost.within_chance else ""))
    return html.table(columns, rows, label=f"What each head does, looking {way.value}", words=(1,), named=0)


SHARES_ARE = (
    "Shares of the attention, averaged over the text; in brackets what a head would have that looks at everything alike. A head"
    f" is named after what it does most beyond chance: at least {MOSTLY:.0%} of its attention, or partly so, from {PARTLY:.0%}"
    " on; on another text it may get another name."
)
EXPLAINED = {
    Way.BACK: "Induction: what followed earlier occurrences of the token just read.",
    Way.AROUND: "Same: other places of the same token.",
    Way.ACROSS: "As far along: the three places of the source about as far along as the translation is. Same: tokens of the"
    " source that are the very token that is written.",
}


def _checked(way: Way, difference: float) -> str:
    return (
        f'<p class="soft">{SHARES_ARE} {EXPLAINED[way]} The weights are'
        f" written out by softmax(QKᵀ/√d); the fast kernel's own differ by at most {difference:.1e}.</p>\n"
    )
