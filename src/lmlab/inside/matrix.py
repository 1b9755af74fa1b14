"""Self-attention as one big matrix: with the weights of a text, a head maps all its vectors at once.

Shapes: N inputs, D width. With A the weights and W = W_o W_v what a head does to a vector, y_n = Σ_m a_nm W x_m, so the
ND×ND matrix that takes all x at once to all y has the blocks a_nm W: the Kronecker product A ⊗ W.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lmlab.config import Mistake
from lmlab.inside.attention import BEGIN, tokens_of
from lmlab.inside.openings import Unfolding
from lmlab.measure.score import device_of, evaluating
from lmlab.records import NOT_IN_JSON, JsonRecord, brief, in_json, json_key

if TYPE_CHECKING:
    from lmlab.inside.passage import Passage
    from lmlab.learn.run import Run

MOST = 4_096  # rows of a matrix that is still written out


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionMatrix(JsonRecord):
    """One head on one text. difference: largest, of the matrix times the inputs from what the model's kernel gave."""

    __repr__ = brief  # not a page of numbers

    run: str
    model: str
    layer: int  # from 1, as is the head
    head: int
    inputs: tuple[str, ...]
    weights_NN: np.ndarray = field(metadata=json_key("weights"))
    value_DD: np.ndarray = field(metadata=json_key("value"))
    head_width: int = field(metadata=NOT_IN_JSON)
    difference: float

    @property
    def width(self) -> int:
        """D, of the vectors."""
        return len(self.value_DD)

    @property
    def matrix(self) -> np.ndarray:
        """The ND×ND matrix."""
        return np.kron(self.weights_NN, self.value_DD)

    @property
    @in_json
    def dense_parameters(self) -> int:
        """Of a fully connected layer of that size, (ND)²."""
        return (len(self.inputs) * self.width) ** 2

    @property
    @in_json
    def parameters(self) -> dict[str, int]:
        """What makes the matrix instead, for any number of inputs."""
        each = self.width * self.head_width
        return {"queries and keys": 2 * each, "values and output": 2 * each}

    @property
    @in_json
    def zero(self) -> float:
        """Share of the matrix that is zero because nothing looks ahead."""
        count = len(self.inputs)
        return (count - 1) / (2 * count)


def matrix_of(run: Run, passage: Passage, *, layer: int = 1, head: int = 1, device: str = "auto") -> AttentionMatrix:
    """Read a text, and unfold what one head (numbers from 1) did with it."""
    model = run.load(device)
    if not isinstance(model, Unfolding):
        raise Mistake(
            f"{run.folder} holds a model of the kind {run.record.model.name}, which has no self-attention; gpt has",
            code="run-without-matrix",
        )
    config: Any = model.config
    layers, heads, width, context = config.layers, config.heads, config.width, config.context
    for name, number, most in (("layer", layer, layers), ("head", head, heads)):
        if not 1 <= number <= most:
            raise Mistake(
                f"{{{name}}} is from 1 to {most} in this model; got {number}",
                code="matrix-place-out-of-range",
                **{name: None},
            )
    tokens = tokens_of(run, passage)
    room = min(context, MOST // width) - 1
    if len(tokens) > room:
        raise Mistake(
            f"the text has {len(tokens)} tokens, and {room} are the most whose matrix, {width} times as wide and within one"
            " window, can be drawn; give a shorter text",
            code="matrix-too-large",
        )
    tokens_T = torch.tensor([id for id, _ in tokens], device=device_of(model))
    with evaluating(model):
        unfolded = model.unfolded(tokens_T, layer - 1, head - 1)
    x_ND, weights_NN, value_DD = (t.double() for t in (unfolded.x_ND, unfolded.weights_NN, unfolded.value_DD))
    y_ND = torch.einsum("nm,dc,mc->nd", weights_NN, value_DD, x_ND)
    return AttentionMatrix(
        run=str(run.folder),
        model=run.record.model.name,
        layer=layer,
        head=head,
        inputs=(BEGIN, *(text for _, text in tokens)),
        weights_NN=weights_NN.cpu().numpy(),
        value_DD=value_DD.cpu().numpy(),
        head_width=unfolded.head_width,
        difference=float((y_ND - unfolded.y_ND).abs().max()),
    )
