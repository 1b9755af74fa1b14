"""Large matrix products on a GPU that finish their results before they leave the chip: squared, multiplied, or turned.

The library takes a product, and for what follows another pass over memory. Twins: what `networks.py` and `rotation.py` of this
folder, which call these, stand beside. Shapes: N places, I inputs, O outputs, H of them hidden, D width of a head, T positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lmlab.layers.fast.triton_here import has_trades

FILLED = 256  # tiles of 128 places × 256 outputs: fewer leave much of a large GPU idle, and the library cuts finer
ALIGNED = 8  # numbers of bf16: the engine that copies tiles takes only rows that begin at multiples of 16 bytes


def fills_a_gpu(x_BTI: Tensor, outputs: int) -> bool:
    """Whether such a product can be taken here, and there is enough to do."""
    tiles = x_BTI.numel() // x_BTI.shape[-1] // 128 * (outputs // 256)
    fits = x_BTI.shape[-1] % ALIGNED == 0 and outputs % ALIGNED == 0
    return fits and tiles >= FILLED and x_BTI.dtype == torch.bfloat16 and x_BTI.is_cuda and has_trades()


@torch.library.custom_op("lmlab::squares", mutates_args=())
def squares(x_NI: Tensor, up_HI: Tensor) -> Tensor:
    """max(x upᵀ, 0)², N×H."""
    from lmlab.layers.fast._products_gluon import squares as made

    return made(x_NI.contiguous(), up_HI.contiguous())


@squares.register_fake
def _(x_NI: Tensor, up_HI: Tensor) -> Tensor:
    return x_NI.new_empty(len(x_NI), len(up_HI))


@torch.library.custom_op("lmlab::grown", mutates_args=())
def grown(grad_NO: Tensor, down_OH: Tensor, squared_NH: Tensor) -> Tensor:
    """2 √squared ∘ (grad down), N×H: what reaches the first layer's outputs of a gradient by the second's."""
    from lmlab.layers.fast._products_gluon import grown as made

    return made(grad_NO.contiguous(), down_OH.contiguous(), squared_NH)


@grown.register_fake
def _(grad_NO: Tensor, down_OH: Tensor, squared_NH: Tensor) -> Tensor:
    return torch.empty_like(squared_NH)


@torch.library.custom_op("lmlab::turned", mutates_args=())
def turned(x_NI: Tensor, weight_OI: Tensor, cos_TD: Tensor, sin_TD: Tensor) -> Tensor:
    """x weightᵀ, N×O: a third queries, a third keys, both turned by their positions (N modulo T), and a third values.

    Tables as `rotary_tables` makes them: of cos the first half of each row is read, of sin the second.
    """
    from lmlab.layers.fast._products_gluon import turned as made

    tables = (cos_TD.contiguous(), sin_TD.contiguous())
    return made(x_NI.contiguous(), weight_OI.contiguous(), *tables)


@turned.register_fake
def _(x_NI: Tensor, weight_OI: Tensor, cos_TD: Tensor, sin_TD: Tensor) -> Tensor:
    return x_NI.new_empty(len(x_NI), len(weight_OI))
