"""`rnn`: the plain recurrent network (lab11 problems 1 and 5 speak of it as RNN(x_t, h_{t-1}) and print no equation).

With x_t the embedding of the token before token t, the usual reading is

    h_t = tanh(W x_t + U h_{t-1} + b)
    p   = softmax(O h_t + c)

which is the candidate ĥ_t of the GRU in problem 2 with r_t = 1, taken whole (z_t = 1). lab11 prints its gated cells without
b; `bias=false` leaves it out here too. Gradients through many steps vanish or explode (problem 1): U starts orthogonal, the
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
