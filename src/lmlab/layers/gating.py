"""What the gates of a layer of cells did while a text was read."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lmlab.layers.cells import Cell, CellWeights


@dataclass(frozen=True, kw_only=True, eq=False)
class Gating:
    """Gates and memories of one layer by name, T×H each: what they were after each token was read.

    kept_TH: the share of its memory that each unit kept. difference: how far states made from these gates are from those
    of the fast kernel at most.
    """

    gates: dict[str, Tensor]
    states: dict[str, Tensor]
    kept_TH: Tensor
    difference: float

    def after(self, steps: int) -> Gating:
        """The same without the first steps."""
        gates, states = ({name: value[steps:] for name, value in of.items()} for of in (self.gates, self.states))
        return Gating(gates=gates, states=states, kept_TH=self.kept_TH[steps:], difference=self.difference)


def gating(cell: Cell, x_TX: Tensor, h_TH: Tensor, weights: CellWeights) -> Gating:
    """The gates behind a sequence of states; h_TH: what the fast kernel made of x, from a state of zeros."""
    before_TH = torch.cat([torch.zeros_like(h_TH[:1]), h_TH[:-1]])
    gates = cell.opened(x_TX, before_TH, weights)
    state, states = (torch.zeros_like(h_TH[:1]),) * cell.memories, []
    for step in zip(*(gate_TH.split(1) for gate_TH in gates), strict=True):
        state = cell.closed(step, state)
        states.append(state)
    memories = [torch.cat(memory) for memory in zip(*states, strict=True)]
    return Gating(
        gates=dict(zip(cell.gate_names, gates, strict=True)),
        states=dict(zip(cell.state_names, memories, strict=True)),
        kept_TH=cell.kept(gates),
        difference=float((memories[0] - h_TH).abs().max()),
    )
