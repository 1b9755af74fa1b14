"""Attention as a page shows it: all heads small, one large as a map, as lines and over the text, drawn when looked at.

The weights travel as bytes: 255 times the root of each, so that small ones stay apart, packed by zlib, a string a head.
"""

from __future__ import annotations

import base64
import zlib

import numpy as np

from lmlab.inside.attention import BEGIN, Attention, Head
from lmlab.inside.sections import Section
from lmlab.page import html
from lmlab.page.html import Row, escape

CHANCE = ("same", "induction")  # shares that mean little without what chance would give


def section(found: Attention, index: int, name: str) -> Section:
    """The section of one model; index: among all of the page. name: of the run."""
    key = f"attention-{index}"
    layers = [
        {
            "name": layer.name,
            "first": layer.first_T.tolist(),
            "begins": layer.begins_T.tolist(),
            "reach": layer.weights_HTC.shape[2],
            "heads": [packed(weights_TC) for weights_TC in layer.weights_HTC],
        }
        for layer in found.layers
    ]
    data = {"tokens": list(found.tokens), "begin": BEGIN, "layers": layers}
    return Section(html=_html(found, key, name), data={key: data}, scripts=("shared.js", "attention.js"))


def packed(weights: np.ndarray) -> str:
    """Numbers from 0 to 1 as bytes, by their roots."""
    return packed_bytes(np.rint(255 * np.sqrt(weights)).astype(np.uint8))


def packed_bytes(values: np.ndarray) -> str:
    """Bytes as base64 of zlib, which a page unpacks when it needs them."""
    return base64.b64encode(zlib.compress(values.tobytes(), 6)).decode()


def _html(found: Attention, key: str, name: str) -> str:
    several = len(found.heads) > 1
    rows = []
    for number, layer in enumerate(found.layers):
        boxes = "".join(_thumb(head, number) for head in layer.heads)
        rows.append(f'<div class="heads" role="group" aria-label="{escape(layer.name)}">{boxes}</div>')
    small = f'<div class="layers">{"".join(rows)}</div>' if several else ""
    how = "Choose a head. " if several else ""
    last = max(0, len(found.tokens) - 1)
    return (
        f'<section class="attention" data-of="{key}"><h2>What {escape(name)} looks at</h2>\n'
        f"<p>Each row of a map is the moment after one token was read: how that token's attention is shared out over"
        f" what came before, {BEGIN} being the beginning of the window. {how}Point at a token, a row or a line; the arrow"
        " keys walk, and the slider moves through the text.</p>\n"
        f'{small}<p class="where"><label>from token <input type="range" min="0" max="{last}" value="0"'
        f' aria-label="First token shown, {escape(name)}"></label>'
        ' <output></output></p>\n<p class="said" role="status"></p>\n'
        f'<p class="tokens strip" tabindex="0" role="group" aria-label="Text under {escape(name)}; arrow keys walk"></p>\n'
        '<div class="large"><canvas class="map" role="img" aria-label="Heat map of one head"></canvas>'
        '<canvas class="lines" role="img" aria-label="Lines from each token to what it looked at"></canvas></div>\n'
        f"{heads_table(found)}{_checked(found)}</section>"
    )


def _thumb(head: Head, layer: int) -> str:
    pressed = "true" if (layer, head.head) == (0, 1) else "false"
    return (
        f'<button type="button" aria-pressed="{pressed}" data-layer="{layer}" data-head="{head.head - 1}">'
        f'<canvas width="96" height="96" aria-hidden="true"></canvas><b>{head.layer}.{head.head}</b> {escape(head.seems)}'
        "</button>"
    )


def heads_table(found: Attention, costs: dict[tuple[int, int], float] | None = None) -> str:
    """Summaries of all heads. costs: bits per byte that a text costs more without a head, by (layer, head)."""
    columns = ["head", "seems to look at", "tokens back", "entropy", "just read", "before it", "beginning", "same"]
    columns += ["chance", "induction", "chance"] + (["cost of its loss"] if costs else [])
    rows = []
    for head in found.heads:
        chances = [f"{head.chance[name]:.2f}" for name in CHANCE]
        cells = [f"{head.layer}.{head.head}", escape(head.seems), f"{head.distance:.1f}", f"{head.entropy:.2f} bits"]
        cells += [f"{share:.2f}" for share in (head.current, head.previous, head.beginning, head.same)]
        cells += [chances[0], f"{head.induction:.2f}", chances[1]]
        cells += [f"{costs[head.layer, head.head]:+.4f}"] if costs else []
        rows.append(Row(cells))
    return html.table(columns, rows, label="What each head does", words=(1,), named=0)


def _checked(found: Attention) -> str:
    return (
        '<p class="soft">Shares of the attention, averaged over the text; chance is what a head would have that looks at'
        " everything alike. Induction: what followed earlier occurrences of the token just read. The weights are"
        f" written out by softmax(QKᵀ/√d); the fast kernel's own differ by at most {found.difference:.1e}.</p>\n"
    )
