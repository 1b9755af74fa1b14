"""A layer of recurrent cells: its weights, and how a sequence goes through it.

Shapes: B rows, T steps, X input width, H state width, G = gates × H.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lmlab.formulas import Part, Shape, Size, Work, joined, linear
from lmlab.layers.cells import Cell, CellState, CellWeights


class RecurrentLayer(nn.Module):
    """The weights of one layer of cells.

    Each block of U starts orthogonal, so that the state neither fades nor explodes at first, and W so
    that inputs of unit variance keep it.
    """

    def __init__(self, cell: Cell, input_width: int, width: int, *, bias: bool) -> None:
        super().__init__()
        self.cell = cell
        self.input_GX = nn.Parameter(torch.randn(cell.gates * width, input_width) * input_width**-0.5)
        blocks = [nn.init.orthogonal_(torch.empty(width, width)) for _ in range(cell.gates)]
        self.state_GH = nn.Parameter(torch.cat(blocks))
        self.bias_G = nn.Parameter(cell.first_bias(width)) if bias else None

    def weights(self, dtype: torch.dtype) -> CellWeights:
        """W, U and b in this precision."""
        bias_G = None if self.bias_G is None else self.bias_G.to(dtype)
        return CellWeights(self.input_GX.to(dtype), self.state_GH.to(dtype), bias_G)

    def forward(self, x_BTX: Tensor, state: CellState) -> tuple[Tensor, CellState]:
        """h after every input, and the state after the last."""
        weights = self.weights(x_BTX.dtype)
        if x_BTX.shape[1] == 1:  # a kernel that first arranges its weights does not pay for one step
            state = self.cell.step(x_BTX[:, 0], state, weights)
            return state[0][:, None], state
        return self.cell.run(x_BTX, tuple(s.contiguous() for s in state), weights)


def recurrent_part(
    name: str, gates: int, input_width: Size, width: Size, shape: Shape, *, bias: bool, times: Size = 1
) -> Part:
    """W, U and b of one layer; `times` of them are alike."""
    rows = gates * width
    state = Part("state", rows * width, rows * width, recurrent_work(width, rows, shape))
    return joined(name, linear(shape.places, input_width, rows, bias=bias), state, times=times)


def recurrent_work(width: Size, outputs: Size, shape: Shape) -> Work:
    """Of a product with the state before each step. Nothing flows back into the state that was given at the start."""
    once = 2 * shape.rows * width * outputs
    return Work(once * shape.tokens, once * (2 * shape.tokens - 1))
