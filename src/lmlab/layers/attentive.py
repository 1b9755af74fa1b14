"""A tanh recurrence that attends over its own past states, step by step.

Shapes: B rows, T steps, H state width, A width of the additive score, P past states at the start, w states in view at a step
(at most `reach`).

    s_t = tanh(d_t + U h_{t-1})                            d_t: what the input contributes
    e_{t,l} = score(s_t, m_l)                              l: the last `reach` states before t
    α_t = softmax(e_t),   a_t = Σ_l α_{t,l} m_l            a_t = 0 where there is no state before t
    h_t = s_t + a_t
    m_t = s_t, or h_t where `combined`

Scores: scale × s·m with scale 1 or 1/√H, or additive, vᵀ tanh(W₁ s + W₂ m).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.formulas import Part, Shape, Size, Work, product, shared_out, smaller
from lmlab.layers import fast
from lmlab.layers.fast.attentive import Additive, Rule, scan

STEPS_AT_ONCE = 512  # whose states are laid side by side when weights are asked for


def attentive_scan(
    drive_BTH: Tensor, h_BH: Tensor, past_BPH: Tensor, state_HH: Tensor, additive: Additive | None, rule: Rule
) -> tuple[Tensor, Tensor]:
    """(h_t for every step B×T×H, the last `reach` states m for the next stretch, cut off from the graph).

    Differentiable in everything that is given. The equations are at the top of this file.
    """
    way = scan if fast.enabled else step_by_step
    return way(drive_BTH, h_BH, past_BPH, state_HH, additive, rule)


def step_by_step(
    drive_BTH: Tensor, h_BH: Tensor, past_BPH: Tensor, state_HH: Tensor, additive: Additive | None, rule: Rule
) -> tuple[Tensor, Tensor]:
    """The equations alone, for automatic differentiation; slow."""
    states, outputs = list(past_BPH.unbind(1)), []
    keys: list[Tensor] = []
    for drive_BH in drive_BTH.unbind(1):
        s_BH = torch.tanh(drive_BH + F.linear(h_BH, state_HH))
        h_BH = s_BH
        if states:
            m_BwH = torch.stack(states[-rule.reach :], dim=1)
            if additive is None:
                e_Bw = rule.scale * (m_BwH @ s_BH[:, :, None])[..., 0]
            else:
                keys += [F.linear(m_BH, additive.key_AH) for m_BH in states[len(keys) :]]  # W₂ m, once for each state
                keys_BwA = torch.stack(keys[-rule.reach :], dim=1)
                hidden_BwA = torch.tanh(F.linear(s_BH, additive.query_AH)[:, None] + keys_BwA)
                e_Bw = hidden_BwA @ additive.v_A
            h_BH = s_BH + (e_Bw.softmax(-1)[:, None] @ m_BwH)[:, 0]
        states.append(h_BH if rule.combined else s_BH)
        outputs.append(h_BH)
    return torch.stack(outputs, dim=1), torch.stack(states[-rule.reach :], dim=1).detach()


def attended(
    drive_TH: Tensor, h_TH: Tensor, state_HH: Tensor, additive: Additive | None, rule: Rule
) -> tuple[Tensor, float]:
    """(α_{t,l} of a text read from its beginning, T×reach, how far Σ α m is from what the scan added at most).

    h_TH: what `attentive_scan` made of it. Column c of row t is of step t - reach + c; steps before the first have weight 0.
    """
    before_TH = F.pad(h_TH[:-1], (0, 0, 1, 0))
    s_TH = torch.tanh(drive_TH + F.linear(before_TH, state_HH))
    padded_SH = F.pad(h_TH if rule.combined else s_TH, (0, 0, rule.reach, 0))
    alpha_TR, difference = s_TH.new_zeros(len(s_TH), rule.reach), 0.0
    for first in range(0, len(s_TH), STEPS_AT_ONCE):
        part = slice(first, min(first + STEPS_AT_ONCE, len(s_TH)))
        m_TRH = padded_SH[first : part.stop + rule.reach - 1].unfold(0, rule.reach, 1).transpose(1, 2)
        if additive is None:
            e_TR = rule.scale * (m_TRH @ s_TH[part, :, None])[..., 0]
        else:
            query_TA = F.linear(s_TH[part], additive.query_AH)
            e_TR = torch.tanh(query_TA[:, None] + F.linear(m_TRH, additive.key_AH)) @ additive.v_A
        steps_TR = torch.arange(first, part.stop, device=e_TR.device)[:, None]
        steps_TR = steps_TR - rule.reach + torch.arange(rule.reach, device=e_TR.device)
        alpha_TR[part] = (
            e_TR.masked_fill(steps_TR < 0, -torch.inf).softmax(-1).nan_to_num(0.0)
        )  # the first sees nothing
        made_TH = s_TH[part] + (alpha_TR[part, None] @ m_TRH)[:, 0]
        difference = max(difference, float((made_TH - h_TH[part]).abs().max()))
    return alpha_TR, difference


def attentive_part(width: Size, memory: Size, score_width: Size | None, shape: Shape) -> Part:
    """Scores and averages over the states in memory; score_width: of the additive score, which has weights.

    Step t sees w_t = min(memory, past + t) states, so Σ w_t = n·past + n(n-1)/2 + (T-n)·memory with n = min(T, memory - past).
    Nothing flows back into the states that were given at the start, which are all that the first step sees.
    """
    steps, rows, past = shape.tokens, shape.rows, smaller(memory, shape.past)
    rising = smaller(steps, memory - past)
    seen = rising * past + shared_out(rising * (rising - 1), 2) + (steps - rising) * memory

    def over_states(width: Size) -> Work:
        """Of one product of this width with every state that is seen."""
        once = 2 * rows * width
        return Work(once * seen, once * (2 * seen - past))

    work = over_states(width)  # the averages
    if score_width is None:
        return Part("attention", 0, 2 * memory * width, work + over_states(width))
    queries = steps - 1 + smaller(1, past)  # there is nothing to ask where no state is known yet
    work += product(rows * queries, width, score_width)  # W₁ s
    work += product(rows * (steps - 1), width, score_width) + product(rows * past, width, score_width, wanted=1)  # W₂ m
    scores = 2 * rows * seen * score_width
    work += Work(scores, scores)  # with v; back to the hidden layer it is an outer product, which is no sum
    return Part("attention", 2 * width * score_width + score_width, 2 * memory * width, work)
