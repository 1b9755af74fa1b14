"""The text coloured by surprise, one box a model; hovering shows what each model expected at that place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lmlab.inside.explanation import Explanation
from lmlab.inside.sections import Section
from lmlab.inside.surprisal import Reading, TokenRead
from lmlab.measure.near_copies import how_much
from lmlab.page import numbers
from lmlab.page.figures import COLOURS, drawing, series_colour, svg
from lmlab.page.heat import heat, scale
from lmlab_derive.shared import html
from lmlab_derive.shared.html import Row, escape

PIECE = 250  # tokens, at least, of a piece of a long text
LONG = 1500  # tokens above which a box scrolls by itself
SMOOTH = 32  # tokens on each side of a running mean


def opening(found: Explanation) -> str:
    """The heading, and who needs how much."""
    best = min(found.readings, key=lambda reading: reading.bits)
    size = len(found.text.encode())
    facts = {"text": f"{found.name}: {numbers.counted(size, 'byte')}"}
    for reading in found.readings:
        facts[f"{name_of(reading, found.readings)} ({reading.model})"] = (
            f"{numbers.bits(reading.bits_per_byte)} bits per byte, {numbers.bits(reading.bits, 1)} in all,"
            f" {numbers.counted(len(reading.tokens), 'token')} ({reading.tokenizer})"
        )
    lead = (
        f"{escape(name_of(best, found.readings))} needs {numbers.bits(best.bits_per_byte, 3)} bits for each byte of it"
    )
    lead += f", the fewest of {len(found.readings)}." if len(found.readings) > 1 else f": {_sure(best)}."
    notes = "".join(
        f'<p class="soft">{escape(name_of(reading, found.readings))}: {escape(reading.note)}.</p>'
        for reading in found.readings
        if reading.note
    )
    seen = [
        f"{name_of(reading, found.readings)} learned from {how_much(reading.copied)}"
        for reading in found.readings
        if reading.held_out == "not held out"
    ]
    if seen:
        notes = (
            f'<p class="bad"><strong>Not held out:</strong> {escape("; ".join(seen))}. Such numbers show what was'
            f" remembered.</p>\n{notes}"
        )
    return f'<h1>A text, as models read it</h1>\n<p class="lead">{lead}</p>\n{html.facts(facts)}{notes}'


def _sure(reading: Reading) -> str:
    """Whether the model knew how hard it was."""
    entropy = math.fsum(token.entropy for token in reading.tokens) / len(reading.tokens)
    paid = reading.bits / len(reading.tokens)
    return f"{paid:.2f} a token, where it expected to pay {entropy:.2f}"


def name_of(reading: Reading, among: Sequence[Reading]) -> str:
    """The name of the run's folder; with the folder above it where two are called alike."""
    parts = [other.run.rstrip("/").split("/") for other in among]
    mine = reading.run.rstrip("/").split("/")
    alike = sum(other[-1] == mine[-1] for other in parts) > 1
    return "/".join(mine[-2:] if alike else mine[-1:])


def section(found: Explanation) -> Section:
    """The section of the page."""
    names = [name_of(reading, found.readings) for reading in found.readings]
    boxes = [_box(index, reading, names[index]) for index, reading in enumerate(found.readings)]
    modes = ["surprise", "what it expected to pay", "more or less than expected"]
    modes += [f"against {name}" for name in names] if len(names) > 1 else []
    modes += ["n-gram that answered"] if any(_is_ordered(reading) for reading in found.readings) else []
    choices = "".join(
        f'<label><input type="radio" name="colour" value="{value}"{" checked" if value == 0 else ""}>'
        f" {escape(mode)}</label>"
        for value, mode in enumerate(modes)
    )
    kinds = ["bits", "entropy", "excess", *[f"against:{i}" for i in range(len(names)) if len(names) > 1], "order"]
    body = (
        '<h2 id="surprise">Its surprise, token by token</h2>\n'
        "<p>A token is coloured by the bits it cost. Point at one, or walk over them with the arrow keys, to see what"
        " each model expected there. A blue stroke stands where a new window of context begins.</p>\n"
        f'<fieldset class="modes"><legend>Colour by</legend>{choices}</fieldset>\n{scale()}'
        f"{html.cards(boxes) if len(boxes) > 1 else boxes[0]}"
        f"{html.figure(_along(found, names), _caption(found))}"
        + "".join(_orders(reading, name) for reading, name in zip(found.readings, names, strict=True))
    )
    data = {"models": [_data(r, n) for r, n in zip(found.readings, names, strict=True)], "kinds": kinds}
    title = "Its surprise, token by token"
    return Section(html=body, title=title, data={"surprisal": data}, scripts=("shared.js", "surprisal.js"))


