"""What the attention heads of a model look at while it reads a text.

Shapes: H heads, T rows, C columns of one (see `layers/looking.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lmlab.config import Mistake
from lmlab.inside.head_descriptions import Head, Ids, summaries
from lmlab.inside.openings import Attentive, AttentiveAcross, AttentiveAround
from lmlab.layers.looking import Looks, Way
from lmlab.measure.score import device_of, evaluating
from lmlab.models.registry import model_class, trainable
from lmlab.records import NOT_IN_JSON, JsonRecord, brief, in_json, json_key, to_json

if TYPE_CHECKING:
    from lmlab.inside.passage import Passage
    from lmlab.learn.run import Run

BEGIN, END = "⊢", "⊣"  # how the symbols around a text are shown
MOST_WEIGHTS = 100_000_000  # kept at once, of all heads
IN_JSON = 200_000  # weights that are still written out there


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """One layer: its heads, and the weights they came from, with where these point (see `Looks`).

    asks: what stands for each row: the token that was just read, the place itself, or the token that is to be written.
    sees: what the columns are about.
    """

    name: str
    way: Way = field(metadata=json_key("looks"))
    asks: tuple[str, ...]
    sees: tuple[str, ...]
    heads: tuple[Head, ...]
    difference: float
    weights_HTC: np.ndarray = field(metadata=NOT_IN_JSON)
    first_T: np.ndarray = field(metadata=json_key("first"))
    begins_T: np.ndarray = field(metadata=json_key("begins"))


@dataclass(frozen=True, kw_only=True, eq=False)
class Attention(JsonRecord):
    """A text as the heads of one model looked at it. tokens: that were read, or written, with the symbols around them.

    difference: largest, of these weights from the fast kernel's. language: of a translation.
    """

    __repr__ = brief  # not a page of numbers

    run: str
    model: str
    tokens: tuple[str, ...]
    policy: str
    layers: tuple[Layer, ...] = field(metadata=NOT_IN_JSON)
    language: str | None = None

    @property
    def heads(self) -> list[Head]:
        """Of all layers."""
        return [head for layer in self.layers for head in layer.heads]

    @property
    def difference(self) -> float:
        """The largest between the weights written out and those of the fast kernel."""
        return max(layer.difference for layer in self.layers)

    @property
    @in_json("layers")
    def _layers(self) -> list[dict[str, Any]]:
        """The layers; where all together have more than `IN_JSON` weights, null stands for these."""
        few = sum(layer.weights_HTC.size for layer in self.layers) <= IN_JSON
        return [{**to_json(layer), "weights": layer.weights_HTC.round(6) if few else None} for layer in self.layers]

    def weight(self, layer: int, head: int, t: int, token: int | None) -> float:
        """Share of the attention of a head (numbers from 1) in row t to a token; None: to the begin symbol before all."""
        here = self.layers[layer - 1]
        places_C = here.first_T[t] + np.arange(here.weights_HTC.shape[2])
        wanted_C = places_C <= here.begins_T[t] if token is None else (places_C == token) & (token > here.begins_T[t])
        return float(here.weights_HTC[head - 1, t, wanted_C].sum())


def refuse_without_attention(run: Run) -> None:
    """Mistake where a run holds a model that weighs nothing."""
    able = (Attentive, AttentiveAround, AttentiveAcross)
    if not isinstance(run.saved, able):
        others = [name for name in trainable() if issubclass(model_class(name), able)]
        raise Mistake(
            f"{run.folder} holds a model of the kind {run.record.model.name}, which has no attention to show;"
            f" these have: {', '.join(others)}",
            code="run-without-attention",
        )


def attention_of(run: Run, passage: Passage, *, device: str = "auto") -> Attention:
    """Let the language model of a run read a text, and keep what its heads looked at."""
    refuse_without_attention(run)
    model = run.load(device)
    assert isinstance(model, Attentive)
    tokens = tokens_of(run, passage)
    texts = tuple(text for _, text in tokens)
    tokens_T = torch.tensor([id for id, _ in tokens], device=device_of(model))
    with evaluating(model):
        layers = kept(model.looks(tokens_T), {Way.BACK: (Ids(rows_T=tokens_T, seen_S=tokens_T), texts, texts)})
    named = {"run": str(run.folder), "model": run.record.model.name, "policy": str(model.policy)}
    return Attention(tokens=texts, layers=layers, **named)


Texts = tuple[Ids, Sequence[str], Sequence[str]]  # ids, and the tokens of the rows and of what is looked at


def kept(looks: Iterable[Looks], texts: Mapping[Way, Texts]) -> tuple[Layer, ...]:
    """The layers, summarised; the weights leave the device as they come."""
    layers: list[Layer] = []
    weights = 0
    for number, one in enumerate(looks, start=1):
        weights += one.weights_HTC.numel()
        ids, rows, sees = texts[one.way]
        if weights > MOST_WEIGHTS:
            raise Mistake(
                f"{len(rows):,} tokens have more attention weights than fit; give a shorter text",
                code="too-many-attention-weights",
            )
        asks = (BEGIN, *rows[:-1]) if one.way is Way.BACK else tuple(rows)
        layers.append(
            Layer(
                name=one.name,
                way=one.way,
                asks=asks,
                sees=tuple(sees),
                heads=summaries(one, number, ids),
                difference=one.difference,
                weights_HTC=one.weights_HTC.cpu().numpy(),
                first_T=one.first_T.cpu().numpy(),
                begins_T=one.begins_T.cpu().numpy(),
            )
        )
    return tuple(layers)


def tokens_of(run: Run, passage: Passage) -> list[tuple[int, str]]:
    """Ids and texts of the tokens of a passage."""
    encoded = run.tokenizer.encode(passage.text)
    spellings = iter(encoded.spellings)
    unknown = run.tokenizer.unknown_id
    return [
        (id, next(spellings, "") if id == unknown else run.tokenizer.piece(id)) for id in map(int, encoded.ids.tolist())
    ]
