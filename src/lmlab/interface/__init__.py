"""What a model is. Everybody imports it from here: the lab, and models of one's own.

    from lmlab.interface import LanguageModel, Learner, Loss, State

`Saved` is what a run keeps, `LanguageModel` predicts tokens, `CountModel` is fitted by counting, `Learner` learns by gradient
descent. Measuring, decoding, compressing and explaining are written once, against `LanguageModel` alone. The training loop
knows nothing but `Learner`. Models are made from (config, vocab_size): how tokens read is the business of the run's tokenizer.

Shape letters used across the lab: B rows (sequences side by side), T tokens, V vocabulary, D width, H heads,
N history length, L layers.
"""

from lmlab.context import ContextPolicy
from lmlab.interface.batch import Loss, Windows
from lmlab.interface.language_model import CountModel, LanguageModel
from lmlab.interface.learner import CarriedLanguageModel, Learner, NeuralLanguageModel, TextLearner
from lmlab.interface.saved import Saved
from lmlab.interface.state import HistoryState, State

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
]
