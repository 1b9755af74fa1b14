"""A layer of recurrent cells over a whole stretch on a CPU, its backward pass written out; `layers/cells.py` has the equations.

torch has a fused kernel for the LSTM alone; the steps of other cells it takes one small operation at a time, and goes back
through each of them. Here only what has to wait for the step before it is done step by step: U h and what the gates make of it,
in C (`recurrence_in_c.py`) or, without a compiler, by torch (`recurrence_by_steps.py`). W x + b is one product over all steps,
and so are the gradients of W, U and b. Inside, as with torch's own kernels, what belongs to one step lies together in memory.
Shapes: B rows, T steps, N = T × B, S = T + 1 states, X input width, H state width, G = gates × H, R the gradients of a step: H
or, of gated units, 4 H.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.hardware.races import Race, Work
from lmlab.hardware.tensors_for_c import can_take
from lmlab.layers import fast
from lmlab.layers.fast import recurrence_by_steps, recurrence_in_c
from lmlab.layers.fast.once import only_once
from lmlab.layers.fast.recurrence_by_steps import Stretch

LEAST_STEPS = 16  # for fewer, arranging U first takes longer than it saves


def can_scan(x_BTX: Tensor, begin_BH: Tensor, input_GX: Tensor, state_GH: Tensor, bias_G: Tensor | None) -> bool:
    """Whether `scan` takes these, and sooner than torch: many steps, and numbers of one precision in the memory of a CPU.

    Forward alone, torch's own steps are as fast as ours, but for those in C.
    """
    given = [g for g in (x_BTX, begin_BH, input_GX, state_GH, bias_G) if g is not None]
    as_they_are = fast.enabled and not torch.compiler.is_compiling() and not torch.is_autocast_enabled("cpu")
    right = as_they_are and all(can_take(g) and g.device.type == "cpu" and g.dtype == x_BTX.dtype for g in given)
    long = right and x_BTX.is_floating_point() and x_BTX.shape[1] >= LEAST_STEPS and x_BTX.numel() > 0
    return long and _belong_together(*given) and (_learning(given) or _in_c(state_GH, len(x_BTX)))


def _belong_together(x_BTX: Tensor, begin_BH: Tensor, input_GX: Tensor, state_GH: Tensor, *bias_G: Tensor) -> bool:
    """Whether all sizes are what the kernel takes them for: it would write beyond the end, where torch says what is wrong."""
    (rows, _, inputs), (outputs, width) = x_BTX.shape, state_GH.shape
    right = begin_BH.shape == (rows, width) and input_GX.shape == (outputs, inputs) and outputs in (width, 3 * width)
    return right and all(bias.shape == (outputs,) for bias in bias_G)


def scan(x_BTX: Tensor, begin_BH: Tensor, input_GX: Tensor, state_GH: Tensor, bias_G: Tensor | None) -> Tensor:
    """h after every input, B×T×H, of cells that begin with a state: one gate is `TanhCell`, three are `GRUCell`.

    Ask `can_scan` first.
    """
    given = (x_BTX, begin_BH, input_GX, state_GH, bias_G)
    if _learning(given):
        apply: Callable[..., Tensor] = _Scan.apply
        return apply(*given)
    stretch = _begun(x_BTX.transpose(0, 1).contiguous(), *given[1:], learning=False)
    _way(stretch).forward(stretch)
    return stretch.states_SBH[1:].transpose(0, 1)


def _learning(given: Iterable[Tensor | None]) -> bool:
    return torch.is_grad_enabled() and any(g is not None and g.requires_grad for g in given)


def _begun(
    x_TBX: Tensor, begin_BH: Tensor, input_GX: Tensor, state_GH: Tensor, bias_G: Tensor | None, *, learning: bool
) -> Stretch:
    """With W x + b of all steps where the gates will stand."""
    states_SBH = begin_BH.new_empty(len(x_TBX) + 1, *begin_BH.shape)
    states_SBH[0] = begin_BH
    kept_TBH = torch.empty_like(states_SBH[1:]) if learning and len(state_GH) > state_GH.shape[1] else None
    return Stretch(F.linear(x_TBX, input_GX, bias_G), states_SBH, state_GH.contiguous(), kept_TBH)


def _way(stretch: Stretch) -> ModuleType:
    in_c = _in_c(stretch.u_GH, stretch.gates_TBG.shape[1])
    return recurrence_in_c if in_c else recurrence_by_steps


def _in_c(state_GH: Tensor, rows: int) -> bool:
    """Whether there is a kernel for these in C, and it is faster here."""
    return recurrence_in_c.fits(state_GH, rows) and RACE.taken(state_GH.dtype)


def _ways_to_learn(dtype: torch.dtype) -> tuple[Work, Work]:
    """Gated units, forward and backward: 32 rows of 32 steps."""
    rows, steps, width = 32, 32, 128
    generator = torch.Generator().manual_seed(0)
    u_GH = (torch.randn(3 * width, width, generator=generator) / width**0.5).to(dtype)
    grad_TBH = torch.randn(steps, rows, width, generator=generator).to(dtype)

    def learned_from(way: ModuleType) -> Work:
        gates_TBG = torch.randn(steps, rows, 3 * width, generator=generator).to(dtype)
        stretch = Stretch(gates_TBG, grad_TBH.new_zeros(steps + 1, rows, width), u_GH, torch.empty_like(grad_TBH))

        def work() -> None:
            with torch.no_grad():
                way.forward(stretch)
                way.backward(stretch, grad_TBH, False)

        return work

    return learned_from(recurrence_in_c), learned_from(recurrence_by_steps)


RACE = Race("recurrent cells", recurrence_in_c.SOURCE, _ways_to_learn)


class _Scan(torch.autograd.Function):
    """Keeps the inputs, the states, the gates and, of gates that act after U, U h: nothing is computed twice."""

    @staticmethod
    def forward(
        ctx: Any, x_BTX: Tensor, begin_BH: Tensor, input_GX: Tensor, state_GH: Tensor, bias_G: Tensor | None
    ) -> Tensor:
        x_TBX = x_BTX.transpose(0, 1).contiguous()
        stretch = _begun(x_TBX, begin_BH, input_GX, state_GH, bias_G, learning=True)
        ctx.way = _way(stretch)
        ctx.way.forward(stretch)
        ctx.save_for_backward(x_TBX, input_GX, *stretch)
        return stretch.states_SBH[1:].transpose(0, 1)

    @staticmethod
    @only_once
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        x_TBX, input_GX, *kept = ctx.saved_tensors
        stretch = Stretch(*kept)
        with torch.autocast("cpu", enabled=False):  # the forward pass was without
            to_x, to_begin, to_w, to_u, to_b = ctx.needs_input_grad
            grads_TBR, begin_BH = ctx.way.backward(stretch, grads[0].transpose(0, 1).contiguous(), to_begin)
            outputs, width = stretch.u_GH.shape
            # Those of the candidate stand twice: first as W x wants them, and last as U h does, behind the reset gate.
            by_w_NG, by_u_NG = (part.flatten(0, 1) for part in (grads_TBR[..., :outputs], grads_TBR[..., -outputs:]))
            first_GX = input_GX.roll(width, 0) if to_x else None  # the candidate's block comes first there
            return (
                None if first_GX is None else (by_w_NG @ first_GX).view_as(x_TBX).transpose(0, 1),
                begin_BH,
                (by_w_NG.T @ x_TBX.flatten(0, 1)).roll(-width, 0) if to_w else None,
                by_u_NG.T @ stretch.states_SBH[:-1].flatten(0, 1) if to_u else None,
                by_w_NG.sum(0).roll(-width, 0) if to_b else None,
            )
