"""The steps of `recurrence.py` by torch, with few operations in each: the plain twin of `recurrence_in_c.py`, in any precision.

Shapes: B rows, T steps, H state width, G = gates × H.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Stretch(NamedTuple):
    """What goes through a layer of cells, and what is kept of it."""

    gates_BTG: Tensor  # W x + b, in whose place a forward pass that keeps something leaves z, r and ĥ
    h_BTH: Tensor  # to be written: the states after every input
    begin_BH: Tensor
    u_GH: Tensor
    kept_BTH: Tensor | None  # to be written: U h of ĥ, where gates come after it and something is to be learned

    @property
    def gated(self) -> bool:
        """Whether these are gated units, or else plain ones."""
        return self.gates_BTG.shape[-1] > self.h_BTH.shape[-1]


def forward(stretch: Stretch) -> None:
    """Write the states, and what the backward pass needs."""
    h_BH, width = stretch.begin_BH, stretch.h_BTH.shape[-1]
    sums_BG = stretch.gates_BTG.new_empty(len(h_BH), len(stretch.u_GH))
    for t, (gates_BG, after_BH) in enumerate(zip(stretch.gates_BTG.unbind(1), stretch.h_BTH.unbind(1), strict=True)):
        torch.mm(h_BH, stretch.u_GH.T, out=sums_BG)
        if not stretch.gated:
            h_BH = torch.tanh(gates_BG.add_(sums_BG), out=after_BH)
            continue
        both_BG, candidate_BH, u_BH = gates_BG[:, : 2 * width], gates_BG[:, 2 * width :], sums_BG[:, 2 * width :]
        both_BG.add_(sums_BG[:, : 2 * width]).sigmoid_()
        candidate_BH.addcmul_(both_BG[:, width:], u_BH).tanh_()
        h_BH = torch.lerp(h_BH, candidate_BH, both_BG[:, :width], out=after_BH)
        if stretch.kept_BTH is not None:
            stretch.kept_BTH[:, t] = u_BH


def backward(stretch: Stretch, grad_BTH: Tensor, to_begin: bool) -> tuple[Tensor, Tensor | None]:
    """Gradients of what the gates were made of, and of the state at the beginning where that is wanted.

    The first are of h's sum (B×T×H), or of those of ĥ, z, r, and of U h of ĥ (B×T×4H).
    """
    grads_BTR, keeping_BTH = _slopes(stretch)  # all but a factor, which is known step by step
    (rows, _, width), back_BH = grad_BTH.shape, torch.zeros_like(stretch.begin_BH)
    for t in reversed(range(grad_BTH.shape[1])):
        wanted_BH, grads_BR = grad_BTH[:, t] + back_BH, grads_BTR[:, t]
        grads_BR.view(rows, -1, width).mul_(wanted_BH[:, None])
        if t == 0 and not to_begin:
            return grads_BTR, None
        by_u_BG = grads_BR[:, -len(stretch.u_GH) :]
        if keeping_BTH is None:
            torch.mm(by_u_BG, stretch.u_GH, out=back_BH)
        else:
            torch.addmm(wanted_BH.mul_(keeping_BTH[:, t]), by_u_BG, stretch.u_GH, out=back_BH)
    return grads_BTR, back_BH


def _slopes(stretch: Stretch) -> tuple[Tensor, Tensor | None]:
    """How a state changes with what its gates were made of, of all steps, and with the state before it beside U (None: not)."""
    h_BTH = stretch.h_BTH
    if not stretch.gated:
        return 1 - h_BTH * h_BTH, None
    assert stretch.kept_BTH is not None
    width = h_BTH.shape[-1]
    z_BTH, r_BTH, candidate_BTH = stretch.gates_BTG.split(width, -1)
    slopes_BTR = h_BTH.new_empty(*h_BTH.shape[:2], 4 * width)
    by_candidate_BTH, by_z_BTH, by_r_BTH, by_u_BTH = slopes_BTR.split(width, -1)
    keeping_BTH = 1 - z_BTH
    torch.mul(z_BTH, 1 - candidate_BTH * candidate_BTH, out=by_candidate_BTH)
    torch.sub(candidate_BTH[:, 1:], h_BTH[:, :-1], out=by_z_BTH[:, 1:])
    torch.sub(candidate_BTH[:, 0], stretch.begin_BH, out=by_z_BTH[:, 0])
    by_z_BTH.mul_(z_BTH).mul_(keeping_BTH)
    torch.mul(by_candidate_BTH, r_BTH, out=by_u_BTH)
    torch.mul(by_u_BTH, 1 - r_BTH, out=by_r_BTH).mul_(stretch.kept_BTH)
    return slopes_BTR, keeping_BTH
