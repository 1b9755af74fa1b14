"""How a Transformer knows where a token stands: sinusoidal, learned or rotary positions."""

from __future__ import annotations

import torch
from torch import Tensor

from lmlab.config import Mistake

Rotation = tuple[Tensor, Tensor]  # cos_TD, sin_TD of these positions: see `rotary_tables`


def sinusoidal_table(length: int, width: int) -> Tensor:
    """The fixed encoding of Vaswani 2017, length × width, float32.

    PE(pos, 2i) = sin(pos / 10000^(2i/width)), PE(pos, 2i+1) = cos(same): i counts pairs, not dimensions.
    For a fixed offset k, PE(pos + k) is a rotation of PE(pos) that depends on k alone.
    """
    angles = _angles(length, width)
    table = torch.zeros(length, width)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : width // 2]
    return table


def rotary_tables(length: int, head_width: int, base: float = 10_000.0) -> tuple[Tensor, Tensor]:
    """(cos, sin), each length × head_width: rotating queries and keys by these makes scores depend on distance alone.

    head_width: as much of a head as is turned. base: pair i turns by base^(-2i/head_width) with each position.

    The pairs that are turned are (x_i, x_{i + head_width/2}); the sign is part of sin: x ∘ cos + swapped halves of x ∘ sin.
    """
    if head_width % 2 or not head_width:
        raise Mistake(
            f"rotary positions need an even width per head; got {head_width}: change width, heads or rotary_share",
            code="rotary-width-odd",
        )
    angles = _angles(length, head_width, base)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([cos, cos], dim=1), torch.cat([-sin, sin], dim=1)


def _angles(length: int, width: int, base: float = 10_000.0) -> Tensor:
    """Position times frequency, length × ceil(width/2); float64 inside, so that far positions keep their phase."""
    pair = torch.arange((width + 1) // 2, dtype=torch.float64)
    frequency = base ** (-2 * pair / width)
    return torch.outer(torch.arange(length, dtype=torch.float64), frequency).float()
