"""I1 and I2: a table of four perplexities and two parameter counts, and what is read into it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import torch
from torch import nn

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, conditional, exact, judged, measured
from lmlab.coursework.lab import (
    Cost,
    Measured,
    attention,
    documentation,
    gpt,
    of_documentation,
    small_letters,
    stream,
    taught,
    tokenizer_of,
)
from lmlab.coursework.shared_tools import listed, parameters, row

claim = book("week2").claim

TABLE = {(3, 2): "8.32", (3, 4): "8.15", (5, 2): "10.63", (5, 4): "6.65"}  # (N, layers): perplexity
TWO_LAYERS, FOUR_LAYERS = 9_721_596, 14_980_860
Table = dict[tuple[int, int], str]


def in_one_order(costs: Sequence[Cost]) -> bool:
    """Whether perplexity a token and bits a byte put models in the same order."""
    places = range(len(costs))
    by_perplexity = sorted(places, key=lambda i: costs[i].perplexity)
    return by_perplexity == sorted(places, key=lambda i: costs[i].bits_per_byte)


@claim("I1a", orders=(1, 2, 3, 4, 5), vocabularies=(20, 300, 3000))
def _lower_is_better(t: SimpleNamespace) -> Outcome:
    held = documentation()[1]
    same = {order: of_documentation("byte", order).cost(held) for order in t.orders}
    mixed = {v: of_documentation(f"words:{v}").cost(held) for v in t.vocabularies}
    return conditional(
        measured(in_one_order([*same.values()])),
        measured(in_one_order([*mixed.values()])),
        f"One unit, n-grams over bytes: {listed(same, 'order {}: {}')}.",
        f"Different vocabularies: {listed(mixed, '{} words: {}')}.",
        because="There the model with the lower perplexity is the worse one.",
        precisely="For models over the same tokens of the same text, nothing dropped; across vocabularies compare "
        "bits a byte with unknown words paid for.",
    )


def changes(table: Table, along: str, fixed: Sequence[int]) -> dict[int, tuple[str, str, Fraction]]:
    """For each fixed N (along "layers") or number of layers (along "N"): both perplexities and their difference."""
    found = {}
    for at in fixed:
        first, last = ((at, 2), (at, 4)) if along == "layers" else ((3, at), (5, at))
        found[at] = (table[first], table[last], Fraction(table[last]) - Fraction(table[first]))
    return found


@claim("I1b", table=TABLE, quoted={3: ("8.32", "8.15"), 5: ("10.63", "6.65")})  # N: with 2 and with 4 layers
def _with_layers(t: SimpleNamespace) -> Outcome:
    found = changes(t.table, "layers", (3, 5))
    quoted = {n: (a, b) for n, (a, b, _) in found.items()}
    return judged(
        exact(all(change < 0 for *_, change in found.values()) and t.quoted == quoted),
        "; ".join(f"N = {n}: {a} to {b}, {float(change):+.2f}" for n, (a, b, change) in found.items()) + ".",
        note="(Four single runs; no repetition tells how much is chance.)",
    )


@claim("I1c", table=TABLE, quoted={4: ("8.15", "6.65"), 2: ("8.32", "10.63")})  # layers: with N = 3 and with N = 5
def _with_context(t: SimpleNamespace) -> Outcome:
    found = changes(t.table, "N", (4, 2))
    quoted = {layers: (a, b) for layers, (a, b, _) in found.items()}
    return judged(
        exact(found[4][2] < 0 < found[2][2] and t.quoted == quoted),
        "From N = 3 to N = 5: "
        + "; ".join(f"{a} to {b} with {n} layers, {float(change):+.2f}" for n, (a, b, change) in found.items())
        + ".",
        note="(The document's sentence says 'from N = 2 to N = 5'; the table has no N = 2.)",
    )


def with_more_context(steps: int) -> tuple[float, float, int]:
    """Held-out perplexity of a trained model with N = 3, that of the model of N = 5 with its weights, and their parameters.

    One coordinate of the embedding is kept free of words. The last place writes 1 into it; query and key read it. In the
    model of N = 5 the two earliest places write -10⁴ into it, so that their words get no weight at all.
    """
    train, held = (small_letters(part[:60_000]) for part in documentation())
    tokenizer = tokenizer_of("char", train)
    short, long = (attention(tokenizer, 16, n, 32, 16, 16, positions="learned") for n in (3, 5))
    query, key = short.get_parameter("query_KD"), short.get_parameter("key_KD")
    places, all_places = short.get_parameter("place_CD"), long.get_parameter("place_CD")

    def keep_free() -> None:
        with torch.no_grad():
            for weight in (short.get_parameter("embedding_VD"), places, short.get_parameter("value_XD")):
                weight[:, 0] = 0.0
            places[-1, 0] = 1.0
            for matrix in (query, key):
                matrix[0], matrix[:, 0], matrix[0, 0] = 0.0, 0.0, 1.0

    keep_free()
    taught(short, stream(tokenizer, [train]), steps, 1e-2, after_step=keep_free)
    with torch.no_grad():
        for name, weight in short.named_parameters():
            if name != "place_CD":
                long.get_parameter(name).copy_(weight)
        all_places[2:] = places
        all_places[:2, 0] = -1e4
    costs = [Measured(tokenizer, model).cost(held) for model in (short, long)]
    return costs[0].perplexity, costs[1].perplexity, parameters(short)


RELATIONS = {"greater than": lambda a, b: a > b * (1 + 1e-4), "no greater than": lambda a, b: a <= b * (1 + 1e-4)}


@claim("I1e", relation="greater than", steps=150)
def _too_few(t: SimpleNamespace) -> Outcome:
    three, five, count = with_more_context(t.steps)
    return judged(
        exact(RELATIONS[t.relation](five, three)),
        f"The lab's attention model with {count:,} parameters and N = 3, trained on Python's documentation: held-out "
        f"perplexity {three:.4f}. The model of N = 5 with the same weights, its two earliest places set to be ignored: "
        f"{five:.4f}. The best that N = 5 can reach is at most that.",
        because="However few the parameters, the longer context need not be used: too few could explain that nothing is "
        "gained, not that something is lost. What the document saw is one run each; training or chance is left.",
        corrected="The best perplexity with N = 5 is no greater than with N = 3 at equal parameters; a rise comes from "
        "training or from chance.",
        holds=RELATIONS["no greater than"](five, three),
    )


@claim("I2a", fixed=("rotary", "sinusoidal"), learned=("learned",))
def _context_free(t: SimpleNamespace) -> Outcome:
    contexts = (2, 4, 64)
    found = {p: [parameters(gpt(30, 2, 16, 2, n, p)) for n in contexts] for p in (*t.fixed, *t.learned)}

    def constant(kinds: Sequence[str]) -> bool:
        return all(len(set(found[kind])) == 1 for kind in kinds)

    return conditional(
        exact(constant(t.fixed)),
        measured(constant(t.learned)),
        f"The lab's Transformer, width 16, with contexts of {row(contexts)} tokens: {listed(found)}.",
        because=f"A learned table adds the width for each token of context ({found[t.learned[0]][1] - found[t.learned[0]][0]} "
        f"for {contexts[1] - contexts[0]} more).",
        precisely="True when positions are computed (sinusoidal, rotary) or there are none; a learned table of "
        "positions adds N·d parameters, as in BERT and GPT-2.",
    )


@claim("I2b", few=TWO_LAYERS, many=FOUR_LAYERS, percent="65", corrected="54.1")
def _percent(t: SimpleNamespace) -> Outcome:
    increase, share = 100 * Fraction(t.many - t.few, t.few), 100 * Fraction(t.few, t.many)
    return judged(
        exact(abs(increase - Fraction(t.percent)) <= Fraction(1, 2)),
        f"({t.many:,} - {t.few:,})/{t.few:,} = {float(increase):.2f} %, against {t.percent} % to the unit given.",
        because=f"The smaller count is {float(share):.1f} % of the larger, which is another thing.",
        corrected=f"It is a {t.corrected} % increase.",
        holds=abs(increase - Fraction(t.corrected)) <= Fraction(1, 20),
    )


@claim("I2c", layers=(1, 2, 3, 4, 5), table=(TWO_LAYERS, FOUR_LAYERS))
def _more_layers(t: SimpleNamespace) -> Outcome:
    found = [parameters(gpt(30, n, 16, 2, 4)) for n in t.layers]
    steps, block = {b - a for a, b in pairwise(found)}, parameters(gpt(30, 1, 16, 2, 4).blocks[0])
    return judged(
        exact(steps == {block} and block > 0 and t.table[1] > t.table[0]),
        f"The lab's Transformer with {row(t.layers)} layers: {row(found, '{:,}')} parameters; one block has {block:,}.",
        f"The table's counts differ by {(t.table[1] - t.table[0]) // 2:,} a layer.",
    )


def exhibit(layers: int, width: int, hidden: int, words: int, places: int) -> nn.ModuleList:
    """A Transformer decoder: attention to itself and to a second sequence, learned places, a norm, an output with bias."""
    with torch.device("meta"):
        blocks = [nn.TransformerDecoderLayer(width, 1, hidden) for _ in range(layers)]
        ends = nn.LayerNorm(width), nn.Linear(width, words)
        return nn.ModuleList([nn.Embedding(words, width), nn.Embedding(places, width), *blocks, *ends])


@claim(
    "I2d",
    sizes={"width": 512, "hidden": 512, "words": 4348, "places": 9},
    counts={2: TWO_LAYERS, 4: FOUR_LAYERS},
)
def _exhibited(t: SimpleNamespace) -> Outcome:
    found = {layers: parameters(exhibit(layers, **t.sizes)) for layers in t.counts}
    block = (found[4] - found[2]) // 2
    return judged(
        exact(found == t.counts),
        f"{listed(t.sizes, '{} {:,}')}, a final norm and an output with bias: {listed(found, '{} layers {:,}')}; "
        f"{block:,} a block.",
        note="It is a block that attends to itself and to a memory; since the table of places has a fixed length, the "
        "count does not change with N.",
    )
