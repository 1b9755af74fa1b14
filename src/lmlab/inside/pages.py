"""The pages of heads that are switched off, of searches, and of attention as one matrix."""

from __future__ import annotations

from collections.abc import Callable

from lmlab.inside import figures
from lmlab.inside.attention_section import heads_tables
from lmlab.inside.heads_switched_off import HeadCosts
from lmlab.inside.matrix import AttentionMatrix
from lmlab.inside.search import SearchTree, Way
from lmlab.inside.sections import page
from lmlab_derive.shared import html
from lmlab_derive.shared.html import Row, escape

UNDER_MATRICES = (
    "Above: the weights of this text, and what is learned. Below: what they make together, and a layer of that size in which"
    " every entry is learned by itself."
)
UNITS = {
    "bits per masked token": " Bits per masked token are no bits per byte: a token is longer than a byte, and its neighbours on"
    " both sides are seen. They cannot be compared with those of a model that reads from left to right.",
    "bits per byte of the target": " Bits are per byte of the translation, its source being known.",
}  # what a unit may be mistaken for
NAMES = {"greedy": "greedy: the likeliest token, each time", "beam": "beam", "best": "the likeliest of all"}


def heads_page(found: HeadCosts, name: str, command: str) -> str:
    """What each head is worth, beside what it does. command: what makes the page."""
    dearest = max(found.heads, key=lambda one: one.cost)
    free = sum(one.within_chance for one in found.heads)
    lead = (
        f"Without head {dearest.head.name} ({escape(dearest.head.seems)}) the text costs {dearest.cost:.3f} {found.unit}"
        f" more than {found.bits:.3f}. {free} of {len(found.heads)} heads can be switched off, one at a time, for no more"
        " than chance would explain."
    )
    costs = {one.head.name: one for one in found.heads}
    caption = f"More {found.unit} without each head, dearest first."
    caption += " Pale: no more than chance would explain." if free else ""
    picture = html.figure(figures.costs_of_heads(found), caption)
    body = (
        f'<h1>What the heads of {escape(name)} are worth</h1>\n<p class="lead">{lead}</p>\n'
        f"<p>Each head was switched off alone: what it found was not added to the stream. The text,"
        f" {found.over}, was then scored again. Lines are 95% intervals. {_named(found)}{UNITS.get(found.unit, '')}</p>\n"
        f'<div class="wide">{picture}</div>'
        f"<h2>Beside what each does</h2>\n<p>The costs are {found.unit}, with half of their 95% intervals; in italics where"
        f" chance would explain them. What each head does is told of {found.told}; on another text, such as that of a page of"
        f" attention, it may look elsewhere.</p>\n{heads_tables(found.attention, costs)}"
    )
    return page(f"What the heads of {name} are worth", body, [], command)


def _named(found: HeadCosts) -> str:
    if found.attention.language is None:
        return "Head 2.1 is the first of the second block."
    return (
        "Encoder 2.1 is the first head of the encoder's second block, which reads the source; of each block of the decoder,"
        " the heads called decoder look at what is written already, and those called alignment at the source."
    )


def search_page(found: SearchTree, name: str, command: str) -> str:
    """The tree, and what each search found. command: what makes the page."""
    verdict = found.lost or "Greedy search found the likeliest continuation here."
    unknown = "" if found.best else " There are too many beginnings to follow to know the likeliest of all."
    all_of_them = f"{found.vocabulary:,}<sup>{found.tokens}</sup>"
    columns: list[tuple[str, Callable[[Way], str]]] = [
        ("search", lambda way: escape(_way(way.method, found))),
        ("found", lambda way: f"<code>{escape(figures.seen(way.text))}</code>"),
        ("probability", lambda way: f"{100 * way.probability:.3g}%"),
        ("bits", lambda way: f"{way.bits:.2f}"),
        ("predictions asked for", lambda way: f"{way.asked:,}"),
    ]
    body = (
        f"<h1>How searches continue {escape(repr(found.prompt))}</h1>\n"
        f'<p class="lead">{escape(verdict)}{unknown}</p>\n'
        + html.table_of(found.ways, columns, label="Searches", words=(0, 1))
        + f"<p>{escape(name)}, {found.tokens} tokens. Trying all {all_of_them} continuations is not needed to know the best:"
        " more tokens only lower a probability, so what is already less likely than the best known is dropped, and at most"
        " 1/p beginnings can be as likely as p. That search is told what the beam found, and so drops most beginnings at once:"
        " it may need fewer predictions than the beam, which always goes on with its full number.</p>\n<h2>The tree</h2>\n"
        "<p>A branch is as thick as its token is likely; at an end stands the probability of the whole, or that the beam"
        " dropped it. Green: the likeliest of all. Orange: greedy. Blue: the beam. Dashed: nobody went there.</p>\n"
        + html.figure(
            figures.tree(found),
            f"Each token with its probability given what is before it ({found.beam} kept by the beam).",
        )
    )
    return page(f"How searches continue {found.prompt!r}", body, [], command)


def _way(method: str, found: SearchTree) -> str:
    return f"beam of {found.beam}" if method == "beam" else NAMES[method]


def matrix_page(found: AttentionMatrix, name: str, command: str) -> str:
    """The matrix beside a dense one, with what each is made of. command: what makes the page."""
    count, width = len(found.inputs), found.width
    rows = [
        Row([f"a dense layer, ({count}·{width})²", f"{found.dense_parameters:,}", "grows with the square of the text"]),
        *(Row([escape(what), f"{number:,}", "the same for every text"]) for what, number in found.parameters.items()),
    ]
    body = (
        f"<h1>Self-attention as one big matrix</h1>\n"
        f'<p class="lead">Head {found.layer}.{found.head} of {escape(name)} takes {count} vectors of {width} numbers to'
        f" {count} others. Written as one matrix it has {found.dense_parameters:,} entries, and"
        f" {sum(found.parameters.values()):,} numbers make all of them.</p>\n"
        "<p>With the weights a<sub>nm</sub> of this text, y<sub>n</sub> = Σ<sub>m</sub> a<sub>nm</sub> W x<sub>m</sub>: the"
        " block in row n and column m is the same matrix W every time, times one number. No block looks ahead, so"
        f" {found.zero:.0%} of the entries are zero; without a mask there would be none. And the weights depend on the"
        " text: for another one it is another matrix, which is why attention is not a linear layer.</p>\n"
        + f'<div class="wide">{html.figure(figures.matrices(found), UNDER_MATRICES)}</div>'
        + html.table(["made of", "numbers", "for other texts"], rows, label="Parameters", words=(0, 2))
        + f'<p class="soft">The matrix times the inputs differs from what the model\'s own kernel gave by at most'
        f" {found.difference:.1e}.</p>\n"
    )
    return page("Self-attention as one big matrix", body, [], command)
