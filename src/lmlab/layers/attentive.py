"""A tanh recurrence that attends over its own past states, step by step, with its backward pass written out.

Shapes: B rows, T steps, H state width, A width of the additive score, P past states at the start, S = P + T states in
all, w states in view at a step (at most `reach`).

    s_t = tanh(d_t + U h_{t-1})                            d_t: what the input contributes
    e_{t,l} = score(s_t, m_l)                              l: the last `reach` states before t
    α_t = softmax(e_t),   a_t = Σ_l α_{t,l} m_l            a_t = 0 where there is no state before t
    h_t = s_t + a_t
    m_t = s_t, or h_t where `combined`

Scores (lab11 problem 5): scale × s·m with scale 1 or 1/√H, or additive, vᵀ tanh(W₁ s + W₂ m).

Every step needs the one before it, so the loop is in Python; everything in it is over all rows at once, and what does not
depend on the order (d, the gradients of U, W₁ and W₂) is left out of it. Automatic differentiation would keep a copy of
the states in view for every step; written by hand, the backward pass needs only the states themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


class Additive(NamedTuple):
    """W₁, W₂ and v of the additive score."""

    query_AH: Tensor
    key_AH: Tensor
    v_A: Tensor


class Rule(NamedTuple):
    """How to attend: how far back, with which scale (unused by the additive score), over which states, how precisely."""

    reach: int
    scale: float
    combined: bool
    product_dtype: torch.dtype  # of U h; the rest is in the precision of the inputs


def attentive_scan(
    drive_BTH: Tensor, h_BH: Tensor, past_BPH: Tensor, state_HH: Tensor, additive: Additive | None, rule: Rule
) -> tuple[Tensor, Tensor]:
    """(h_t for every step B×T×H, the last `reach` states m for the next stretch, cut off from the graph).

    Differentiable in everything that is given. The equations are at the top of this file.
    """
    h_BTH, states_BSH = _Scan.apply(drive_BTH, h_BH, past_BPH, state_HH, *(additive or (None, None, None)), rule)
    return h_BTH, states_BSH[:, -rule.reach :]


def step_by_step(
    drive_BTH: Tensor, h_BH: Tensor, past_BPH: Tensor, state_HH: Tensor, additive: Additive | None, rule: Rule
) -> tuple[Tensor, Tensor]:
    """The same by the equations alone, for automatic differentiation; slow. Tests hold `attentive_scan` to it."""
    states, outputs = list(past_BPH.unbind(1)), []
    for drive_BH in drive_BTH.unbind(1):
        s_BH = torch.tanh(drive_BH + F.linear(h_BH, state_HH))
        h_BH = s_BH
        if states:
            m_BwH = torch.stack(states[-rule.reach :], dim=1)
            if additive is None:
                e_Bw = rule.scale * (m_BwH @ s_BH[:, :, None])[..., 0]
            else:
                hidden_BwA = torch.tanh(F.linear(s_BH, additive.query_AH)[:, None] + F.linear(m_BwH, additive.key_AH))
                e_Bw = hidden_BwA @ additive.v_A
            h_BH = s_BH + (e_Bw.softmax(-1)[:, None] @ m_BwH)[:, 0]
        states.append(h_BH if rule.combined else s_BH)
        outputs.append(h_BH)
    return torch.stack(outputs, dim=1), torch.stack(states[-rule.reach :], dim=1).detach()


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
        u_HH = state_HH.T.to(rule.product_dtype)
        m_BSH = drive_BTH.new_empty(rows, past + steps, width)
        m_BSH[:, :past] = past_BPH
        key_BSA = None
        if key_AH is not None:
            key_BSA = drive_BTH.new_empty(rows, past + steps, len(key_AH))
            key_BSA[:, :past] = past_BPH @ key_AH.T
        s_TBH, h_TBH = drive_BTH.new_empty(steps, rows, width), drive_BTH.new_empty(steps + 1, rows, width)
        alpha_TBw = drive_BTH.new_zeros(steps, rows, rule.reach)
        h_TBH[0] = h_BH
        for t in range(steps):
            view = slice(max(0, past + t - rule.reach), past + t)
            s_BH, next_BH = s_TBH[t], h_TBH[t + 1]
            torch.tanh(drive_BTH[:, t] + h_TBH[t].to(u_HH.dtype) @ u_HH, out=s_BH)
            if view.stop == 0:
                next_BH.copy_(s_BH)
            else:
                m_BwH = m_BSH[:, view]
                if key_BSA is None:
                    e_Bw = torch.bmm(m_BwH, s_BH[:, :, None])[..., 0] * rule.scale
                else:
                    e_Bw = torch.tanh(key_BSA[:, view] + (s_BH @ query_AH.T)[:, None]) @ v_A
                alpha_Bw = e_Bw.softmax(-1)
                alpha_TBw[t, :, : view.stop - view.start] = alpha_Bw
                torch.baddbmm(s_BH[:, None], alpha_Bw[:, None], m_BwH, out=next_BH[:, None])
            m_BSH[:, past + t] = next_BH if rule.combined else s_BH
            if key_BSA is not None:
                key_BSA[:, past + t] = m_BSH[:, past + t] @ key_AH.T
        ctx.save_for_backward(s_TBH, h_TBH, alpha_TBw, m_BSH, key_BSA, state_HH, query_AH, key_AH, v_A)
        ctx.rule = rule
        ctx.mark_non_differentiable(m_BSH)
        return h_TBH[1:].transpose(0, 1).contiguous(), m_BSH

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh_BTH: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        """Back through time: every state collects what later steps want of it, and is then settled itself."""
        s_TBH, h_TBH, alpha_TBw, m_BSH, key_BSA, state_HH, query_AH, key_AH, v_A = ctx.saved_tensors
        rule: Rule = ctx.rule
        (steps, rows, width), past = s_TBH.shape, m_BSH.shape[1] - s_TBH.shape[0]
        u_HH = state_HH.to(rule.product_dtype)
        dm_BSH, dkey_BSA = torch.zeros_like(m_BSH), None if key_BSA is None else torch.zeros_like(key_BSA)
        du_TBH = torch.empty_like(s_TBH)
        dq_TBA = None if query_AH is None else s_TBH.new_zeros(steps, rows, len(query_AH))
        dv_A = None if v_A is None else torch.zeros_like(v_A)
        back_BH = torch.zeros_like(s_TBH[0])
        for t in reversed(range(steps)):
            view = slice(max(0, past + t - rule.reach), past + t)
            s_BH, dh_BH = s_TBH[t], dh_BTH[:, t] + back_BH
            if dkey_BSA is not None:
                dm_BSH[:, past + t] += dkey_BSA[:, past + t] @ key_AH
            if rule.combined:
                dh_BH = dh_BH + dm_BSH[:, past + t]
                ds_BH = dh_BH
            else:
                ds_BH = dh_BH + dm_BSH[:, past + t]
            if view.stop:
                m_BwH, alpha_Bw = m_BSH[:, view], alpha_TBw[t, :, : view.stop - view.start]
                dalpha_Bw = torch.bmm(m_BwH, dh_BH[:, :, None])[..., 0]
                de_Bw = alpha_Bw * (dalpha_Bw - (alpha_Bw * dalpha_Bw).sum(-1, keepdim=True))
                if key_BSA is None:
                    de_Bw *= rule.scale
                    ds_BH = torch.baddbmm(ds_BH[:, None], de_Bw[:, None], m_BwH)[:, 0]
                    wanted_Bw2 = torch.stack([alpha_Bw, de_Bw], dim=-1)
                    dm_BSH[:, view].baddbmm_(wanted_Bw2, torch.stack([dh_BH, s_BH], dim=1))
                else:
                    hidden_BwA = torch.tanh(key_BSA[:, view] + (s_BH @ query_AH.T)[:, None])
                    dv_A += torch.einsum("bw,bwa->a", de_Bw, hidden_BwA)
                    dsum_BwA = de_Bw[..., None] * v_A * (1 - hidden_BwA * hidden_BwA)
                    dkey_BSA[:, view] += dsum_BwA
                    dq_TBA[t] = dsum_BwA.sum(1)
                    ds_BH = ds_BH + dq_TBA[t] @ query_AH
                    dm_BSH[:, view].baddbmm_(alpha_Bw[..., None], dh_BH[:, None])
            du_BH = torch.mul(ds_BH, 1 - s_BH * s_BH, out=du_TBH[t])
            back_BH = (du_BH.to(u_HH.dtype) @ u_HH).to(s_BH.dtype)
        dm_past_BPH = dm_BSH[:, :past]
        dquery_AH = dkey_AH = None
        if dkey_BSA is not None:
            dm_past_BPH = dm_past_BPH + dkey_BSA[:, :past] @ key_AH
            dquery_AH = torch.einsum("tba,tbh->ah", dq_TBA, s_TBH)
            dkey_AH = torch.einsum("bsa,bsh->ah", dkey_BSA, m_BSH)
        du_NH, before_NH = du_TBH.flatten(0, 1).to(u_HH.dtype), h_TBH[:-1].flatten(0, 1).to(u_HH.dtype)
        dstate_HH = (du_NH.T @ before_NH).to(state_HH.dtype)
        return du_TBH.transpose(0, 1), back_BH, dm_past_BPH, dstate_HH, dquery_AH, dkey_AH, dv_A, None
