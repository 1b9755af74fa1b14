"""What a combiner learns from, made of a text or a table once its words have vectors; the same again for a run on disk."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lmlab.combining.labelled_pairs import (
    CLASSES,
    Listed,
    Neighbouring,
    PairTable,
    WordPairs,
    keys_of,
    neighbouring,
    occurs,
    read_table,
)
from lmlab.config import Mistake
from lmlab.text.corpus import Corpus
from lmlab.text.parts import Part
from lmlab.text.tokenizers import Tokenizer

MOST = 20_000  # pairs that are held out for validation, and for the test
FEWEST = 20  # pairs without which nothing is learned
FREQUENT = 20_000  # pairs among which neighbours are looked for


class Source(Protocol):
    """Where pairs are drawn from."""

    def __len__(self) -> int: ...

    def draw(self, random: np.random.Generator, number: int) -> WordPairs:
        """So many, as this generator has it."""
        ...


@dataclass(frozen=True)
class Material:
    """Pairs to learn from, to validate with and to measure on."""

    classes: tuple[str, ...]
    train: Source
    valid: WordPairs
    test: WordPairs
    frequent_B2: np.ndarray  # pairs of the training part, most frequent first

    def part(self, name: str, seed: int) -> WordPairs:
        """The pairs of a part; of the training part as many as of the others at most."""
        if name == "train":
            return self.train.draw(np.random.default_rng([seed, 3]), MOST)
        return self.valid if name == "valid" else self.test


def of_corpus(corpus: Corpus, tokenizer: Tokenizer, has_vector_V: np.ndarray, seed: int) -> Material:
    """Pairs of a text; a word that is only a mark has no pairs."""
    is_word_V = np.array([piece.strip()[:1].isalnum() for piece in tokenizer.vocabulary.pieces])
    size, usable_V = tokenizer.vocab_size, has_vector_V & is_word_V
    parts = {name: neighbouring(part, tokenizer, usable_V) for name, part in corpus.parts.items()}
    train_B2 = parts["train"]
    if len(train_B2) < FEWEST:
        raise Mistake(
            f"{corpus.name} is too short: it has {len(train_B2)} pairs of words with vectors, and {FEWEST} is the least"
        )
    learned = np.unique(keys_of(train_B2, size))
    everywhere = np.unique(np.concatenate([keys_of(words_B2, size) for words_B2 in parts.values()]))
    held_out = []
    for number, name in enumerate(("valid", "test")):
        new_B2 = parts[name][~occurs(parts[name], learned, size)]
        source = Neighbouring(new_B2, everywhere, size)
        random = np.random.default_rng([seed, 1 + number])
        drawn = source.draw(random, min(MOST, 2 * len(new_B2))) if len(new_B2) else _none()
        held_out.append(drawn.chosen(np.flatnonzero(~occurs(drawn.words_B2, learned, size))))
    valid, test = held_out
    return Material(CLASSES, Neighbouring(train_B2, learned, size), valid, test, _frequent(train_B2, size))


def of_text(part: Part, tokenizer: Tokenizer, has_vector_V: np.ndarray, seed: int) -> WordPairs:
    """All pairs of another text, and as many exchanged ones, at most as many as are measured elsewhere."""
    is_word_V = np.array([piece.strip()[:1].isalnum() for piece in tokenizer.vocabulary.pieces])
    words_B2 = neighbouring(part, tokenizer, has_vector_V & is_word_V)
    if not len(words_B2):
        raise Mistake("the text has no pair of words that have vectors")
    source = Neighbouring(words_B2, np.unique(keys_of(words_B2, tokenizer.vocab_size)), tokenizer.vocab_size)
    return source.draw(np.random.default_rng([seed, 2]), min(MOST, 2 * len(words_B2)))


def of_table(
    table: PairTable, tokenizer: Tokenizer, has_vector_V: np.ndarray, split: tuple[float, ...], seed: int
) -> Material:
    """Pairs of a table, divided by chance."""
    pairs = table.pairs(tokenizer, has_vector_V, table.classes)
    order = np.random.default_rng(seed).permutation(len(pairs))
    edges = np.round(np.cumsum(split)[:2] / sum(split) * len(pairs)).astype(int)
    train, valid, test = (pairs.chosen(np.sort(at)) for at in np.split(order, edges))
    if len(train) < FEWEST:
        raise Mistake(
            f"{table.path} leaves {len(train)} pairs of words with vectors to learn from, and {FEWEST} is the least"
        )
    return Material(table.classes, Listed(train), valid, test, _frequent(train.words_B2, tokenizer.vocab_size))


def again(spec: dict[str, Any], tokenizer: Tokenizer, has_vector_V: np.ndarray, seed: int) -> Material:
    """Of a run: read again, and a Mistake if it is not what it was."""
    if "classes" not in spec:
        return of_corpus(Corpus.from_spec(spec), tokenizer, has_vector_V, seed)
    table = read_table(spec["text"])
    if table.sha256 != spec["parts"]["train"]["sha256"]:
        raise Mistake(f"{spec['text']} has changed since it was read; put the old file back, or train again")
    return of_table(table, tokenizer, has_vector_V, tuple(spec["split"]), seed)


def table_spec(table: PairTable, material: Material, split: tuple[float, ...], seed: int) -> dict[str, Any]:
    """For the record of a run."""
    sizes = {"train": len(material.train), "valid": len(material.valid), "test": len(material.test)}
    parts = {name: {"bytes": number, "pairs": number, "sha256": table.sha256} for name, number in sizes.items()}
    origin = {"text": str(table.path), "valid": None, "test": None, "split": list(split), "seed": seed}
    return {
        "name": Path(table.path.name.removesuffix(".gz")).stem,
        **origin,
        "classes": list(table.classes),
        "parts": parts,
    }


def _none() -> WordPairs:
    return WordPairs(np.zeros((0, 2), dtype=np.int32), np.zeros(0, dtype=np.int64))


def _frequent(words_B2: np.ndarray, vocab_size: int) -> np.ndarray:
    counts = Counter(keys_of(words_B2, vocab_size).tolist())
    keys = np.array(sorted(counts, key=lambda key: (-counts[key], key))[:FREQUENT], dtype=np.int64)
    return np.stack(np.divmod(keys, vocab_size), axis=1)
