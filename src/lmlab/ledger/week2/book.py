"""The source: a weekly assignment on counting parameters and reading perplexities."""

from lmlab.ledger.claim import Book

BOOK = Book(
    source="week2",
    title="Week 2 assignment: a feed-forward model, a single attention head, and a small Transformer",
    about="Parameter counts of two language models, the steps of one attention head, a table of perplexities.",
)
