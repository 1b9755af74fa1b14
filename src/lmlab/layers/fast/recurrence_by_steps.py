"""The steps of `recurrence.py` by torch, with few operations in each: the plain twin of `recurrence_in_c.py`, in any precision.

Shapes: B rows, T steps, S = T + 1 states, H state width, G = gates × H, R the gradients of a step: H or, of gated units, 4 H.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Stretch(NamedTuple):
    """What goes through a layer of cells, and what is kept of it. What belongs to one step lies together in memory."""

    gates_TBG: Tensor  # W x + b, in whose place a forward pass that keeps something leaves z, r and ĥ
    states_SBH: Tensor  # the one at the beginning, and, to be written, those after every input
    u_GH: Tensor
    kept_TBH: Tensor | None  # to be written: U h of ĥ, where gates come after it and something is to be learned

    @property
    def gated(self) -> bool:
        """Whether these are gated units, or else plain ones."""
        return len(self.u_GH) > self.u_GH.shape[1]


def forward(stretch: Stretch) -> None:
    """Write the states, and what the backward pass needs."""
    width, (h_BH, *after) = stretch.u_GH.shape[1], stretch.states_SBH.unbind()
    sums_BG = torch.empty_like(stretch.gates_TBG[0])
    for t, (gates_BG, after_BH) in enumerate(zip(stretch.gates_TBG.unbind(), after, strict=True)):
        torch.mm(h_BH, stretch.u_GH.T, out=sums_BG)
        if not stretch.gated:
            h_BH = torch.tanh(gates_BG.add_(sums_BG), out=after_BH)
            continue
        both_BG, candidate_BH, u_BH = gates_BG[:, : 2 * width], gates_BG[:, 2 * width :], sums_BG[:, 2 * width :]
        both_BG.add_(sums_BG[:, : 2 * width]).sigmoid_()
        candidate_BH.addcmul_(both_BG[:, width:], u_BH).tanh_()
        h_BH = torch.lerp(h_BH, candidate_BH, both_BG[:, :width], out=after_BH)
        if stretch.kept_TBH is not None:
            stretch.kept_TBH[t] = u_BH


def backward(stretch: Stretch, grad_TBH: Tensor, to_begin: bool) -> tuple[Tensor, Tensor | None]:
    """Gradients of what the gates were made of, and of the state at the beginning where that is wanted.

    The first are of h's sum (T×B×H), or of those of ĥ, z, r, and of U h of ĥ (T×B×4H).
    """
    grads_TBR, keeping_TBH = _slopes(stretch)  # all but a factor, which is known step by step
    (_, rows, width), back_BH = grad_TBH.shape, torch.zeros_like(grad_TBH[0])
    for t in reversed(range(len(grad_TBH))):
        wanted_BH, grads_BR = grad_TBH[t] + back_BH, grads_TBR[t]
        grads_BR.view(rows, -1, width).mul_(wanted_BH[:, None])
        if t == 0 and not to_begin:
            return grads_TBR, None
        by_u_BG = grads_BR[:, -len(stretch.u_GH) :]
        if keeping_TBH is None:
            torch.mm(by_u_BG, stretch.u_GH, out=back_BH)
        else:
            torch.addmm(wanted_BH.mul_(keeping_TBH[t]), by_u_BG, stretch.u_GH, out=back_BH)
    return grads_TBR, back_BH


def _slopes(stretch: Stretch) -> tuple[Tensor, Tensor | None]:
    """How a state changes with what its gates were made of, of all steps, and with the state before it beside U (None: not)."""
    before_TBH, after_TBH = stretch.states_SBH[:-1], stretch.states_SBH[1:]
    if stretch.kept_TBH is None:
        return 1 - after_TBH * after_TBH, None
    width = stretch.u_GH.shape[1]
    z_TBH, r_TBH, candidate_TBH = stretch.gates_TBG.split(width, -1)
    slopes_TBR = after_TBH.new_empty(*after_TBH.shape[:2], 4 * width)
    by_candidate_TBH, by_z_TBH, by_r_TBH, by_u_TBH = slopes_TBR.split(width, -1)
    keeping_TBH = 1 - z_TBH
    torch.mul(z_TBH, 1 - candidate_TBH * candidate_TBH, out=by_candidate_TBH)
    torch.sub(candidate_TBH, before_TBH, out=by_z_TBH).mul_(z_TBH).mul_(keeping_TBH)
    torch.mul(by_candidate_TBH, r_TBH, out=by_u_TBH)
    torch.mul(by_u_TBH, 1 - r_TBH, out=by_r_TBH).mul_(stretch.kept_TBH)
    return slopes_TBR, keeping_TBH
