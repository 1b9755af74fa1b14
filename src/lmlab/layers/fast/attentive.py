"""The recurrence of `layers/attentive.py`, which has the equations and the plain twin, with its backward pass written out.

Shapes as there, and S = P + T states in all.

Every step needs the one before it, so the loop is in Python; everything in it is over all rows at once, and what does not
depend on the order (d, the gradients of U, W₁ and W₂) is left out of it. Automatic differentiation would keep a copy of
the states in view for every step; written by hand, the backward pass needs only the states themselves. All of it is in
the precision of the inputs: the products of one step are too small for bf16 to gain anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lmlab.layers.fast.once import only_once

FEW_ROWS = 4  # that are read one after the other


class Additive(NamedTuple):
    """W₁, W₂ and v of the additive score."""

    query_AH: Tensor
    key_AH: Tensor
    v_A: Tensor


class Rule(NamedTuple):
    """How to attend: how far back, with which scale (unused by the additive score), and over which states."""

    reach: int
    scale: float
    combined: bool


def scan(
    drive_BTH: Tensor, h_BH: Tensor, past_BPH: Tensor, state_HH: Tensor, additive: Additive | None, rule: Rule
) -> tuple[Tensor, Tensor]:
    """As `attentive_scan` of `layers/attentive.py`."""
    if len(drive_BTH) <= FEW_ROWS and drive_BTH.device.type == "cpu" and not torch.is_grad_enabled():
        h_BTH, states_BSH = _read(drive_BTH, h_BH, past_BPH, state_HH, additive, rule)
        return h_BTH, states_BSH[:, -rule.reach :]
    apply: Callable[..., tuple[Tensor, Tensor]] = _Scan.apply
    h_BTH, states_BSH = apply(drive_BTH, h_BH, past_BPH, state_HH, *(additive or (None, None, None)), rule)
    return h_BTH, states_BSH[:, -rule.reach :]


def _read(
    drive_BTH: Tensor, h_BH: Tensor, past_BPH: Tensor, state_HH: Tensor, additive: Additive | None, rule: Rule
) -> tuple[Tensor, Tensor]:
    """Forward alone, for few rows on a CPU: nearly all the time is asking, and NumPy is asked several times faster."""
    (rows, steps, width), past = drive_BTH.shape, past_BPH.shape[1]
    states_BSH, h_BTH = drive_BTH.new_empty(rows, past + steps, width), torch.empty_like(drive_BTH)
    states_BSH[:, :past] = past_BPH
    u_HH = np.ascontiguousarray(*_arrays(state_HH.T))
    for drive_TH, m_SH, h_TH, h_H in zip(*_arrays(drive_BTH, states_BSH, h_BTH, h_BH), strict=True):
        score = _few_scores(m_SH, past, additive, rule.scale)
        for t in range(steps):
            view_wH = m_SH[max(0, past + t - rule.reach) : past + t]
            s_H = np.tanh(h_H @ u_HH + drive_TH[t])
            h_H = s_H
            if len(view_wH):
                e_w = score(s_H, past + t, len(view_wH))
                e_w = np.exp(e_w - e_w.max())
                h_H = s_H + (e_w @ view_wH) / e_w.sum()
            h_TH[t] = h_H
            m_SH[past + t] = h_H if rule.combined else s_H
    return h_BTH, states_BSH


def _few_scores(
    m_SH: np.ndarray, known: int, additive: Additive | None, scale: float
) -> Callable[[np.ndarray, int, int], np.ndarray]:
    """The scores of the last `count` states before a place, as they are asked for one place after the other."""
    if additive is None:
        factor = m_SH.dtype.type(scale)
        return lambda s_H, place, count: m_SH[place - count : place] @ (factor * s_H)
    query_AH, key_AH, v_A = _arrays(*additive)
    keys_SA = np.empty((len(m_SH), len(v_A)), dtype=m_SH.dtype)
    written = known
    keys_SA[:known] = m_SH[:known] @ key_AH.T

    def scores(s_H: np.ndarray, place: int, count: int) -> np.ndarray:
        nonlocal written
        while written < place:
            keys_SA[written] = key_AH @ m_SH[written]
            written += 1
        return np.tanh(keys_SA[place - count : place] + query_AH @ s_H) @ v_A

    return scores


def _arrays(*tensors: Tensor) -> list[np.ndarray]:
    """The same memory, as NumPy sees it."""
    return [tensor.detach().numpy() for tensor in tensors]


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        drive_BTH: Tensor,
        h_BH: Tensor,
        past_BPH: Tensor,
        state_HH: Tensor,
        query_AH: Tensor | None,
        key_AH: Tensor | None,
        v_A: Tensor | None,
        rule: Rule,
    ) -> tuple[Tensor, Tensor]:
        (rows, steps, width), past = drive_BTH.shape, past_BPH.shape[1]
        u_HH = state_HH.T.contiguous()
        m_BSH = drive_BTH.new_empty(rows, past + steps, width)
        m_BSH[:, :past] = past_BPH
        score = _score(m_BSH, past, query_AH, key_AH, v_A, rule)
        s_TBH, h_TBH = drive_BTH.new_empty(steps, rows, width), drive_BTH.new_empty(steps + 1, rows, width)
        alpha_TBw = drive_BTH.new_zeros(steps, rows, rule.reach)
        h_TBH[0] = h_BH
        for t in range(steps):
            view = slice(max(0, past + t - rule.reach), past + t)
            s_BH, next_BH = s_TBH[t], h_TBH[t + 1]
            torch.tanh(torch.addmm(drive_BTH[:, t], h_TBH[t], u_HH), out=s_BH)
            if view.stop:
                alpha_Bw = score.of(s_BH, view).softmax(-1)
                alpha_TBw[t, :, : view.stop - view.start] = alpha_Bw
                torch.baddbmm(s_BH[:, None], alpha_Bw[:, None], m_BSH[:, view], out=next_BH[:, None])
            else:
                next_BH.copy_(s_BH)
            m_BSH[:, past + t] = next_BH if rule.combined else s_BH
            score.enter(past + t)
        ctx.save_for_backward(s_TBH, h_TBH, alpha_TBw, m_BSH, state_HH, query_AH, key_AH, v_A)
        ctx.rule = rule
        ctx.mark_non_differentiable(m_BSH)
        return h_TBH[1:].transpose(0, 1).contiguous(), m_BSH

    @staticmethod
    @only_once
    def backward(ctx: Any, dh_BTH: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        """Back through time: a state collects what all later steps want of it, and then is settled itself."""
        s_TBH, h_TBH, alpha_TBw, m_BSH, state_HH, query_AH, key_AH, v_A = ctx.saved_tensors
        rule: Rule = ctx.rule
        steps, past = len(s_TBH), m_BSH.shape[1] - len(s_TBH)
        score = _score(m_BSH, m_BSH.shape[1], query_AH, key_AH, v_A, rule)
        dm_BSH, du_TBH, back_BH = torch.zeros_like(m_BSH), torch.empty_like(s_TBH), torch.zeros_like(s_TBH[0])
        for t in reversed(range(steps)):
            view = slice(max(0, past + t - rule.reach), past + t)
            s_BH, dh_BH = s_TBH[t], dh_BTH[:, t] + back_BH
            score.settle(slice(past + t, past + t + 1), dm_BSH)
            ds_BH = dh_BH + dm_BSH[:, past + t]
            if rule.combined:
                dh_BH = ds_BH
            if view.stop:
                alpha_Bw = alpha_TBw[t, :, : view.stop - view.start]
                dalpha_Bw = torch.bmm(m_BSH[:, view], dh_BH[:, :, None])[..., 0]
                de_Bw = alpha_Bw * (dalpha_Bw - (alpha_Bw * dalpha_Bw).sum(-1, keepdim=True))
                dm_BSH[:, view].baddbmm_(alpha_Bw[..., None], dh_BH[:, None])
                ds_BH = ds_BH + score.back(s_BH, view, de_Bw, dm_BSH)
            du_BH = torch.mul(ds_BH, 1 - s_BH * s_BH, out=du_TBH[t])
            back_BH = du_BH @ state_HH
        score.settle(slice(0, past), dm_BSH)
        dstate_HH = du_TBH.flatten(0, 1).T @ h_TBH[:-1].flatten(0, 1)
        return du_TBH.transpose(0, 1), back_BH, dm_BSH[:, :past], dstate_HH, *score.gradients(), None


class _Dot:
    """e = scale × m · s."""

    def __init__(self, m_BSH: Tensor, scale: float) -> None:
        self.m_BSH, self.scale = m_BSH, scale

    def of(self, s_BH: Tensor, view: slice) -> Tensor:
        """Scores B×w of the states in view."""
        return torch.bmm(self.m_BSH[:, view], s_BH[:, :, None])[..., 0] * self.scale

    def enter(self, place: int) -> None:
        """A state was written at this place."""

    def back(self, s_BH: Tensor, view: slice, de_Bw: Tensor, dm_BSH: Tensor) -> Tensor:
        """The gradient by s, from that by the scores; that by the states is added to dm."""
        de_Bw = de_Bw * self.scale
        dm_BSH[:, view].baddbmm_(de_Bw[..., None], s_BH[:, None])
        return torch.bmm(de_Bw[:, None], self.m_BSH[:, view])[:, 0]

    def settle(self, places: slice, dm_BSH: Tensor) -> None:
        """No later step will ask for these states again."""

    def gradients(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """By W₁, W₂ and v: there are none."""
        return None, None, None


class _AdditiveScore:
    """e = vᵀ tanh(W₁ s + W₂ m). W₂ m is worked out once for each state."""

    def __init__(self, m_BSH: Tensor, known: int, query_AH: Tensor, key_AH: Tensor, v_A: Tensor) -> None:
        self.m_BSH, self.query_AH, self.key_AH, self.v_A = m_BSH, query_AH, key_AH, v_A
        self.keys_BSA = m_BSH.new_empty(*m_BSH.shape[:2], len(v_A))
        self.keys_BSA[:, :known] = m_BSH[:, :known] @ key_AH.T
        self.dkeys_BSA: Tensor | None = None
        self.dquery_AH, self.dv_A = torch.zeros_like(query_AH), torch.zeros_like(v_A)

    def of(self, s_BH: Tensor, view: slice) -> Tensor:
        """Scores B×w of the states in view."""
        return self._hidden(s_BH, view) @ self.v_A

    def enter(self, place: int) -> None:
        """A state was written at this place."""
        self.keys_BSA[:, place] = self.m_BSH[:, place] @ self.key_AH.T

    def back(self, s_BH: Tensor, view: slice, de_Bw: Tensor, dm_BSH: Tensor) -> Tensor:
        """The gradient by s, from that by the scores; that by W₂ m is kept until a state is settled."""
        if self.dkeys_BSA is None:
            self.dkeys_BSA = torch.zeros_like(self.keys_BSA)
        hidden_BwA = self._hidden(s_BH, view)
        self.dv_A += torch.einsum("bw,bwa->a", de_Bw, hidden_BwA)
        dsum_BwA = de_Bw[..., None] * self.v_A * (1 - hidden_BwA * hidden_BwA)
        self.dkeys_BSA[:, view] += dsum_BwA
        dquery_BA = dsum_BwA.sum(1)
        self.dquery_AH += dquery_BA.T @ s_BH
        return dquery_BA @ self.query_AH

    def settle(self, places: slice, dm_BSH: Tensor) -> None:
        """No later step will ask for these states again."""
        if self.dkeys_BSA is not None:
            dm_BSH[:, places] += self.dkeys_BSA[:, places] @ self.key_AH

    def gradients(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """By W₁, W₂ and v."""
        if self.dkeys_BSA is None:
            return self.dquery_AH, torch.zeros_like(self.key_AH), self.dv_A
        return self.dquery_AH, torch.einsum("bsa,bsh->ah", self.dkeys_BSA, self.m_BSH), self.dv_A

    def _hidden(self, s_BH: Tensor, view: slice) -> Tensor:
        return torch.tanh(self.keys_BSA[:, view] + (s_BH @ self.query_AH.T)[:, None])


def _score(
    m_BSH: Tensor, known: int, query_AH: Tensor | None, key_AH: Tensor | None, v_A: Tensor | None, rule: Rule
) -> _Dot | _AdditiveScore:
    """The score over these states, of which the first `known` are written already."""
    if query_AH is None or key_AH is None or v_A is None:
        return _Dot(m_BSH, rule.scale)
    return _AdditiveScore(m_BSH, known, query_AH, key_AH, v_A)
