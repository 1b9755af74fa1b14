"""The recurrent cells exactly as lab11 writes them (problems 2 and 3), in plain torch, weights passed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lmlab.prove.ledger.kit import normals


@dataclass(frozen=True)
class Weights:
    """For each gate by name: W on the input, U on the state, and a bias the document leaves out (0 unless set)."""

    W: dict[str, Tensor]
    U: dict[str, Tensor]
    b: dict[str, float]

    def gate(self, name: str, x: Tensor, h: Tensor) -> Tensor:
        """W x + U h + b."""
        return self.W[name] @ x + self.U[name] @ h + self.b.get(name, 0.0)


def draw(gates: str, inputs: int, units: int, seed: int, *, recurrent: float = 1.0, **bias: float) -> Weights:
    """Random weights: variance 1/size, the recurrent ones times `recurrent`."""
    W = {g: normals(seed + 2 * i, units, inputs) / inputs**0.5 for i, g in enumerate(gates)}
    U = {g: recurrent * normals(seed + 2 * i + 1, units, units) / units**0.5 for i, g in enumerate(gates)}
    return Weights(W, U, bias)


def gru(w: Weights, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(h_t, z_t, r_t): gates z and r, candidate c (lab11 problem 2)."""
    z, r = torch.sigmoid(w.gate("z", x, h)), torch.sigmoid(w.gate("r", x, h))
    candidate = torch.tanh(w.W["c"] @ x + r * (w.U["c"] @ h) + w.b.get("c", 0.0))
    return (1 - z) * h + z * candidate, z, r


def lstm(w: Weights, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """(h_t, c_t, gates): gates i, f, o and candidate g (lab11 problems 3 and 4)."""
    gates = {name: torch.sigmoid(w.gate(name, x, h)) for name in "ifo"}
    candidate = torch.tanh(w.gate("g", x, h))
    new = gates["f"] * c + gates["i"] * candidate
    return gates["o"] * torch.tanh(new), new, gates


def spectral_norm(function: Callable[[Tensor], Tensor], at: Tensor) -> float:
    """Largest singular value of the Jacobian at a point."""
    jacobian = torch.func.jacrev(function)(at)
    return float(torch.linalg.matrix_norm(jacobian, 2))


def orthogonal(size: int, seed: int) -> Tensor:
    """A random orthogonal matrix."""
    return torch.from_numpy(np.linalg.qr(normals(seed, size, size).numpy())[0])


def unrolled(recurrent: Tensor, activation: Callable[[Tensor], Tensor], steps: int, inputs_TD: Tensor) -> Callable[[Tensor], Tensor]:
    """h_0 -> h_T of the plain RNN h_t = φ(U h_{t-1} + x_t)."""

    def run(h: Tensor) -> Tensor:
        for t in range(steps):
            h = activation(recurrent @ h + inputs_TD[t])
        return h

    return run
