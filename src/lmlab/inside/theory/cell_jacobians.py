"""The derivative of a recurrent cell's state by the state before it, written out, and how large theory lets it be.

Shapes: H state width, S = memories × H (an LSTM's state is h and c together), X input width, one row at a time.
Tests hold each Jacobian against automatic differentiation of the lab's own cell (layers/cells.py), and each bound against
the norm that it bounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.layers.cells import Cell, CellState, CellWeights, GRUCell, LSTMCell, TanhCell


@dataclass(frozen=True)
class Step:
    """One step through time. bound: a norm that the Jacobian cannot exceed, by its gates and the norms of its weights alone.

    kept_H: the share of each unit that goes straight on to the next step, past all weights (1 - z, or f); None: nothing does.
    """

    state: CellState
    jacobian_SS: Tensor
    bound: float
    kept_H: Tensor | None


class Flow(ABC):
    """How a derivative flows through one kind of cell."""

    cell: ClassVar[Cell]
    candidate: ClassVar[int]  # which block of U holds the weights that the state itself is made with

    @abstractmethod
    def jacobian(
        self, x_X: Tensor, state: CellState, after: CellState, weights: CellWeights
    ) -> tuple[Tensor, float, Tensor | None]:
        """(∂ state after / ∂ state before, its bound, what is kept); see `Step`."""

    def step(self, x_X: Tensor, state: CellState, weights: CellWeights) -> Step:
        """The state after an input, by the lab's cell, with its derivative by the state before."""
        after = tuple(s[0] for s in self.cell.step(x_X[None], tuple(s[None] for s in state), weights))
        return Step(after, *self.jacobian(x_X, state, after, weights))


class TanhFlow(Flow):
    """h' = tanh(W x + U h): ∂h'/∂h = diag(1 - h'²) U, so its norm is at most max|tanh'| ‖U‖ = ‖U‖."""

    cell = TanhCell()
    candidate = 0

    def jacobian(
        self, x_X: Tensor, state: CellState, after: CellState, weights: CellWeights
    ) -> tuple[Tensor, float, Tensor | None]:
        """By the line above; the bound knows how far each unit is from saturation."""
        slope_H = 1 - after[0] ** 2
        return slope_H[:, None] * weights.state_GH, float(slope_H.max()) * norm(weights.state_GH), None


class GRUFlow(Flow):
    """h' = (1 - z) ∘ h + z ∘ ĥ: what is kept goes past all weights, the rest through U_z, U_r and U."""

    cell = GRUCell()
    candidate = 2

    def jacobian(
        self, x_X: Tensor, state: CellState, after: CellState, weights: CellWeights
    ) -> tuple[Tensor, float, Tensor | None]:
        """diag(1 - z) + diag((ĥ - h) z') U_z + diag(z (1 - ĥ²)) (diag(r) U + diag(r' U h) U_r), with z' = z(1 - z)."""
        (h_H,) = state
        wz_H, wr_H, wh_H = F.linear(x_X, weights.input_GX, weights.bias_G).chunk(3)
        Uz_HH, Ur_HH, U_HH = weights.state_GH.chunk(3)
        z_H, r_H = torch.sigmoid(wz_H + Uz_HH @ h_H), torch.sigmoid(wr_H + Ur_HH @ h_H)
        inner_H = U_HH @ h_H
        candidate_H = torch.tanh(wh_H + r_H * inner_H)
        by_z_H = (candidate_H - h_H) * z_H * (1 - z_H)
        by_candidate_H = z_H * (1 - candidate_H**2)
        through = [
            (by_z_H, Uz_HH),
            (by_candidate_H * r_H, U_HH),
            (by_candidate_H * r_H * (1 - r_H) * inner_H, Ur_HH),
        ]
        jacobian_HH, bound = _sum(through)
        kept_H = 1 - z_H
        return torch.diag(kept_H) + jacobian_HH, float(kept_H.max()) + bound, kept_H


class LSTMFlow(Flow):
    """c' = f ∘ c + i ∘ c̃, h' = o ∘ tanh(c'): along the cell only f stands between a step and the next."""

    cell = LSTMCell()
    candidate = 2

    def jacobian(
        self, x_X: Tensor, state: CellState, after: CellState, weights: CellWeights
    ) -> tuple[Tensor, float, Tensor | None]:
        """Of (h, c) by (h, c), in four blocks; the bound is the norm of the 2×2 matrix of the bounds of the blocks."""
        h_H, c_H = state
        sums_G = F.linear(x_X, weights.input_GX, weights.bias_G) + F.linear(h_H, weights.state_GH)
        i_H, f_H, g_H, o_H = sums_G.chunk(4)
        i_H, f_H, g_H, o_H = torch.sigmoid(i_H), torch.sigmoid(f_H), torch.tanh(g_H), torch.sigmoid(o_H)
        Ui_HH, Uf_HH, Ug_HH, Uo_HH = weights.state_GH.chunk(4)
        c_by_h, c_by_h_bound = _sum(
            [(c_H * f_H * (1 - f_H), Uf_HH), (g_H * i_H * (1 - i_H), Ui_HH), (i_H * (1 - g_H**2), Ug_HH)]
        )
        squashed_H = torch.tanh(after[1])
        out_H = o_H * (1 - squashed_H**2)  # ∂h'/∂c'
        direct, direct_bound = _sum([(squashed_H * o_H * (1 - o_H), Uo_HH)])
        top = torch.cat([direct + out_H[:, None] * c_by_h, torch.diag(out_H * f_H)], dim=1)
        bottom = torch.cat([c_by_h, torch.diag(f_H)], dim=1)
        out = float(out_H.max())
        blocks = [[direct_bound + out * c_by_h_bound, float((out_H * f_H).max())], [c_by_h_bound, float(f_H.max())]]
        return torch.cat([top, bottom]), norm(torch.tensor(blocks, dtype=torch.float64)), f_H


FLOWS: dict[str, Flow] = {"rnn": TanhFlow(), "gru": GRUFlow(), "lstm": LSTMFlow()}


def norm(matrix: Tensor) -> float:
    """The largest singular value: by how much the matrix can stretch a vector."""
    return float(torch.linalg.matrix_norm(matrix, 2))


def _sum(terms: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, float]:
    """Σ diag(d) U, and Σ max|d| ‖U‖, which its norm cannot exceed."""
    total = torch.stack([d_H[:, None] * U_HH for d_H, U_HH in terms]).sum(0)
    return total, sum(float(d_H.abs().max()) * norm(U_HH) for d_H, U_HH in terms)
