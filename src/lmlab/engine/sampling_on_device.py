"""Drawing tokens where the distributions lie, for all rows at once: what `engine/sampling.py` does for one row with NumPy.

Given the same numbers from [0, 1) both draw the same tokens. Shapes: B rows, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional as F

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.engine.options import Options


def draw_rows(logp_BV: Tensor, options: Options, uniform_B: Tensor) -> Tensor:
    """A token for each row, by the share of [0, 1) that its number falls into."""
    p_BV = kept_rows(logp_BV, options)
    ends_BV = p_BV.cumsum(-1)
    at_B1 = torch.searchsorted(ends_BV, uniform_B[:, None] * ends_BV[:, -1:], right=True)
    vocab = p_BV.shape[1]
    last_B = vocab - 1 - (p_BV.flip(-1) > 0).int().argmax(-1)  # the product may round up to the very end
    return torch.minimum(at_B1[:, 0], last_B)


def kept_rows(logp_BV: Tensor, options: Options) -> Tensor:
    """Weights of the tokens that may be drawn, float64, 0 for all others; they need not sum to 1."""
    logp_BV = logp_BV.double()
    p_BV = ((logp_BV - logp_BV.amax(-1, keepdim=True)) / options.temperature).exp()
    if options.top_k is not None and options.top_k < p_BV.shape[1]:
        least_B1 = logp_BV.topk(options.top_k).values[:, -1:]
        above_BV, equal_BV = logp_BV > least_B1, logp_BV == least_B1
        room_B1 = options.top_k - above_BV.sum(-1, keepdim=True)
        p_BV = p_BV * (above_BV | (equal_BV & (equal_BV.cumsum(-1) <= room_B1)))
    if options.top_p is not None and options.top_p < 1:
        sorted_BV, order_BV = p_BV.sort(dim=-1, descending=True, stable=True)
        before_BV = F.pad(sorted_BV.cumsum(-1)[:, :-1], (1, 0))  # what the likelier tokens hold
        wanted_BV = before_BV < options.top_p * p_BV.sum(-1, keepdim=True)
        p_BV = p_BV * torch.zeros_like(wanted_BV).scatter(1, order_BV, wanted_BV)
    if options.min_p is not None:
        p_BV = p_BV * (p_BV >= options.min_p * p_BV.amax(-1, keepdim=True))
    return p_BV
