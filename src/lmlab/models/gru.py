"""`gru`: gated recurrent units (Cho 2014).

With x_t the embedding of the token before token t,

    z_t = σ(W_z x_t + U_z h_{t-1})
    r_t = σ(W_r x_t + U_r h_{t-1})
    ĥ_t = tanh(W x_t + r_t ∘ U h_{t-1})             the reset gate acts after U
    h_t = (1 - z_t) ∘ h_{t-1} + z_t ∘ ĥ_t            z_t near 0 keeps the state
    p   = softmax(O h_t + c)

Each gate has a bias, added to W x_t, unless `bias=false`. Many steps run through a fused kernel: the
lab's own on a CPU, torch's on a GPU, whose update gate is 1 - z. `layers/cells.py` has the equations once as above and once
for the kernels.
"""

from __future__ import annotations

from typing import ClassVar

from lmlab.layers.cells import Cell, GRUCell
from lmlab.models.families.recurrent import RecurrentModel


class GRU(RecurrentModel):
    """Layers of GRU cells."""

    name = "gru"
    cell: ClassVar[Cell] = GRUCell()
    default_learning_rate: ClassVar[float] = 0.012
