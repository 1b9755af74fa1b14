"""What the attention heads of a model look at while it reads a text, and what each of them seems to do.

Shapes: H heads, T predictions, C keys in reach of one (see `layers/looking.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lmlab.config import Mistake
from lmlab.inside.openings import Attentive
from lmlab.layers.looking import Looks
from lmlab.measure.score import device_of, evaluating
from lmlab.models.registry import model_class, names
from lmlab.records import fields_to_json

if TYPE_CHECKING:
    from lmlab.inside.passage import Passage
    from lmlab.learn.run import Run

BEGIN = "⊢"  # how the begin symbol is shown
MOST_WEIGHTS = 100_000_000  # kept at once, of all heads
IN_JSON = 200_000  # weights that are still written out there
# A head is named after what it looks at from this share of its attention on, if that is so many times what attention to
# everything alike would give; and partly so from a smaller share on.
SEEMS, TIMES_CHANCE = 0.35, 2.0
PARTLY, PARTLY_TIMES = 0.15, 4.0
EVEN = 0.85  # of the entropy of attention to everything alike


@dataclass(frozen=True, kw_only=True)
class Head:
    """What one head did over a text: means over all predictions that had a choice.

    distance: tokens between the one that asks and those that were looked at, the begin symbol apart. entropy: bits.
    current, previous: share of the attention to the token that was just read, and to the one before it; beginning: to the
    begin symbol; same: to earlier occurrences of the token that was just read; induction: to what followed those.
    chance: what a head that looks at everything alike would have, by the same names.
    seems: in words. layer, head: numbers from 1.
    """

    layer: int
    head: int
    distance: float
    entropy: float
    current: float
    previous: float
    beginning: float
    same: float
    induction: float
    chance: dict[str, float]
    seems: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """One layer: its heads, and the weights they came from, with where these point (see `Looks`)."""

    name: str
    heads: tuple[Head, ...]
    difference: float
    weights_HTC: np.ndarray
    first_T: np.ndarray
    begins_T: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Attention:
    """A text as the heads of one model looked at it. difference: largest, of these weights from the fast kernel's."""

    run: str
    model: str
    tokens: tuple[str, ...]
    policy: str
    layers: tuple[Layer, ...]

    @property
    def heads(self) -> list[Head]:
        """Of all layers."""
        return [head for layer in self.layers for head in layer.heads]

    @property
    def difference(self) -> float:
        """The largest between the weights written out and those of the fast kernel."""
        return max(layer.difference for layer in self.layers)

    def weight(self, layer: int, head: int, t: int, token: int | None) -> float:
        """Share of the attention of a head (numbers from 1) to a token while token t was predicted; None: to the begin."""
        here = self.layers[layer - 1]
        places_C = here.first_T[t] + np.arange(here.weights_HTC.shape[2])
        wanted_C = places_C <= here.begins_T[t] if token is None else (places_C == token) & (token > here.begins_T[t])
        return float(here.weights_HTC[head - 1, t, wanted_C].sum())

    def to_json(self) -> dict[str, Any]:
        """Everything; where there are more than `IN_JSON` weights, they are left out, and null."""
        few = sum(layer.weights_HTC.size for layer in self.layers) <= IN_JSON
        layers = [
            {
                "name": layer.name,
                "difference": layer.difference,
                "heads": [fields_to_json(head) for head in layer.heads],
                "first": layer.first_T.tolist(),
                "begins": layer.begins_T.tolist(),
                "weights": layer.weights_HTC.round(6).tolist() if few else None,
            }
            for layer in self.layers
        ]
        tokens = list(self.tokens)
        return {"run": self.run, "model": self.model, "policy": self.policy, "tokens": tokens, "layers": layers}


def attention_of(run: Run, passage: Passage, *, device: str = "auto") -> Attention:
    """Let the model of a run read a text, and keep what its heads looked at."""
    model = run.load(device)
    if not isinstance(model, Attentive):
        others = [name for name in names() if issubclass(model_class(name), Attentive)]
        raise Mistake(
            f"{run.folder} holds a model of the kind {run.record.model.name}, which has no attention to show;"
            f" these have: {', '.join(others)}"
        )
    tokens = tokens_of(run, passage)
    tokens_T, layers, weights = torch.tensor([id for id, _ in tokens], device=device_of(model)), [], 0
    with evaluating(model):
        for number, looks in enumerate(model.looks(tokens_T), start=1):
            weights += looks.weights_HTC.numel()
            if weights > MOST_WEIGHTS:
                raise Mistake(f"{len(tokens):,} tokens have more attention weights than fit; give a shorter text")
            layers.append(
                Layer(
                    name=looks.name,
                    heads=summaries(looks, tokens_T, number),
                    difference=looks.difference,
                    weights_HTC=looks.weights_HTC.cpu().numpy(),
                    first_T=looks.first_T.cpu().numpy(),
                    begins_T=looks.begins_T.cpu().numpy(),
                )
            )
    return Attention(
        run=str(run.folder),
        model=run.record.model.name,
        tokens=tuple(text for _, text in tokens),
        policy=str(model.policy),
        layers=tuple(layers),
    )


