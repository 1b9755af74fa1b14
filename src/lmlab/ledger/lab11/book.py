"""The source: a laboratory sheet of mathematical exercises on recurrent networks and Transformers, with solutions."""

from lmlab.ledger.claim import Book

BOOK = Book(
    source="lab11",
    title="Lab 11: mathematical exercises on RNNs, GRUs, LSTMs, attention and Transformers",
    about="Vanishing and exploding gradients, gates, back-propagation through an LSTM, scaled attention, costs.",
)
