"""What the heads of a layer did over a text, in numbers and in words: shares of their attention, beside what chance would give.

Shapes: H heads, T rows of weights, C columns of one, S places that are looked at (see `layers/looking.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lmlab.layers.looking import Looks, Way
from lmlab.records import JsonRecord, in_json

# A head is named after what it looks at from this share of its attention on, if that is so many times what attention to
# everything alike would give, or else from a smaller share on; with the word partly, where it is less than half.
SEEMS, TIMES_CHANCE = 0.35, 2.0
PARTLY, PARTLY_TIMES = 0.15, 4.0
MOSTLY = 0.5
EVEN = 0.85  # of the entropy of attention to everything alike

SHARES: dict[Way, dict[str, str]] = {
    Way.BACK: {
        "current": "the token just read",
        "previous": "the token before",
        "beginning": "rests on the beginning",
        "same": "the same token earlier",
        "induction": "what followed the same token (induction)",
    },
    Way.AROUND: {
        "current": "itself",
        "previous": "the token before",
        "next": "the token after",
        "beginning": "rests on the beginning",
        "end": "rests on the end",
        "same": "the same token elsewhere",
    },
    Way.ACROSS: {
        "along": "as far along the source",
        "same": "the same token in the source",
        "end": "rests on the end of the source",
    },
}  # what is counted, by the way a layer looks, and how a head is called that does it
FAR = {Way.BACK: "back", Way.AROUND: "away", Way.ACROSS: "off the diagonal"}


@dataclass(frozen=True, kw_only=True)
class Head(JsonRecord):
    """What one head did over a text: means over all rows that had a choice.

    layer, head: numbers from 1; name: how it is called. distance: tokens between what asks and what was looked at, symbols
    apart; where a source is looked at, from the place that is as far along. entropy: bits. shares: of the attention, by the
    names of `SHARES`. Looking back: to the token that was just read (current), to the one before it (previous), to the begin
    symbol, to earlier occurrences of the token just read (same) and to what followed those (induction). Looking around: to
    itself, its neighbours, the symbols around the text, and other occurrences of its token. Looking across: to the three
    places about as far along (along), to tokens that are what is to be written (same), to the end of the source.
    chance: what a head that looks at everything alike would have. seems: in words.
    """

    layer: int
    head: int
    name: str
    distance: float
    entropy: float
    shares: dict[str, float]
    chance: dict[str, float]
    seems: str

    @property
    @in_json(flat=True)
    def _shares(self) -> dict[str, float]:
        """The shares beside the other numbers."""
        return self.shares


@dataclass(frozen=True, kw_only=True)
class Ids:
    """The text as ids. rows_T: token t, or place t, of each row. seen_S: what is looked at. begin, end: symbols among them."""

    rows_T: Tensor
    seen_S: Tensor
    begin: int = -1
    end: int = -1


def summaries(looks: Looks, layer: int, ids: Ids) -> tuple[Head, ...]:
    """What each head of a layer (numbers from 1) did."""
    weights_HTC = looks.weights_HTC
    places_TC = looks.first_T[:, None] + torch.arange(weights_HTC.shape[2], device=weights_HTC.device)
    visible_TC = weights_HTC.amax(0) > 0
    begin_TC = visible_TC & (places_TC <= looks.begins_T[:, None])
    seen_TC = ids.seen_S[places_TC.clamp(0, len(ids.seen_S) - 1)]
    symbol_TC = begin_TC | (visible_TC & ((seen_TC == ids.begin) | (seen_TC == ids.end)))
    asks_T1, masks = _WAYS[looks.way](looks, ids, places_TC, seen_TC)
    if looks.way is Way.BACK:
        masks["beginning"] = begin_TC
    masks = {name: mask_TC & visible_TC for name, mask_TC in masks.items()}
    text_TC = visible_TC & ~symbol_TC
    counts_T = visible_TC.sum(1) > 1
    if looks.way is Way.BACK:  # only where a token asks, not the begin symbol
        counts_T &= asks_T1[:, 0] > looks.begins_T
        masks = {name: mask_TC if name == "beginning" else mask_TC & text_TC for name, mask_TC in masks.items()}
    rows = max(1, int(counts_T.sum()))
    used_HTC = weights_HTC * counts_T[:, None]
    even_TC = visible_TC / visible_TC.sum(1, keepdim=True).clamp(min=1) * counts_T[:, None]

    shares = {name: (used_HTC * mask_TC).sum((1, 2)) / rows for name, mask_TC in masks.items()}
    chance = {name: float((even_TC * mask_TC).sum()) / rows for name, mask_TC in masks.items()}
    entropy_H = torch.special.entr(used_HTC).sum((1, 2)) / rows / math.log(2)
    most = float(torch.special.entr(even_TC).sum()) / rows / math.log(2)
    of_text_H = (used_HTC * text_TC).sum((1, 2))
    far_H = (used_HTC * text_TC * (asks_T1 - places_TC).abs()).sum((1, 2)) / of_text_H.clamp(min=1e-9)
    found = []
    for head in range(len(weights_HTC)):
        mine = {name: float(shares[name][head]) for name in SHARES[looks.way] if name in shares}
        distance, entropy = float(far_H[head]), float(entropy_H[head])
        seems = _seems(looks.way, mine, chance, distance, entropy / most if most else 0.0)
        where = looks.name.removeprefix("block ") if looks.name[-1:].isdigit() else str(layer)
        name, of = f"{where}.{head + 1}", {"shares": mine, "chance": chance}
        found.append(Head(layer=layer, head=head + 1, name=name, distance=distance, entropy=entropy, seems=seems, **of))
    return tuple(found)


Masks = tuple[Tensor, dict[str, Tensor]]  # the place that asks, T×1, and what is counted, T×C each


def _back(looks: Looks, ids: Ids, places_TC: Tensor, seen_TC: Tensor) -> Masks:
    asks_T1 = torch.arange(len(places_TC), device=places_TC.device)[:, None] - 1  # the token that was just read
    asked_T1 = ids.rows_T[asks_T1.clamp(min=0)]
    earlier_TC = places_TC < asks_T1
    before_TC = ids.seen_S[(places_TC - 1).clamp(0, len(ids.seen_S) - 1)]
    return asks_T1, {
        "current": places_TC == asks_T1,
        "previous": places_TC == asks_T1 - 1,
        "same": earlier_TC & (seen_TC == asked_T1),
        "induction": earlier_TC & (places_TC > 0) & (before_TC == asked_T1),
    }


def _around(looks: Looks, ids: Ids, places_TC: Tensor, seen_TC: Tensor) -> Masks:
    asks_T1 = torch.arange(len(places_TC), device=places_TC.device)[:, None]
    own_TC = places_TC == asks_T1
    masks = {
        "current": own_TC,
        "previous": places_TC == asks_T1 - 1,
        "next": places_TC == asks_T1 + 1,
        "same": (seen_TC == ids.rows_T[:, None]) & ~own_TC,
    }
    symbols = {"beginning": ids.begin, "end": ids.end}
    return asks_T1, masks | {name: seen_TC == symbol for name, symbol in symbols.items() if symbol >= 0}


def _across(looks: Looks, ids: Ids, places_TC: Tensor, seen_TC: Tensor) -> Masks:
    """Rows that look from the same place on are of one target; how far along it is says where on its source."""
    _, sentence_T, rows_N = looks.first_T.unique_consecutive(return_inverse=True, return_counts=True)
    size_T = (looks.weights_HTC.amax(0) > 0).sum(1)
    within_T = torch.arange(len(sentence_T), device=places_TC.device) - (rows_N.cumsum(0) - rows_N)[sentence_T]
    along_T = looks.first_T + (within_T * size_T).div(rows_N[sentence_T], rounding_mode="floor")
    return along_T[:, None], {
        "along": (places_TC - along_T[:, None]).abs() <= 1,
        "same": (seen_TC == ids.rows_T[:, None]) & (seen_TC != ids.end),
        "end": seen_TC == ids.end,
    }


_WAYS = {Way.BACK: _back, Way.AROUND: _around, Way.ACROSS: _across}


def _seems(way: Way, shares: dict[str, float], chance: dict[str, float], distance: float, evenness: float) -> str:
    """What a head does most, where it does one thing much more than chance would."""
    for least, times in ((SEEMS, TIMES_CHANCE), (PARTLY, PARTLY_TIMES)):
        able = [name for name, share in shares.items() if share >= max(least, times * chance[name])]
        if able:
            best = max(able, key=lambda name: shares[name] - chance[name])
            return ("" if round(shares[best], 2) >= MOSTLY else "partly ") + SHARES[way][best]
    if evenness > EVEN:
        return "everything alike"
    return f"mixed, about {distance:.0f} {FAR[way]}"
