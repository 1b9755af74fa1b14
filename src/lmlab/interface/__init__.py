"""The base classes of every model, for the lab's own models and for plug-ins.

    from lmlab.interface import LanguageModel, Learner, Loss, State

`Saved` can be stored in a run and loaded exactly. `LanguageModel` predicts tokens, `CountModel` is fitted by counting, and
`Learner` is trained by gradient descent. Measuring, decoding, compressing and explaining use `LanguageModel` alone; the
training loop uses `Learner` alone. A model is constructed from (config, vocab_size). It does not know the strings of its
tokens: those belong to the tokenizer of the run.

Shape letters used across the lab: B rows (sequences of a batch), T tokens, V vocabulary, D width, H heads,
N history length, L layers.
"""

from lmlab.context import ContextPolicy
from lmlab.interface.batch import Loss, Windows
from lmlab.interface.language_model import CountModel, LanguageModel
from lmlab.interface.learner import CarriedLanguageModel, Learner, NeuralLanguageModel, TextLearner
from lmlab.interface.rows import advance, confidence_after, side_by_side, with_rows_replaced
from lmlab.interface.saved import Saved
from lmlab.interface.state import HistoryState, State, spend

__all__ = [
    "CarriedLanguageModel",
    "ContextPolicy",
    "CountModel",
    "HistoryState",
    "LanguageModel",
    "Learner",
    "Loss",
    "NeuralLanguageModel",
    "Saved",
    "State",
    "TextLearner",
    "Windows",
    "advance",
    "confidence_after",
    "side_by_side",
    "spend",
    "with_rows_replaced",
]
