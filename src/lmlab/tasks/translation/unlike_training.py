"""Tells whether a text to translate is unlike every source that a translator learned from."""

from __future__ import annotations

from collections.abc import Sequence

from lmlab.config import Mistake
from lmlab.learn.run import Run
from lmlab.text.sentence_pairs import Pairs

PIECE = 3  # characters; pieces of words of any language, and of texts without spaces
LEAST_KNOWN = (
    0.5  # share of a text's pieces that occur in training sources: held-out sentences of the same kind reach 0.9
)
MOST_SOURCES = 50_000  # training sources that are read, which takes a second


def unlike_training(run: Run, texts: Sequence[str]) -> list[str]:
    """Return the texts of which most pieces of three characters occur in no source that the translator learned from.

    The sources are those of the training data on disk; where they are gone, nothing can be told.
    """
    try:
        sources = Pairs.from_spec(run.record.inputs.corpus).parts["train"].of(0)[:MOST_SOURCES]
    except (Mistake, OSError):
        return []
    known = set().union(*map(_pieces, sources))
    return [text for text in texts if len(_pieces(text) & known) < LEAST_KNOWN * len(_pieces(text))]


def _pieces(text: str) -> set[str]:
    text = f" {' '.join(text.lower().split())} "
    return {text[i : i + PIECE] for i in range(len(text) - PIECE + 1)}
