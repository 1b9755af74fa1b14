"""Learning word vectors: from a text to its pairs of words, some of them held out, and batches of the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lmlab.config import Mistake
from lmlab.hardware.memory import available_bytes
from lmlab.learn.task import PartName, Task
from lmlab.models.glove import GloVeConfig, PairBatch
from lmlab.tasks.word_vectors.counting import Pairs, count_pairs
from lmlab.text.chunks import by_document, chunks
from lmlab.text.parts import PARTS, Part
from lmlab.text.plain_words import words_of
from lmlab.text.tokenizers import Tokenizer

ROWS = 1 << 16  # pairs in a step, at most
EPOCHS = 8  # at most, where the budget is seconds: held-out pairs are no better for more
STEPS = 100  # of an epoch, at least: a short text has smaller steps
AT_ONCE = 1 << 16  # pairs, where nothing is learned
DIVERGED = 10  # times the error of a model that says nothing
FEWEST = 100  # pairs that can be learned from


def plain_documents(part: Part) -> Iterator[tuple[int, str]]:
    """(document, some of its words); the pieces of a document put together are its words between single spaces."""
    for number, document in enumerate(by_document(part.pieces())):
        between = ""
        for piece in map(words_of, chunks(document)):
            if piece:
                yield number, between + piece
                between = " "


def pairs_of(part: Part, tokenizer: Tokenizer, window: int) -> Pairs:
    """How often the words that have vectors stand near each other in a text."""
    ids, starts, length = [], [], 0
    for document in by_document(plain_documents(part)):
        starts.append(length)
        for encoded in tokenizer.encode_pieces(document):
            ids.append(encoded.ids[encoded.ids != tokenizer.unknown_id].astype(np.int32))
            length += len(ids[-1])
    ids_N = np.concatenate(ids) if ids else np.zeros(0, dtype=np.int32)
    return count_pairs(ids_N, np.array(starts, dtype=np.int64), tokenizer.vocab_size, window, available_bytes())


def divided(pairs: Pairs, held_out: float, seed: int) -> dict[str, Pairs]:
    """Pairs to learn from, and two shares that are not learned: a pair goes with its mirror image."""
    draw_P = np.random.default_rng([seed, 0]).random(len(pairs))
    valid_P, test_P = draw_P < held_out, (draw_P >= held_out) & (draw_P < 2 * held_out)
    chosen = (~(valid_P | test_P), valid_P, test_P)
    return {name: pairs.chosen(which) for name, which in zip(PARTS, chosen, strict=True)}


@dataclass(frozen=True)
class Entries:
    """Entries of X that are not zero: where they stand, f(x) and log x. P entries."""

    words_P: np.ndarray
    contexts_P: np.ndarray
    weights_P: np.ndarray  # float32
    logs_P: np.ndarray  # float32

    def __len__(self) -> int:
        return len(self.words_P)

    @classmethod
    def of(cls, pairs: Pairs, config: GloVeConfig, seed: int | None = None) -> Entries:
        """Of these pairs, both ways; with a seed shuffled, so that every stretch of them is a fair sample."""
        rows, columns, counts = pairs.both_ways()
        if seed is not None:
            order = np.random.default_rng([seed, 1]).permutation(len(rows))
            rows, columns, counts = rows[order], columns[order], counts[order]
        weights = np.minimum(counts / config.most, 1.0) ** config.power
        return cls(rows, columns, weights.astype(np.float32), np.log(counts).astype(np.float32))

    def batch(self, start: int, stop: int) -> PairBatch:
        """A stretch of them."""
        arrays = (self.words_P, self.contexts_P, self.weights_P, self.logs_P)
        return PairBatch(*(torch.from_numpy(array[start:stop]) for array in arrays))

    def batches(self) -> Iterator[PairBatch]:
        """All of them, in order."""
        for start in range(0, len(self), AT_ONCE):
            yield self.batch(start, start + AT_ONCE)


@dataclass(frozen=True, kw_only=True)
class CoOccurrence(Task):
    """The logarithm of how often each pair of words occurs."""

    name = "word vectors"
    thing = "pair"
    unit = "error per pair"

    train: Entries
    valid: Entries
    rows: int

    @classmethod
    def of(cls, parts: Mapping[str, Pairs], config: GloVeConfig, rows: int | None, seed: int) -> CoOccurrence:
        """The training and validation pairs of a text."""
        train, valid = Entries.of(parts["train"], config, seed), Entries.of(parts["valid"], config)
        return cls(train=train, valid=valid, rows=rows or max(1, min(ROWS, len(train) // STEPS)))

    def batch(self, seed: int, step: int) -> PairBatch:
        """The next pairs; they were shuffled once, as the reference implementation does, and come in that order every epoch."""
        start = step % self.steps_per_epoch * self.rows
        return self.train.batch(start, start + self.rows)

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which every pair is seen once."""
        return -(-len(self.train) // self.rows)

    def validation(self) -> Iterable[PairBatch]:
        """The pairs that are held out for it."""
        return list(self.valid.batches())

    def measured(self, nats: float, part: PartName) -> Mapping[str, float]:
        """The objective, for each pair: half the weighted squared error of the logarithm."""
        return {"error_per_pair": nats}

    @property
    def enough_steps(self) -> int:
        """Of a few epochs."""
        return EPOCHS * self.steps_per_epoch

    @property
    def worst_nats(self) -> float:
        """Well above what a model that says nothing has."""
        silent = float((self.train.weights_P * self.train.logs_P**2).mean()) / 2
        return DIVERGED * silent + 1.0


def refuse_if_short(pairs: Pairs, words: int, config: Any, text: str) -> None:
    """A Mistake where there is too little to learn from."""
    if len(pairs) < FEWEST:
        raise Mistake(
            f"{text} is too short: {words} of its words occur {config.least} times or more, in {len(pairs)} pairs, and"
            f" {FEWEST} is the least to learn from; give more text, or a smaller least",
            code="text-too-short-for-vectors",
        )
