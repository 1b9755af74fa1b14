"""stub"""
from lmlab.layers.cells import TanhCell
from lmlab.layers.recurrent import RecurrentModel
class RNN(RecurrentModel):
    name = "rnn"
    cell = TanhCell()
    default_learning_rate = 0.005
