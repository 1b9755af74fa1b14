"""Attention weights written out, which a fused kernel never does, and the kernel's own, got out of it by a trick.

Shapes: B rows, H heads, T queries, S keys, D width of a head, C keys in reach of a query.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.layers.composition import visible


class Way(Enum):
    """Where a layer looks, and so what asks in row t of its weights and what the columns are."""

    BACK = "back"  # at what was read: token t - 1 asks, to predict token t
    AROUND = "around"  # at everything in its window: place t asks, itself one of those that it sees
    ACROSS = "across"  # at another text: what asks is to predict token t of the target, and sees the source


@dataclass(frozen=True, kw_only=True, eq=False)
class Looks:
    """What the heads of one layer looked at while a text was read.

    Column c of row t is about place first_T[t] + c of what is looked at; up to begins_T[t] it is the begin symbol that stands
    there. A row sums to 1, or to 0 where there was nothing to look at.
    """

    name: str
    weights_HTC: Tensor
    first_T: Tensor
    begins_T: Tensor
    difference: float  # the largest, between these weights and what the fast kernel made of its own
    way: Way = Way.BACK

    @classmethod
    def of_all(cls, name: str, weights_1HTS: Tensor, difference: float, way: Way) -> Looks:
        """Every row sees all places, from the first on; nothing stands before them."""
        first_T = torch.zeros(weights_1HTS.shape[2], dtype=torch.long, device=weights_1HTS.device)
        weights_HTC = weights_1HTS[0]
        return cls(
            name=name,
            weights_HTC=weights_HTC,
            first_T=first_T,
            begins_T=first_T - 1,
            difference=difference,
            way=way,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Unfolded:
    """What one head did with N inputs: weights_NN of value_DD times x_ND, which the kernel gave as y_ND.

    head_width: of its queries, keys and values.
    """

    x_ND: Tensor
    weights_NN: Tensor
    value_DD: Tensor
    y_ND: Tensor
    head_width: int


def written_out(q_BHTD: Tensor, k_BHSD: Tensor, *, causal: bool = False, window: int | None = None) -> Tensor:
    """softmax(Q Kᵀ / √D + mask), B×H×T×S: every query with all keys, or (causal) with itself and those before it.

    window: how many positions a causal query sees, itself included; None: all.
    """
    scores_BHTS = q_BHTD @ k_BHSD.mT * q_BHTD.shape[-1] ** -0.5
    if causal:
        queries, keys = scores_BHTS.shape[2:]
        seen_TS = visible(queries, keys, window, q_BHTD.device)
        scores_BHTS = scores_BHTS.masked_fill(~seen_TS, -torch.inf)
    return scores_BHTS.softmax(-1)


def kernel_weights(q_BHTD: Tensor, k_BHSD: Tensor, *, causal: bool = False, mask: Tensor | None = None) -> Tensor:
    """The weights that the fused kernel used: averages of values that are 1 at one key and 0 at the others.

    As many keys at a time as a head is wide, and with the mask that the model gives it, so that it is the same kernel that
    the model calls.
    """
    length, width = k_BHSD.shape[2:]
    found = []
    for first in range(0, length, width):
        one_SD = torch.eye(length, device=q_BHTD.device)[:, first : first + width]
        v_BHSD = F.pad(one_SD, (0, width - one_SD.shape[1])).expand_as(k_BHSD).contiguous()
        found.append(F.scaled_dot_product_attention(q_BHTD, k_BHSD, v_BHSD, attn_mask=mask, is_causal=causal))
    return torch.cat(found, dim=-1)[..., :length]


def looked(
    q_BHTD: Tensor, k_BHSD: Tensor, *, causal: bool = False, mask: Tensor | None = None, window: int | None = None
) -> tuple[Tensor, float]:
    """The weights written out, and how far the fused kernel is from them at most.

    mask: hides nothing; the model gives one. window: as in `written_out`.
    """
    weights_BHTS = written_out(q_BHTD, k_BHSD, causal=causal, window=window)
    if window is not None and window < k_BHSD.shape[2]:  # the kernel is given the window as a mask
        causal, mask = False, visible(q_BHTD.shape[2], k_BHSD.shape[2], window, q_BHTD.device)
    return weights_BHTS, float((weights_BHTS - kernel_weights(q_BHTD, k_BHSD, causal=causal, mask=mask)).abs().max())


@contextmanager
def silenced(out_DD: Tensor, heads: int, head: int) -> Iterator[None]:
    """While it lasts, what this head found is not added. out_DD: the matrix that reads what all heads found, side by side."""
    width = out_DD.shape[1] // heads
    mine = slice(head * width, (head + 1) * width)
    with torch.no_grad():  # torch counts the change, so that nobody goes on with a copy made before it
        kept = out_DD[:, mine].clone()
        out_DD[:, mine] = 0.0
    try:
        yield
    finally:
        with torch.no_grad():
            out_DD[:, mine] = kept
