"""Pictures that stand on a page or by themselves: coloured text, head maps, what heads cost, a tree of searches, a matrix."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from lmlab.inside.attention import BEGIN, Attention, Layer
from lmlab.inside.explanation import Explanation
from lmlab.inside.gates import Gates
from lmlab.inside.heads_switched_off import HeadCosts
from lmlab.inside.matrix import AttentionMatrix
from lmlab.inside.search import Node, SearchTree
from lmlab.layers.looking import Way
from lmlab.page.figures import INK, SOFT, drawing, panels, series_colour, svg
from lmlab.page.heat import heat
from lmlab_derive.shared.html import escape

SHOWN = 48  # tokens of a map
LABELLED = 22  # rows of a map up to which its tokens stand beside it
BLUES = LinearSegmentedColormap.from_list("blues", ["#ffffff", "#1f5fa0"])
SIGNED = LinearSegmentedColormap.from_list("signed", ["#c2521b", "#ffffff", "#1f5fa0"])
LETTER, ROW, WIDE = 7.3, 17.0, 88  # pixels of a letter and a line of text, and letters of a line
COLUMN, LINE = 150, 22  # pixels of the tree, from token to token and from branch to branch
WAYS = {"best": "--good", "greedy": "--series-1", "beam": "--series-0"}  # their colours; the first that fits counts


def seen(text: str) -> str:
    """White space seen."""
    return text.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥") or "∅"


def square(layer: Layer, head: int) -> np.ndarray:
    """Weights of the first rows and columns; where there is a beginning before all, column 0 is it."""
    before = layer.way is Way.BACK
    rows, columns = min(SHOWN, len(layer.asks)), min(SHOWN, len(layer.sees) + before)
    image = np.zeros((rows, columns))
    for t in range(rows):
        for c, weight in enumerate(layer.weights_HTC[head, t]):
            place = int(layer.first_T[t]) + c
            column = 0 if place <= layer.begins_T[t] else place + before
            if 0 <= column < columns:
                image[t, column] += float(weight)
    return image


def heads_map(found: Attention) -> str:
    """All heads over the beginning of the text, a small map each; where the text is short, with its words.

    Of a translator those that look at the source: its alignments.
    """
    layers = [layer for layer in found.layers if found.language is None or layer.way is Way.ACROSS]
    columns = max(len(layer.heads) for layer in layers)
    side, short = (2.3, True) if max(len(layer.asks) for layer in layers) <= LABELLED else (1.5, False)
    with panels(side * columns + 0.3, (side + 0.25) * len(layers), len(layers), columns) as (figure, axes):
        for number, layer in enumerate(layers):
            sees = ((BEGIN,) if layer.way is Way.BACK else ()) + layer.sees
            for head in layer.heads:
                place = axes[number * columns + head.head - 1]
                image = square(layer, head.head - 1)
                place.imshow(np.sqrt(image), cmap=BLUES, vmin=0, vmax=1, aspect="auto")
                place.set_title(f"{head.name} {head.seems}"[: 48 if short else 26], fontsize=6.5, color=INK)
                place.set_xticks([])
                place.set_yticks([])
                if short:
                    place.set_xticks(range(image.shape[1]), [seen(t)[:9] for t in sees[: image.shape[1]]], rotation=90)
                    place.set_yticks(range(len(image)), [seen(t)[:9] for t in layer.asks[: len(image)]])
                    place.tick_params(labelsize=5, length=0)
            for place in axes[number * columns + len(layer.heads) : (number + 1) * columns]:
                place.set_visible(False)
        return svg(figure, f"What the heads of {found.model} look at")


def unit_map(found: Gates) -> str:
    """The unit that follows something most closely, over the text it read: one line of text a row."""
    pairs = [(layer, unit) for layer in found.layers for unit in layer.units]
    layer, unit = max(pairs, key=lambda pair: abs(pair[1].correlation))
    name, values_TH = list(layer.values.items())[-1]
    lines: list[list[float]] = [[]]
    texts = [""]
    for token, value in zip(found.tokens, values_TH[:, unit.unit - 1].tolist(), strict=True):
        lines[-1].append(value)
        texts[-1] += token.replace("\n", "")
        if "\n" in token:
            lines.append([])
            texts.append("")
    kept = [(line, text) for line, text in zip(lines, texts, strict=True) if len(line) > 1][:16]
    image = np.full((len(kept), max(len(line) for line, _ in kept)), np.nan)
    for row, (line, _) in enumerate(kept):
        image[row, : len(line)] = line
    with drawing(7.2, 0.28 * len(kept) + 0.9) as (figure, axes):
        axes.imshow(image, cmap=SIGNED, vmin=-1, vmax=1, aspect="auto")
        axes.set_yticks(range(len(kept)), [text[:22] for _, text in kept], fontsize=7)
        axes.set_xlabel("token of the line")
        follows = f"{unit.follows or 'nothing plain'} ({unit.correlation:+.2f})"
        axes.set_title(f"{name} of unit {unit.layer}.{unit.unit} follows {follows}", fontsize=9)
        return svg(figure, "One unit over the text")


def costs_of_heads(found: HeadCosts) -> str:
    """What losing each head costs, dearest first."""
    heads = sorted(found.heads, key=lambda one: -one.cost)
    with drawing(6.4, 0.24 * len(heads) + 0.8) as (figure, axes):
        for place, one in enumerate(heads):
            axes.barh(place, one.cost, color=series_colour(0), height=0.6, alpha=0.35 if one.within_chance else 1.0)
            if np.isfinite(one.error):
                axes.plot([one.cost - one.error, one.cost + one.error], [place, place], color=INK, linewidth=1)
        names = [f"{one.head.name} {one.head.seems}{' (chance)' * one.within_chance}" for one in heads]
        axes.set_yticks(range(len(heads)), names, fontsize=8)
        axes.set_ylim(len(heads) - 0.4, -0.6)
        axes.axvline(0, color=SOFT, linewidth=0.8)
        axes.set_xlabel(f"more {found.unit} without the head")
        axes.grid(axis="x")
        return svg(figure, "What each head is worth")


def matrices(found: AttentionMatrix) -> str:
    """A, W, the matrix of blocks a_nm W, and a dense one of that size."""
    whole = shrunk(found.matrix)
    noise = np.random.default_rng(0).normal(size=whole.shape) * np.abs(whole).max() / 3
    weights, value = found.weights_NN, found.value_DD
    count, width = len(found.inputs), found.width
    pictures = [
        (f"weights A, {count}×{count}", weights, BLUES, 0.0, 1.0),
        (f"W = W°Wᵛ, {width}×{width}", value, SIGNED, -np.abs(value).max(), np.abs(value).max()),
        (f"A ⊗ W, {count * width:,}×{count * width:,}", whole, SIGNED, -np.abs(whole).max(), np.abs(whole).max()),
        (f"dense: {found.dense_parameters:,} numbers", noise, SIGNED, -np.abs(whole).max(), np.abs(whole).max()),
    ]
    with panels(7.6, 7.2, 2, 2) as (figure, axes):
        for place, (title, image, colours, low, high) in zip(axes, pictures, strict=True):
            place.imshow(image, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
            place.set_title(title, fontsize=9)
            place.set_xticks([])
            place.set_yticks([])
        labels = [seen(text)[:6] for text in found.inputs]
        axes[0].set_xticks(range(count), labels, fontsize=6, rotation=90)
        axes[0].set_yticks(range(count), labels, fontsize=6)
        return svg(figure, "Self-attention as one matrix")


def shrunk(matrix: np.ndarray, most: int = 224) -> np.ndarray:
    """No more than so many rows: of each little square the entry that is largest in size."""
    step = -(-len(matrix) // most)
    size = len(matrix) // step
    squares = (
        matrix[: size * step, : size * step].reshape(size, step, size, step).swapaxes(1, 2).reshape(size, size, -1)
    )
    largest: np.ndarray = np.take_along_axis(squares, np.abs(squares).argmax(-1)[..., None], -1)[..., 0]
    return largest


def tree(found: SearchTree) -> str:
    """The tree from left to right; a branch is as thick as it is likely, in the colour of the search that went there."""
    drawn: list[str] = []
    row = 0

    def place(node: Node, depth: int) -> float:
        """Draw a node and what follows it; its height."""
        nonlocal row
        if node.children:
            heights = [place(child, depth + 1) for child in node.children]
            y = sum(heights) / len(heights)
        else:
            y = (row + 0.5) * LINE
            row += 1
            heights = []
        x = depth * COLUMN
        for child, height in zip(node.children, heights, strict=True):
            drawn.append(_branch(x + 74, y, x + COLUMN, height, child))
        drawn.append(_label(node, x, y, whole=depth == found.tokens))
        return y

    prompt = found.prompt if len(found.prompt) <= 8 else f"…{found.prompt[-7:]}"  # there is room for eight characters
    root = Node(token=prompt or "⊢", probability=1.0, total=1.0, by=tuple(WAYS), children=found.children)
    place(root, 0)
    width, height = (found.tokens + 1) * COLUMN + 60, max(row, 1) * LINE + 8
    spaces = 'xmlns="http://www.w3.org/2000/svg"'
    name = f"Tree of continuations of {found.prompt!r}"
    return (
        f'<svg class="figure" viewBox="0 0 {width} {height}" style="min-width:{0.75 * width:.0f}px;max-width:none"'
        f' role="img" aria-label="{escape(name)}" {spaces}>{"".join(drawn)}</svg>'
    )


def _colour(node: Node) -> str:
    return next((f"var({colour})" for name, colour in WAYS.items() if name in node.by), "var(--soft)")


def _branch(x0: float, y0: float, x1: float, y1: float, node: Node) -> str:
    middle = (x0 + x1) / 2
    dash = "" if node.by else ' stroke-dasharray="3 3"'
    return (
        f'<path d="M{x0:.0f} {y0:.1f} C{middle:.0f} {y0:.1f} {middle:.0f} {y1:.1f} {x1:.0f} {y1:.1f}" fill="none"'
        f' stroke="{_colour(node)}" stroke-width="{0.8 + 5 * node.probability:.1f}"{dash}/>'
    )


def _label(node: Node, x: float, y: float, *, whole: bool) -> str:
    bold = ' font-weight="700"' if "best" in node.by or "greedy" in node.by else ""
    likely = f"{node.probability:.0%}" if node.probability >= 0.005 else "&lt;1%"
    total = f' <tspan fill="var(--soft)">{likely}</tspan>' if node.total < 1 else ""
    of_all = f"= {100 * node.total:.2g}%" if whole else "dropped"
    end = f' <tspan fill="{_colour(node)}">{of_all}</tspan>' if not node.children and node.by else ""
    colour = "var(--ink)" if node.by else "var(--soft)"
    return (
        f'<text x="{x + 4:.0f}" y="{y + 4:.1f}" font-size="12" fill="{colour}"{bold}>{escape(seen(node.token)[:9])}'
        f"{total}{end}</text>"
    )


def surprise(found: Explanation) -> str:
    """The text under each model, coloured by the bits of its tokens."""
    drawn, y = [], 0.0
    for reading in found.readings:
        name = reading.run.rstrip("/").rpartition("/")[2]
        head = f"{name}: {reading.bits_per_byte:.3f} bits per byte"
        drawn.append(
            f'<text x="0" y="{y + 12:.0f}" font-size="12" font-weight="700" fill="var(--ink)">{escape(head)}</text>'
        )
        y, column = y + 1.3 * ROW, 0
        for token in reading.tokens:
            for piece in token.text.splitlines(keepends=True):
                text = piece.rstrip("\n")
                if column + len(text) > WIDE:
                    y, column = y + ROW, 0
                drawn.append(_token(text, column * LETTER, y, heat(token.bits)))
                column += len(text)
                if piece.endswith("\n"):
                    y, column = y + ROW, 0
        y += 2 * ROW
    label = f"{found.name} under {len(found.readings)} models, coloured by surprise"
    size = f"0 0 {WIDE * LETTER:.0f} {y:.0f}"
    return (
        f'<svg class="figure" viewBox="{size}" role="img" aria-label="{escape(label)}"'
        f' xmlns="http://www.w3.org/2000/svg">{"".join(drawn)}</svg>'
    )


def _token(text: str, x: float, y: float, level: int) -> str:
    if not text:
        return ""
    wide = LETTER * len(text)
    opacity = (0.0, 0.06, 0.12, 0.18, 0.25, 0.32, 0.4, 0.48)[level]
    box = f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide - 0.6:.1f}" height="15" rx="2" fill="#d64520" opacity="{opacity}"/>'
    return (box if level else "") + (
        f'<text x="{x:.1f}" y="{y + 11.5:.1f}" font-size="12" xml:space="preserve" textLength="{wide:.1f}"'
        f' style="font-family:monospace !important" fill="var(--ink)">{escape(text)}</text>'
    )
