"""The lab's recurrent cells (lab11 problems 2 and 3), one row at a time, with gates that a check can hold open or shut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from lmlab.layers.cells import CellWeights, GRUCell, LSTMCell
from lmlab.ledger.kit import normals

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
        bias = torch.cat([torch.full((units,), self.b.get(g, 0.0), dtype=torch.float64) for g in gates])
        return CellWeights(torch.cat([self.W[g] for g in gates]), torch.cat([self.U[g] for g in gates]), bias)

    def gate(self, name: str, x: Tensor, h: Tensor) -> Tensor:
        """σ(W x + U h + b)."""
        return torch.sigmoid(self.W[name] @ x + self.U[name] @ h + self.b.get(name, 0.0))


def draw(gates: str, inputs: int, units: int, seed: int, *, recurrent: float = 1.0, **bias: float) -> Weights:
    """Random weights: variance 1/size, the recurrent ones times `recurrent`."""
    W = {g: normals(seed + 2 * i, units, inputs) / inputs**0.5 for i, g in enumerate(gates)}
    U = {g: recurrent * normals(seed + 2 * i + 1, units, units) / units**0.5 for i, g in enumerate(gates)}
    return Weights(W, U, bias)


def gru(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    """h_t of the lab's GRU cell."""
    return GRUCell().step(x[None], (h[None],), w.packed(GRU_GATES))[0][0]


def lstm(w: Weights, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """(h_t, c_t) of the lab's LSTM cell."""
    new_h, new_c = LSTMCell().step(x[None], (h[None], c[None]), w.packed(LSTM_GATES))
    return new_h[0], new_c[0]


def spectral_norm(function: Callable[[Tensor], Tensor], at: Tensor) -> float:
    """Largest singular value of the Jacobian at a point."""
    jacobian = torch.func.jacrev(function)(at)
    return float(torch.linalg.matrix_norm(jacobian, 2))


def orthogonal(size: int, seed: int) -> Tensor:
    """A random orthogonal matrix."""
    return torch.from_numpy(np.linalg.qr(normals(seed, size, size).numpy())[0])


def unrolled(
    recurrent: Tensor, activation: Callable[[Tensor], Tensor], steps: int, inputs_TD: Tensor
) -> Callable[[Tensor], Tensor]:
    """h_0 -> h_T of the plain RNN h_t = φ(U h_{t-1} + x_t), for any φ (the lab's own has φ = tanh)."""

    def run(h: Tensor) -> Tensor:
        for t in range(steps):
            h = activation(recurrent @ h + inputs_TD[t])
        return h

    return run
