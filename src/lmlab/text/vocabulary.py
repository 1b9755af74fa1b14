"""Which words a `words` tokenizer knows, and which ones teach its spelling model.

Words seen once in training stand for the words still unseen: left out of the vocabulary, they give the unknown symbol
its probability and the spelling model its examples. On novels, plays and speeches (a unigram over words plus the
spelling model, in bits per byte of unseen text) this is better than keeping them, and halves the vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from lmlab.config import Mistake

# Where single occurrences make up less than this share of a text's words, the next new word is that unlikely too
# (Good and Turing's estimate), and the vocabulary counts as closed.
CLOSED_BELOW = 0.001
MOST_EXAMPLES = 200_000  # of unknown words; the spelling model is fitted again when it is loaded, so this saves seconds


def _by_frequency(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda word: (-counts[word], word))


def most_frequent(counts: Counter[str], size: int) -> list[str]:
    """The vocabulary of `words:N`: the N most frequent words, line breaks and whitespace runs among them."""
    if size > len(counts):
        raise Mistake(
            f"words:{size} is larger than the text allows: it has {len(counts)} different words;"
            f" write words:{len(counts)} or less",
            code="words-larger-than-text",
        )
    return _by_frequency(counts)[:size]


def known_words(counts: Counter[str], least: int | None = None) -> list[str]:
    """The vocabulary of a plain `words` tokenizer, most frequent first: words that occur `least` times, if that is said.

    Words seen once are left out, so that they stand for the words still unseen: they give the unknown symbol its
    probability, and the spelling model its examples. But where they are so few that no new word is to be expected, the
    text was written with a closed vocabulary, and all its words are kept.
    """
    if least is not None:
        return [word for word in _by_frequency(counts) if counts[word] >= least]
    once = sum(n == 1 for n in counts.values())
    closed = once < CLOSED_BELOW * sum(counts.values())
    return [word for word in _by_frequency(counts) if closed or counts[word] > 1]


def spelling_examples(counts: Counter[str], words: Sequence[str]) -> dict[str, int]:
    """The words outside the vocabulary with their numbers of occurrence, for the spelling model."""
    known = set(words)
    examples = {word: n for word, n in counts.items() if word not in known}
    return examples if len(examples) <= MOST_EXAMPLES else _every_kth(examples, MOST_EXAMPLES)


def _every_kth(counts: Mapping[str, int], size: int) -> dict[str, int]:
    """`size` of all occurrences, evenly spaced among them in order of the alphabet: a sample that favours no word."""
    words = sorted(counts)
    before = np.cumsum([0, *(counts[word] for word in words)])
    taken = np.diff(before * size // int(before[-1]))
    return {words[i]: int(taken[i]) for i in np.flatnonzero(taken)}