def _box(index: int, reading: Reading, name: str) -> str:
    starts = set(reading.windows if reading.moves > 1 else ())
    tokens = [_token(token, place in starts) for place, token in enumerate(reading.tokens)]
    style, words = "tokens", "".join(tokens)
    if len(tokens) > LONG:
        style, words = "tokens long", _in_pieces(tokens, [token.text for token in reading.tokens])
    text = (
        f'<p class="{style}" data-of="{index}" tabindex="0" role="group"'
        f' aria-label="The text under {escape(name)}; arrow keys walk over the tokens">{words}</p>'
    )
    dot = f'<i class="dot" style="background:var(--series-{index % COLOURS})"></i>'
    return html.card(f"{dot}{escape(name)}", text, beside=f"{numbers.bits(reading.bits_per_byte, 3)} bits per byte")


def _in_pieces(tokens: Sequence[str], texts: Sequence[str]) -> str:
    """In pieces that end with a line, if possible: a browser lays out only those that can be seen."""
    pieces, start = [], 0
    for end in range(1, len(tokens) + 1):
        if end == len(tokens) or (end - start >= PIECE and texts[end - 1].endswith("\n")):
            pieces.append(f'<span class="piece">{"".join(tokens[start:end])}</span>')
            start = end
    return "".join(pieces)


def _token(token: TokenRead, begins_window: bool) -> str:
    mark = " window" if begins_window else ""
    return f'<b class="s{heat(token.bits)}{mark}">{escape(token.text)}</b>'


def _data(reading: Reading, name: str) -> dict[str, Any]:
    """Columns: a table a token would hold every name thousands of times."""
    pieces: dict[str, int] = {}
    favourites = [
        [[pieces.setdefault(piece, len(pieces)), round(p, 4)] for piece, p in token.favourites]
        for token in reading.tokens
    ]
    return {
        "name": name,
        "bits": [round(t.bits, 3) if math.isfinite(t.bits) else None for t in reading.tokens],
        "entropy": [round(t.entropy, 3) for t in reading.tokens],
        "rank": [t.rank for t in reading.tokens],
        "order": [t.order for t in reading.tokens] if _is_ordered(reading) else None,
        "ends": [t.end for t in reading.tokens],
        "favourites": favourites,
        "pieces": list(pieces),
    }


def _is_ordered(reading: Reading) -> bool:
    return reading.tokens[0].order is not None


def _caption(found: Explanation) -> str:
    if len(found.readings) == 1:
        return "Bits paid along the text, and bits the model expected to pay: where the first is above, it was fooled."
    return (
        "Bits saved so far over the first model, along the text: a rising line is a model that is doing better there."
    )


def _along(found: Explanation, names: Sequence[str]) -> str:
    """One model: its bits and its entropy, smoothed. Several: what each has saved so far over the first."""
    with drawing(6.4, 2.7) as (figure, axes):
        if len(found.readings) == 1:
            (reading,) = found.readings
            ends = [token.end for token in reading.tokens]
            paid, expected = (np.array(x) for x in zip(*((t.bits, t.entropy) for t in reading.tokens), strict=True))
            axes.plot(ends, _smooth(paid), color=series_colour(1), linewidth=1.6, label="paid")
            axes.plot(ends, _smooth(expected), color=series_colour(0), linewidth=1.6, label="expected")
            axes.set_ylabel("bits a token")
        else:
            ends = [span.end for span in found.spans]
            bits_SR = np.cumsum(
                [[b if math.isfinite(b) else np.nan for b in span.bits] for span in found.spans], axis=0
            )
            for index, name in enumerate(names):
                saved = bits_SR[:, 0] - bits_SR[:, index]
                axes.plot(ends, saved, color=series_colour(index), linewidth=1.6, label=name)
            axes.set_ylabel(f"bits saved over {names[0]}")
        axes.set_xlabel("byte of the text")
        axes.grid(axis="y")
        figure.legend(loc="outside lower left", ncols=4, fontsize=8)
        return svg(figure, "Bits along the text")


def _smooth(values: np.ndarray) -> np.ndarray:
    """Running means, over fewer tokens at the ends; what is infinite is left out."""
    known = np.isfinite(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    places = np.arange(len(values))
    low, high = np.maximum(places - SMOOTH, 0), np.minimum(places + SMOOTH + 1, len(values))
    return (sums[high] - sums[low]) / np.maximum(counts[high] - counts[low], 1)


def _orders(reading: Reading, name: str) -> str:
    """How often an n-gram of each length answered, and what tokens cost then."""
    if not _is_ordered(reading):
        return ""
    by_order: dict[int, list[float]] = {}
    for token in reading.tokens:
        assert token.order is not None
        by_order.setdefault(token.order, []).append(token.bits)
    rows = [
        Row(
            [str(n), f"{len(bits):,}", f"{len(bits) / len(reading.tokens):.0%}", numbers.bits(sum(bits) / len(bits), 2)]
        )
        for n, bits in sorted(by_order.items(), reverse=True)
    ]
    columns = ["n", "tokens", "share", "bits a token"]
    return (
        f"<h3>Which n-gram answered in {escape(name)}</h3>\n<p>The longest n-gram that ends with the token and was counted"
        " in training. Where only a short one is known, the model has backed off, and the token is dear.</p>\n"
        + html.table(columns, rows, label=f"Which n-gram answered in {name}", words=(), named=0)
    )
