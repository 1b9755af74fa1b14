"""The source: worked solutions to the exercises of chapter 12 of a textbook on deep learning."""

from lmlab.ledger.claim import Book

BOOK = Book(
    source="bishop12",
    title="Bishop and Bishop, Deep Learning, chapter 12: solutions to the exercises",
    about="Attention weights, multi-head attention, positions, count models, greedy search and the size of BERT.",
)
