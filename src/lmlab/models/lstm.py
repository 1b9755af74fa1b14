"""`lstm`: long short-term memory (Hochreiter & Schmidhuber 1997; its forget gate: Gers 2000).

With x_t the embedding of the token before token t,

    i_t = σ(W_i x_t + U_i h_{t-1})
    f_t = σ(W_f x_t + U_f h_{t-1})
    o_t = σ(W_o x_t + U_o h_{t-1})
    c̃_t = tanh(W_c x_t + U_c h_{t-1})
    c_t = f_t ∘ c_{t-1} + i_t ∘ c̃_t                 ∂c_t/∂c_{t-1} = f_t, which is what keeps gradients alive
    h_t = o_t ∘ tanh(c_t)
    p   = softmax(O h_t + c)

Each gate has a bias unless `bias=false`, and that of f starts at one, so that the memory starts by remembering.
"""

from __future__ import annotations

from typing import ClassVar

from lmlab.layers.cells import Cell, LSTMCell
from lmlab.models.families.recurrent import RecurrentModel


class LSTM(RecurrentModel):
    """Layers of LSTM cells."""

    name = "lstm"
    cell: ClassVar[Cell] = LSTMCell()
    default_learning_rate: ClassVar[float] = 0.012
