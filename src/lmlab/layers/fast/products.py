"""Large matrix products on a GPU that finish their results before they leave the chip: squared, multiplied, or turned.

The library takes a product, and for what follows another pass over memory. Twins: what `networks.py` and `rotation.py` of
this folder, which call these, stand beside. Shapes: N places, I inputs, O outputs, H of them hidden,
D width of a head, T positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lmlab.layers.fast.triton_here import has_trades

TILE = 128, 256  # places and outputs that are finished together
FILLED = 256  # tiles: fewer leave much of a large GPU idle, and the library cuts finer
ALIGNED = 8  # numbers of bf16: the engine that copies tiles takes only rows that begin at multiples of 16 bytes


def fills_a_gpu(x_BTI: Tensor, *weights: Tensor) -> bool:
    """Whether the product with the first of the weights can be taken here, and there is enough to do.

    The others are those whose gradients come back by such a product.
    """
    alike = all(w.dtype == x_BTI.dtype and w.device == x_BTI.device for w in weights)
    if not alike or x_BTI.dtype != torch.bfloat16 or not x_BTI.is_cuda:
        return False
    aligned = all(size % ALIGNED == 0 for size in (x_BTI.shape[-1], *(len(w) for w in weights)))
    tiles = x_BTI.shape[:-1].numel() // TILE[0] * (len(weights[0]) // TILE[1])
    return aligned and tiles >= FILLED and has_trades()


@torch.library.custom_op("lmlab::squares", mutates_args=())
def squares(x_NI: Tensor, up_HI: Tensor) -> Tensor:
    """max(x upᵀ, 0)², N×H."""
    from lmlab.layers.fast._products_gluon import squares as made

    return made(in_rows(x_NI), in_rows(up_HI), TILE)


@squares.register_fake
def _(x_NI: Tensor, up_HI: Tensor) -> Tensor:
    return x_NI.new_empty(x_NI.shape[0], up_HI.shape[0])


@torch.library.custom_op("lmlab::grown", mutates_args=())
def grown(grad_NO: Tensor, down_OH: Tensor, squared_NH: Tensor) -> Tensor:
    """2 √squared ∘ (grad down), N×H: what reaches the first layer's outputs of a gradient by the second's."""
    from lmlab.layers.fast._products_gluon import grown as made

    return made(in_rows(grad_NO), in_rows(down_OH), in_rows(squared_NH), TILE)


@grown.register_fake
def _(grad_NO: Tensor, down_OH: Tensor, squared_NH: Tensor) -> Tensor:
    return torch.empty_like(squared_NH)


@torch.library.custom_op("lmlab::turned", mutates_args=())
def turned(x_NI: Tensor, weight_OI: Tensor, cos_TD: Tensor, sin_TD: Tensor) -> Tensor:
    """x weightᵀ, N×O: a third queries, a third keys, both turned by their positions (N modulo T), and a third values.

    Tables as `rotary_tables` makes them: of cos the first half of each row is read, of sin the second.
    """
    from lmlab.layers.fast._products_gluon import turned as made

    return made(in_rows(x_NI), in_rows(weight_OI), cos_TD.contiguous(), sin_TD.contiguous(), TILE)


@turned.register_fake
def _(x_NI: Tensor, weight_OI: Tensor, cos_TD: Tensor, sin_TD: Tensor) -> Tensor:
    return x_NI.new_empty(x_NI.shape[0], weight_OI.shape[0])


def in_rows(matrix: Tensor) -> Tensor:
    """One after the other, and the first where the copy engine can begin."""
    dense = matrix.contiguous()
    return dense if dense.data_ptr() % (2 * ALIGNED) == 0 else dense.clone()
