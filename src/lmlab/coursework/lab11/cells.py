"""The lab's recurrent cells (lab11 problems 2 and 3), one row at a time, with gates that a check can hold open or shut."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lmlab.coursework.shared_tools import normals, zeros
from lmlab.layers.cells import CellWeights, GRUCell, LSTMCell

GRU_GATES = "zrc"  # in the order of the lab's cells: update, reset, candidate
LSTM_GATES = "ifgo"  # input, forget, candidate, output


@dataclass(frozen=True)
class Weights:
    """For each gate by its letter: W on the input, U on the state, and a bias the document leaves out (0 unless set)."""

    W: dict[str, Tensor]
    U: dict[str, Tensor]
    b: dict[str, float] = field(default_factory=dict)

    def packed(self, gates: str) -> CellWeights:
        """As the lab's cells take them."""
        units = self.U[gates[0]].shape[0]
        bias = torch.cat([zeros(units) + self.b.get(g, 0.0) for g in gates])
        return CellWeights(torch.cat([self.W[g] for g in gates]), torch.cat([self.U[g] for g in gates]), bias)

    def gate(self, name: str, x: Tensor, h: Tensor) -> Tensor:
        """σ(W x + U h + b)."""
        return torch.sigmoid(self.W[name] @ x + self.U[name] @ h + self.b.get(name, 0.0))


def draw(gates: str, inputs: int, units: int, seed: int, *, recurrent: float = 1.0, **bias: float) -> Weights:
    """Random weights: variance 1/size, the recurrent ones times `recurrent`."""
    W = {g: normals(seed + 2 * i, units, inputs) / inputs**0.5 for i, g in enumerate(gates)}
    U = {g: recurrent * normals(seed + 2 * i + 1, units, units) / units**0.5 for i, g in enumerate(gates)}
    return Weights(W, U, bias)


def held(gates: str, gate: str, at: float, seed: int, units: int = 8) -> Weights:
    """Random weights without recurrence in which one gate is this number whatever comes."""
    weights = draw(gates, 4, units, seed, recurrent=0.0, **{gate: math.log(at / (1 - at))})
    weights.W[gate].zero_()
    return weights


def gru(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    """h_t of the lab's GRU cell."""
    (new_h,) = GRUCell().step(x[None], (h[None],), w.packed(GRU_GATES))
    return new_h[0]


def lstm(w: Weights, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """(h_t, c_t) of the lab's LSTM cell."""
    new_h, new_c = LSTMCell().step(x[None], (h[None], c[None]), w.packed(LSTM_GATES))
    return new_h[0], new_c[0]


def spectral_norm(function: Callable[[Tensor], Tensor], at: Tensor) -> float:
    """Largest singular value of the Jacobian at a point."""
    jacobian = torch.func.jacrev(function)(at)
    return float(torch.linalg.matrix_norm(jacobian, 2))


def along_the_state(weights: Weights, x: Tensor, steps: int) -> float:
    """|∂h_T/∂h_0| of the GRU from h_0 = 0, the same input at every step."""

    def last(h: Tensor) -> Tensor:
        for _ in range(steps):
            h = gru(weights, x, h)
        return h

    return spectral_norm(last, zeros(weights.U["z"].shape[0]))


def along_the_cell(weights: Weights, x: Tensor, steps: int, output: float = 0.0) -> float:
    """|∂c_T/∂c_0| of the LSTM from c_0 = 0, the same input at every step; h_0 = output · tanh(c_0)."""

    def last(c: Tensor) -> Tensor:
        h = output * torch.tanh(c)
        for _ in range(steps):
            h, c = lstm(weights, x, h, c)
        return c

    return spectral_norm(last, zeros(weights.U["f"].shape[0]))


def through_time(recurrent: Tensor, activation: Callable[[Tensor], Tensor], inputs_TD: Tensor) -> float:
    """|∂h_T/∂h_0| of the plain RNN h_t = φ(U h_{t-1} + x_t) from h_0 = 0, for any φ (the lab's own has φ = tanh)."""

    def last(h: Tensor) -> Tensor:
        for x in inputs_TD:
            h = activation(recurrent @ h + x)
        return h

    return spectral_norm(last, zeros(len(recurrent)))
