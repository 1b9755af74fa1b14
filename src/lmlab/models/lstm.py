"""stub"""
from lmlab.layers.cells import LSTMCell
from lmlab.layers.recurrent import RecurrentModel
class LSTM(RecurrentModel):
    name = "lstm"
    cell = LSTMCell()
    default_learning_rate = 0.005
