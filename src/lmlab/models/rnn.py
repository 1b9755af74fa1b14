"""`rnn`: the plain recurrent network (Elman 1990).

With x_t the embedding of the token before token t,

    h_t = tanh(W x_t + U h_{t-1} + b)
    p   = softmax(O h_t + c)

which is the candidate ĥ_t of a GRU with r_t = 1, taken whole (z_t = 1). `bias=false` leaves b out. Gradients through many steps
vanish or explode (Bengio 1994; clipping: Pascanu 2013): U starts orthogonal, the
training loop clips, and back-propagation is cut after each stretch while the state is carried on.
"""

from __future__ import annotations

from typing import ClassVar

from lmlab.layers.cells import Cell, TanhCell
from lmlab.models.families.recurrent import RecurrentModel


class RNN(RecurrentModel):
    """Layers of tanh cells."""

    name = "rnn"
    cell: ClassVar[Cell] = TanhCell()
    default_learning_rate: ClassVar[float] = 0.012
