"""The source: a quiz on variational inference, shapes of derivatives, an autoencoder and attention; it gives no answers."""

from lmlab.ledger.claim import Book

BOOK = Book(
    source="quiz1",
    title="Quiz 1: variational inference, back-propagation through time, an autoencoder, a first look at attention",
    about="Questions without solutions: where one is asked for, the ledger gives it and checks it.",
)
