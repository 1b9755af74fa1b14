"""Terminal output of inspections of a model on a text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.measure.near_copies import how_much
from lmlab.page.numbers import bits, counted, plus_minus
from lmlab_derive.shared.console import result_console, say
from lmlab_derive.shared.plain import visible
from lmlab_derive.shared.table import Column, print_each, print_table

if TYPE_CHECKING:
    from lmlab.inside.attention import Attention
    from lmlab.inside.explanation import Explanation
    from lmlab.inside.gates import Gates
    from lmlab.inside.heads_switched_off import HeadCost, HeadCosts
    from lmlab.inside.matrix import AttentionMatrix
    from lmlab.inside.search import SearchTree, Way
    from lmlab.inside.surprisal import Reading, TokenRead

MOST_ROWS = 60  # of a table; the page shows the rest


def print_explanation(found: Explanation, page: Path | None) -> None:
    """Print one row per token for one model; for several, one row per span that is whole tokens for all of them."""
    console = result_console()
    if len(found.readings) == 1:
        tokens = found.readings[0].tokens
        ordered = tokens[0].order is not None
        columns = [Column("token", left=True), Column("bits"), Column("expected bits", expendable=2), Column("place")]
        columns += [Column("n-gram", expendable=1)] if ordered else []
        columns += [Column("likeliest here", left=True, expendable=3)]
        print_table(console, columns, [_row(token, ordered) for token in tokens[:MOST_ROWS]])
        length = len(tokens)
    else:
        names = [Column(_name(reading)) for reading in found.readings]
        rows = [[seen(span.text), *(bits(b, 2) for b in span.bits)] for span in found.spans[:MOST_ROWS]]
        print_table(console, [Column("text", left=True), *names], rows)
        length = len(found.spans)
    if length > MOST_ROWS:
        say(console, f"… and {length - MOST_ROWS:,} more rows", style="dim")
    for reading in found.readings:
        whole = f"{bits(reading.bits, 2)} bits in all, {bits(reading.bits_per_byte)} a byte"
        say(console, f"{_name(reading)}: {whole}; {counted(len(reading.tokens), 'token')} ({reading.tokenizer})")
        if reading.held_out == "not held out":
            say(console, f"  NOT HELD OUT: the model was trained on {how_much(reading.copied)}", style="bold red")
        if reading.note:
            say(console, f"  {reading.note}", style="dim")
    _print_page(page)


def print_attention(found: Attention, page: Path | None) -> None:
    """Print one row per attention head, with its likely role and the attention shares that support it, grouped by direction."""
    from lmlab.inside.attention_section import TITLES, by_way

    console = result_console()
    for way, layers in by_way(found).items():
        heads = [head for layer in layers for head in layer.heads]
        titles = TITLES[way]
        columns = [Column("head"), Column("seems to look at", left=True), Column(titles["distance"]), Column("entropy")]
        columns += [Column(titles[name], expendable=1) for name in heads[0].shares]
        rows = [
            [
                head.name,
                head.seems,
                f"{head.distance:.1f}",
                f"{head.entropy:.2f}",
                *(f"{share:.2f}" for share in head.shares.values()),
            ]
            for head in heads
        ]
        print_table(console, columns, rows)
    if found.language is not None:
        say(console, f"{found.language}: {''.join(found.tokens[:-1])}")
    say(console, f"shares of the attention over {counted(len(found.tokens), 'token')}; {found.policy}")
    say(console, f"written out, the weights differ from the fast kernel's by at most {found.difference:.1e}")
    _print_page(page)


def print_gates(found: Gates, page: Path | None) -> None:
    """Print statistics of the gates, and the units that correlate with a feature of the text."""
    from lmlab.inside.gates_section import telling_units

    console = result_console()
    rows = [
        [layer.name, gate.name, f"{gate.mean:.2f}", f"{gate.open:.0%}", f"{gate.closed:.0%}"]
        for layer in found.layers
        for gate in layer.gates
    ]
    names = [Column("layer", left=True), Column("gate", left=True)]
    print_table(console, [*names, *map(Column, ("mean", "nearly open", "nearly closed"))], rows)
    units = [
        [f"{unit.layer}.{unit.unit}", unit.follows, f"{unit.correlation:+.2f}", f"{unit.keeps:,.1f}"]
        for unit in telling_units(found)
    ]
    if units:
        console.print()
        columns = [Column("unit"), Column("follows", left=True), Column("correlation"), Column("keeps, tokens")]
        print_table(console, columns, units)
    apart = f"states made from these gates differ from the fast kernel's by at most {found.difference:.1e}"
    say(console, f"over {counted(len(found.tokens), 'token')}; {apart}")
    _print_page(page)


def print_heads(found: HeadCosts) -> None:
    """Print the heads by the cost of their ablation, largest first."""
    console = result_console()
    columns: list[tuple[Column, Callable[[HeadCost], str]]] = [
        (Column("head"), lambda one: one.head.name),
        (Column(f"{found.unit} more without it"), lambda one: f"{one.cost:+.4f}"),
        (Column("95%"), lambda one: plus_minus(one.error, 4).strip()),
        (Column("seems to look at", left=True), lambda one: one.head.seems),
        (Column("tokens off", expendable=1), lambda one: f"{one.head.distance:.1f}"),
        (Column("entropy", expendable=1), lambda one: f"{one.head.entropy:.2f}"),
    ]
    print_each(console, sorted(found.heads, key=lambda one: -one.cost), columns)
    say(console, f"{bits(found.bits)} {found.unit} with all of them, over {found.over}")


def print_search(found: SearchTree) -> None:
    """Print the result of each search, and where greedy search lost."""
    console = result_console()
    names: dict[str, str] = {"beam": f"beam of {found.beam}", "best": "likeliest of all"}
    columns: list[tuple[Column, Callable[[Way], str]]] = [
        (Column("search", left=True), lambda way: names.get(way.method, way.method)),
        (Column("found", left=True), lambda way: seen(way.text)),
        (Column("probability"), lambda way: f"{100 * way.probability:.3g}%"),
        (Column("bits"), lambda way: f"{way.bits:.2f}"),
        (Column("predictions asked for"), lambda way: f"{way.asked:,}"),
    ]
    print_each(console, found.ways, columns)
    say(console, found.lost or "Greedy search found the likeliest continuation.")
    if not found.best:
        say(console, "There are too many beginnings to follow to know the likeliest of all; ask for fewer tokens.")


def print_matrix(found: AttentionMatrix) -> None:
    """Print the size of the matrix and the parameter counts."""
    console = result_console()
    count, width = len(found.inputs), found.width
    say(console, f"{count} inputs of width {width}: as one matrix, {count * width:,} × {count * width:,}")
    say(console, f"  a dense layer of that size has {found.dense_parameters:,} parameters")
    for what, number in found.parameters.items():
        say(console, f"  {what} of head {found.layer}.{found.head}: {number:,}, for any number of inputs")
    say(console, f"  {found.zero:.0%} of the entries are zero because nothing looks ahead")
    say(console, f"  the matrix times the inputs differs from the model's own kernel by at most {found.difference:.1e}")


def _row(token: TokenRead, ordered: bool) -> list[str]:
    favourites = "  ".join(f"{seen(piece)} {p:.2f}" for piece, p in token.favourites)
    order = [str(token.order)] if ordered else []
    return [seen(token.text), bits(token.bits, 2), f"{token.entropy:.2f}", str(token.rank), *order, favourites]


def _print_page(page: Path | None) -> None:
    if page is not None:
        print(f"Look around in {page}")


def _name(reading: Reading) -> str:
    return reading.run.rstrip("/").rpartition("/")[2]


def seen(text: str) -> str:
    """Return a token with visible white space and without control characters."""
    return visible(text.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥")) or "(joined)"
