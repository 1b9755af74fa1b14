"""Pairs of words with labels: of a text (next to each other, or one of them exchanged), or of a table.

A pair of a text is real; exchanged, one of its words is replaced by another, drawn as often as it occurs on that side, so that
frequencies give nothing away; a pair that occurs after all is called real. Real pairs that are held out do not occur in the
training part. B pairs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lmlab.config import Mistake
from lmlab.tasks.word_vectors.data import plain_documents
from lmlab.text.chunks import by_document
from lmlab.text.labelled import FORMATS, table_rows
from lmlab.text.parts import Part
from lmlab.text.plain_words import words_of
from lmlab.text.tokenizers import Tokenizer

CLASSES = ("exchanged", "real")  # of the pairs of a text
TRIES = 8  # to exchange a word so that the pair does not occur


@dataclass(frozen=True)
class WordPairs:
    """Ids of two words and the number of a label, side by side."""

    words_B2: np.ndarray
    labels_B: np.ndarray

    def __len__(self) -> int:
        return len(self.labels_B)

    def chosen(self, which: np.ndarray) -> WordPairs:
        """Some of them."""
        return WordPairs(self.words_B2[which], self.labels_B[which])


@dataclass(frozen=True)
class Listed:
    """Pairs of a table."""

    pairs: WordPairs

    def __len__(self) -> int:
        return len(self.pairs)

    def draw(self, random: np.random.Generator, number: int) -> WordPairs:
        """So many of them, with replacement."""
        return self.pairs.chosen(random.integers(0, len(self.pairs), number))


@dataclass(frozen=True)
class Neighbouring:
    """Words that stand next to each other in a text, and which pairs there are at all."""

    words_B2: np.ndarray
    known: np.ndarray  # first × V + second of all pairs that must not pass for exchanged, sorted
    vocab_size: int

    def __len__(self) -> int:
        return len(self.words_B2)

    def draw(self, random: np.random.Generator, number: int) -> WordPairs:
        """So many of them with replacement, every second one exchanged."""
        return self._exchanged(self.words_B2[random.integers(0, len(self.words_B2), number)].copy(), random)

    def draw_once(self, random: np.random.Generator, most: int) -> WordPairs:
        """Each of them once as it is and once exchanged, or as many as there may be: so an interval over pairs is one."""
        each = min(most // 2, len(self.words_B2))
        words_B2 = np.empty((2 * each, 2), dtype=self.words_B2.dtype)
        for number in range(2):
            words_B2[number::2] = self.words_B2[random.permutation(len(self.words_B2))[:each]]
        return self._exchanged(words_B2, random)

    def _exchanged(self, words_B2: np.ndarray, random: np.random.Generator) -> WordPairs:
        """These pairs, in which one word of every second one is exchanged."""
        number = len(words_B2)
        side_B = random.integers(0, 2, number)
        open_B = np.flatnonzero(np.arange(number) % 2 == 0)
        for _ in range(TRIES):
            side = side_B[open_B]
            words_B2[open_B, side] = self.words_B2[random.integers(0, len(self.words_B2), len(open_B)), side]
            open_B = open_B[occurs(words_B2[open_B], self.known, self.vocab_size)]
        labels_B = np.arange(number, dtype=np.int64) % 2
        labels_B[open_B] = CLASSES.index("real")
        return WordPairs(words_B2, labels_B)


def keys_of(words_B2: np.ndarray, vocab_size: int) -> np.ndarray:
    """A number for each pair."""
    found: np.ndarray = words_B2[:, 0].astype(np.int64) * vocab_size + words_B2[:, 1]
    return found


def occurs(words_B2: np.ndarray, known: np.ndarray, vocab_size: int) -> np.ndarray:
    """Which pairs are among the known ones, which are sorted."""
    keys_B = keys_of(words_B2, vocab_size)
    at_B = np.minimum(np.searchsorted(known, keys_B), len(known) - 1)
    found: np.ndarray = known[at_B] == keys_B
    return found


def neighbouring(part: Part, tokenizer: Tokenizer, has_vector_V: np.ndarray) -> np.ndarray:
    """All pairs of words next to each other, both with vectors: B×2, in the order of the text."""
    found = [np.zeros((0, 2), dtype=np.int32)]
    for document in by_document(plain_documents(part)):
        ids_N = np.concatenate([encoded.ids for encoded in tokenizer.encode_pieces(document)]).astype(np.int32)
        words_B2 = np.stack([ids_N[:-1], ids_N[1:]], axis=1)
        found.append(words_B2[has_vector_V[words_B2].all(1)])
    return np.concatenate(found)


def is_table(data: Any) -> bool:
    """Whether it names a table of pairs, by how its name ends."""
    return isinstance(data, str | Path) and str(data).removesuffix(".gz").endswith(FORMATS)


@dataclass(frozen=True)
class PairTable:
    """The rows of a table: two words and a label, with the lines they stand on."""

    path: Path
    rows: list[tuple[int, str, str, str]]
    classes: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Of all pairs and labels."""
        return hashlib.sha256("\n".join("\t".join(row[1:]) for row in self.rows).encode()).hexdigest()

    def pairs(self, tokenizer: Tokenizer, has_vector_V: np.ndarray, classes: tuple[str, ...]) -> WordPairs:
        """Those whose words have vectors, with the numbers that the labels have among these classes."""
        number = {label: i for i, label in enumerate(classes)}
        for line, _, _, label in self.rows:
            if label not in number:
                raise Mistake(
                    f"{self.path}, line {line}: the label {label!r} was never seen in training; it knows {', '.join(classes)}",
                    code="pair-label-unknown",
                )
        ids = tokenizer.encode(" ".join(f"{a} {b}" for _, a, b, _ in self.rows)).ids.astype(np.int32).reshape(-1, 2)
        found = WordPairs(ids, np.array([number[row[3]] for row in self.rows], dtype=np.int64))
        return found.chosen(np.flatnonzero(has_vector_V[ids].all(1)))


def read_table(path: str | Path) -> PairTable:
    """Two words and a label on each line, between tabs (or commas in a .csv); what is wrong is said with the line."""
    file, rows = Path(path).expanduser().resolve(), []
    for line, cells in table_rows(file):
        if len(cells) != 3:
            raise Mistake(
                f"{path}, line {line}: {len(cells)} column{'s' * (len(cells) != 1)}, where two words and a label are wanted",
                code="pair-line-columns",
            )
        first, second, label = (cell.strip() for cell in cells)
        for word in (first, second):
            if len(words_of(word).split()) != 1:
                raise Mistake(f"{path}, line {line}: {word!r} is not one word", code="pair-line-not-one-word")
        if not label:
            raise Mistake(f"{path}, line {line}: the label is empty", code="pair-line-label-empty")
        rows.append((line, words_of(first), words_of(second), label))
    if [row[1:] for row in rows[:1]] == [("first", "second", "label")]:
        rows = rows[1:]
    classes = tuple(sorted({row[3] for row in rows}))
    if len(classes) < 2:
        raise Mistake(
            f"{path} has one label only, {', '.join(classes) or 'none'}; labels are two or more",
            code="pairs-with-one-label",
        )
    return PairTable(file, rows, classes)
