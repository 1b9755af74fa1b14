"""The source: a homework on neural language models, perplexity, averaging classifiers and attention, with its answers."""

from lmlab.ledger.claim import Book

BOOK = Book(
    source="assignment2",
    title="NLP assignment 2: bigram and character models, perplexity, deep averaging, attention",
    about="Softmax and one-hidden-layer gradients, units of perplexity, what an average can see, one head and two.",
)
