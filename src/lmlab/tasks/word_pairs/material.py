"""What a combiner learns from, made of a text or a table once its words have vectors; the same again for a run on disk."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lmlab.config import Mistake
from lmlab.tasks.word_pairs.labelled_pairs import (
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
            f"{corpus.name} is too short: it has {len(train_B2)} pairs of words with vectors, and {FEWEST} is the least",
            code="text-with-few-pairs",
        )
    learned = np.unique(keys_of(train_B2, size))
    everywhere = np.unique(np.concatenate([keys_of(words_B2, size) for words_B2 in parts.values()]))
    held_out = []
    for number, name in enumerate(("valid", "test")):
        new_B2 = parts[name][~occurs(parts[name], learned, size)]
        source = Neighbouring(new_B2, everywhere, size)
        random = np.random.default_rng([seed, 1 + number])
        drawn = source.draw_once(random, MOST)
        held_out.append(drawn.chosen(np.flatnonzero(~occurs(drawn.words_B2, learned, size))))
    valid, test = held_out
    return Material(CLASSES, Neighbouring(train_B2, learned, size), valid, test, _frequent(train_B2, size))


def of_text(part: Part, tokenizer: Tokenizer, has_vector_V: np.ndarray, learned: np.ndarray, seed: int) -> WordPairs:
    """The pairs of another text that were not learned, and as many exchanged ones, as far as that many are measured elsewhere.

    learned: numbers of the pairs of the training part, sorted.
    """
    is_word_V = np.array([piece.strip()[:1].isalnum() for piece in tokenizer.vocabulary.pieces])
    size, words_B2 = tokenizer.vocab_size, neighbouring(part, tokenizer, has_vector_V & is_word_V)
    if not len(words_B2):
        raise Mistake("the text has no pair of words that have vectors", code="text-without-pairs")
    new_B2 = words_B2[~occurs(words_B2, learned, size)]
    if not len(new_B2):
        raise Mistake(
            "every pair of words of the text occurs in the training part; name a text that has others",
            code="text-without-new-pairs",
        )
    known = np.union1d(learned, keys_of(words_B2, size))
    drawn = Neighbouring(new_B2, known, size).draw_once(np.random.default_rng([seed, 2]), MOST)
    return drawn.chosen(np.flatnonzero(~occurs(drawn.words_B2, learned, size)))


def of_table(
    table: PairTable, tokenizer: Tokenizer, has_vector_V: np.ndarray, split: tuple[float, ...], seed: int
) -> Material:
    """Pairs of a table, divided by chance; a pair that stands there more than once goes with itself."""
    pairs = table.pairs(tokenizer, has_vector_V, table.classes)
    first_B = _first_of_its_kind(keys_of(pairs.words_B2, tokenizer.vocab_size))
    kinds = np.unique(first_B)
    order = np.random.default_rng(seed).permutation(len(kinds))
    edges = np.round(np.cumsum(split)[:2] / sum(split) * len(kinds)).astype(int)
    train, valid, test = (pairs.chosen(np.flatnonzero(np.isin(first_B, kinds[at]))) for at in np.split(order, edges))
    if len(train) < FEWEST:
        raise Mistake(
            f"{table.path} leaves {len(train)} pairs of words with vectors to learn from, and {FEWEST} is the least",
            code="table-with-few-pairs",
        )
    return Material(table.classes, Listed(train), valid, test, _frequent(train.words_B2, tokenizer.vocab_size))


def again(spec: dict[str, Any], tokenizer: Tokenizer, has_vector_V: np.ndarray, seed: int) -> Material:
    """Of a run: read again, and a Mistake if it is not what it was."""
    if "classes" not in spec:
        return of_corpus(Corpus.from_spec(spec), tokenizer, has_vector_V, seed)
    table = read_table(spec["text"])
    if table.sha256 != spec["parts"]["train"]["sha256"]:
        raise Mistake(
            f"{spec['text']} has changed since it was read; put the old file back, or train again", code="pairs-changed"
        )
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


def _first_of_its_kind(keys_B: np.ndarray) -> np.ndarray:
    """Where each of these numbers stands for the first time."""
    _, first, kind_B = np.unique(keys_B, return_index=True, return_inverse=True)
    found: np.ndarray = first[kind_B]
    return found


def _frequent(words_B2: np.ndarray, vocab_size: int) -> np.ndarray:
    counts = Counter(keys_of(words_B2, vocab_size).tolist())
    keys = np.array(sorted(counts, key=lambda key: (-counts[key], key))[:FREQUENT], dtype=np.int64)
    return np.stack(np.divmod(keys, vocab_size), axis=1)
