"""The gates of a recurrent network over a text: what each unit lets in, keeps and shows, and what it seems to follow.

Shapes: T tokens, H units of a layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lmlab.config import Mistake
from lmlab.inside.attention import tokens_of
from lmlab.inside.openings import Gated
from lmlab.measure.score import device_of, evaluating
from lmlab.measure.student import t_quantile
from lmlab.records import NOT_IN_JSON, JsonRecord, brief, in_json, to_json

if TYPE_CHECKING:
    from lmlab.inside.passage import Passage
    from lmlab.layers.gating import Gating
    from lmlab.learn.run import Run

IN_JSON = 200_000  # values that are still written out there
FOLLOWS = 0.5  # correlation from which a unit is said to follow something, where so much is not luck
OFTEN = 2  # tokens that have it and tokens that do not: of what was there once, nobody can say that it is followed
OPEN, CLOSED = 0.9, 0.1
FOREVER = 1e6  # tokens; a unit that forgets nothing keeps for so long


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One unit over the text. keeps: tokens after which a third of what it remembers is left (1/e).

    follows: what its memory goes along with, with the correlation over the text; nothing where that says nothing.
    """

    layer: int
    unit: int
    keeps: float
    follows: str
    correlation: float


@dataclass(frozen=True, kw_only=True)
class Gate:
    """One kind of gate in one layer: its mean, and the share of its values that are nearly open or nearly closed."""

    name: str
    mean: float
    open: float
    closed: float


@dataclass(frozen=True, kw_only=True, eq=False)
class GateLayer:
    """A layer of cells. values: by name, T×H, what each gate and each memory was after each token was read."""

    name: str
    gates: tuple[Gate, ...]
    units: tuple[Unit, ...]
    values: dict[str, np.ndarray] = field(metadata=NOT_IN_JSON)
    difference: float  # of the states that follow from these gates from those of the fast kernel, largest


@dataclass(frozen=True, kw_only=True, eq=False)
class Gates(JsonRecord):
    """A text as the gates of one model met it."""

    __repr__ = brief  # not a page of numbers

    run: str
    model: str
    tokens: tuple[str, ...]
    layers: tuple[GateLayer, ...] = field(metadata=NOT_IN_JSON)

    @property
    def difference(self) -> float:
        """The largest of all layers."""
        return max(layer.difference for layer in self.layers)

    @property
    @in_json("layers")
    def _layers(self) -> list[dict[str, Any]]:
        """The layers; where all together have more than `IN_JSON` values, null stands for these."""
        few = sum(value.size for layer in self.layers for value in layer.values.values()) <= IN_JSON
        return [
            {**to_json(layer), "values": {name: v.round(5) for name, v in layer.values.items()} if few else None}
            for layer in self.layers
        ]


def gates_of(run: Run, passage: Passage, *, device: str = "auto") -> Gates:
    """Let the model of a run read a text, and keep what its gates did."""
    model = run.load(device)
    if not (isinstance(model, Gated) and model.gate_names):
        raise Mistake(
            f"{run.folder} holds a model of the kind {run.record.model.name}, which has no gates; gru and lstm have some",
            code="run-without-gates",
        )
    tokens = tokens_of(run, passage)
    texts = tuple(text for _, text in tokens)
    follow = features(texts)
    tokens_T = torch.tensor([id for id, _ in tokens], device=device_of(model))
    with evaluating(model):
        layers = [_layer(number, traced, follow) for number, traced in enumerate(model.gates(tokens_T), start=1)]
    return Gates(run=str(run.folder), model=run.record.model.name, tokens=texts, layers=tuple(layers))


def _layer(number: int, traced: Gating, follow: dict[str, np.ndarray]) -> GateLayer:
    values = {name: value_TH.cpu().numpy() for name, value_TH in {**traced.gates, **traced.states}.items()}
    gates = [
        Gate(name=name, mean=float(v.mean()), open=float((v > OPEN).mean()), closed=float((v < CLOSED).mean()))
        for name, v in values.items()
        if name in traced.gates and v.min() >= 0.0
    ]
    kept_TH = traced.kept_TH.cpu().numpy().astype(np.float64)
    keeps_H = np.minimum(FOREVER, -1.0 / np.minimum(np.log(kept_TH.clip(1e-12)).mean(0), -1e-12))
    memory_TH = list(values.values())[-1]
    units = []
    for unit in range(memory_TH.shape[1]):
        name, found = followed(memory_TH[:, unit], follow, memory_TH.shape[1])
        units.append(Unit(layer=number, unit=unit + 1, keeps=float(keeps_H[unit]), follows=name, correlation=found))
    return GateLayer(
        name=f"layer {number}",
        gates=tuple(gates),
        units=tuple(units),
        values=values,
        difference=traced.difference,
    )


def features(tokens: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Things about a text that a unit might follow, a number a token each.

    Of a single line how far into it is how far into the text, and whatever drifts as it reads would follow that.
    """
    in_line, in_word = [], []
    line = word = 0
    for token in tokens:
        line = 0 if "\n" in token else line + 1
        word = 0 if not token.strip() else 1 if token[:1].isspace() else word + 1
        in_line.append(line)
        in_word.append(word)
    counts = {"how far into the line": in_line, "how far into the word": in_word}
    signs: dict[str, list[bool]] = {
        "the end of a line": ["\n" in token for token in tokens],
        "white space": [not token.strip() for token in tokens],
        "capital letters": [any(c.isupper() for c in token) for token in tokens],
        "punctuation": [any(c in ".,:;!?'-" for c in token) for token in tokens],
    }
    told: dict[str, Sequence[int]] = {name: count for name, count in counts.items() if count != sorted(count)}
    told |= {name: sign for name, sign in signs.items() if OFTEN <= sum(sign) <= len(sign) - OFTEN}
    return {name: np.array(numbers, dtype=float) for name, numbers in told.items()}


def followed(values_T: np.ndarray, follow: dict[str, np.ndarray], units: int) -> tuple[str, float]:
    """What a unit goes along with most, and its correlation with that; no name where it is too small to say so.

    units: that were looked at. Of many units and few tokens some go along with something by luck, however high it looks.
    """
    found = {name: correlation(values_T, wanted_T) for name, wanted_T in follow.items()}
    name = max(found, key=lambda name: abs(found[name]), default="")
    most = found.get(name, 0.0)
    return name if abs(most) >= least_correlation(len(values_T), units * len(follow)) else "", most


def least_correlation(tokens: int, tries: int) -> float:
    """`FOLLOWS`, or what the largest of so many correlations reaches by luck in one text of twenty, were tokens independent."""
    if tokens < 4 or not tries:
        return float("inf")
    t = t_quantile(tokens - 2, 1 - 0.05 / tries)
    return max(FOLLOWS, t / (tokens - 2 + t * t) ** 0.5)


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's; 0 where one of them does not vary."""
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / size) if size > 1e-12 else 0.0