def tokens_of(run: Run, passage: Passage) -> list[tuple[int, str]]:
    """Ids and texts of the tokens of a passage."""
    encoded = run.tokenizer.encode(passage.text)
    spellings = iter(encoded.spellings)
    unknown = run.tokenizer.unknown_id
    return [
        (id, next(spellings, "") if id == unknown else run.tokenizer.piece(id)) for id in map(int, encoded.ids.tolist())
    ]


def summaries(looks: Looks, tokens_T: Tensor, layer: int) -> tuple[Head, ...]:
    """What each head of a layer did, in numbers and in words."""
    weights_HTC = looks.weights_HTC
    length = len(tokens_T)
    asks_T1 = torch.arange(length, device=tokens_T.device)[:, None] - 1  # the token that was just read
    places_TC = looks.first_T[:, None] + torch.arange(weights_HTC.shape[2], device=tokens_T.device)
    visible_TC = weights_HTC.amax(0) > 0
    begin_TC = visible_TC & (places_TC <= looks.begins_T[:, None])
    text_TC = visible_TC & ~begin_TC
    asked_T1 = tokens_T[asks_T1.clamp(min=0)]
    earlier_TC = text_TC & (places_TC < asks_T1)
    inside_TC = places_TC.clamp(0, length - 1)
    masks = {
        "current": text_TC & (places_TC == asks_T1),
        "previous": text_TC & (places_TC == asks_T1 - 1),
        "beginning": begin_TC,
        "same": earlier_TC & (tokens_T[inside_TC] == asked_T1),
        "induction": earlier_TC & (places_TC > 0) & (tokens_T[(inside_TC - 1).clamp(min=0)] == asked_T1),
    }
    # A prediction counts where a token asks, not the begin symbol, and there are two things to choose from.
    counts_T = (asks_T1[:, 0] > looks.begins_T) & (visible_TC.sum(1) > 1)
    rows = max(1, int(counts_T.sum()))
    used_HTC = weights_HTC * counts_T[:, None]
    even_TC = visible_TC / visible_TC.sum(1, keepdim=True).clamp(min=1) * counts_T[:, None]

    shares = {name: (used_HTC * mask_TC).sum((1, 2)) / rows for name, mask_TC in masks.items()}
    chance = {name: float((even_TC * mask_TC).sum()) / rows for name, mask_TC in masks.items()}
    entropy_H = torch.special.entr(used_HTC).sum((1, 2)) / rows / math.log(2)
    most = float(torch.special.entr(even_TC).sum()) / rows / math.log(2)
    of_text_H = (used_HTC * text_TC).sum((1, 2))
    back_H = (used_HTC * text_TC * (asks_T1 - places_TC)).sum((1, 2)) / of_text_H.clamp(min=1e-9)
    found = []
    for head in range(len(weights_HTC)):
        mine = {name: float(share_H[head]) for name, share_H in shares.items()}
        distance, entropy = float(back_H[head]), float(entropy_H[head])
        seems = _seems(mine, chance, distance, entropy / most if most else 0.0)
        numbers = {"distance": distance, "entropy": entropy, **mine}
        found.append(Head(layer=layer, head=head + 1, chance=chance, seems=seems, **numbers))
    return tuple(found)


NAMES = {
    "current": "the token just read",
    "previous": "the token before",
    "beginning": "rests on the beginning",
    "same": "the same token earlier",
    "induction": "what followed the same token (induction)",
}


def _seems(shares: dict[str, float], chance: dict[str, float], distance: float, evenness: float) -> str:
    """What a head does most, where it does one thing much more than chance would."""
    for least, times, word in ((SEEMS, TIMES_CHANCE, ""), (PARTLY, PARTLY_TIMES, "partly ")):
        able = [name for name, share in shares.items() if share >= max(least, times * chance[name])]
        if able:
            return word + NAMES[max(able, key=lambda name: shares[name] - chance[name])]
    if evenness > EVEN:
        return "everything alike"
    return f"mixed, about {distance:.0f} back"
