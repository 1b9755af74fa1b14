"""stub"""
from lmlab.layers.cells import GRUCell
from lmlab.layers.recurrent import RecurrentModel
class GRU(RecurrentModel):
    name = "gru"
    cell = GRUCell()
    default_learning_rate = 0.005
