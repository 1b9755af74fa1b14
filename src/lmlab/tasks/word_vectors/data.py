"""From a text to its pairs of words, some of them held out, and batches of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lmlab.config import Mistake, make
from lmlab.hardware.memory import available_bytes
from lmlab.learn.run import Run
from lmlab.models.glove import GloVeConfig, PairBatch
from lmlab.models.registry import model_class
from lmlab.tasks.word_vectors.counting import Pairs, count_pairs
from lmlab.text.chunks import by_document, chunks
from lmlab.text.corpus import Corpus
from lmlab.text.parts import PARTS, Part
from lmlab.text.plain_words import words_of
from lmlab.text.tokenizers import Tokenizer

AT_ONCE = 1 << 16  # pairs, where nothing is learned
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
class CountedText:
    """A text with the pairs of words of each part, which are divided rather than its bytes."""

    corpus: Corpus
    parts: Mapping[str, Pairs]

    @property
    def name(self) -> str:
        """The name of the text."""
        return self.corpus.name

    def spec(self) -> dict[str, Any]:
        """Where the text is, the hashes of its parts, and how many pairs each part has."""
        spec = self.corpus.spec()
        parts = {name: {**part, "pairs": len(self.parts[name])} for name, part in spec["parts"].items()}
        return {**spec, "parts": parts}


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


def refuse_if_short(pairs: Pairs, words: int, config: Any, text: str) -> None:
    """A Mistake where there is too little to learn from."""
    if len(pairs) < FEWEST:
        raise Mistake(
            f"{text} is too short: {words} of its words occur {config.least} times or more, in {len(pairs)} pairs, and"
            f" {FEWEST} is the least to learn from; give more text, or a smaller least",
            code="text-too-short-for-vectors",
        )


def parts_of(run: Run) -> dict[str, Pairs]:
    """The pairs of a run's text, counted and divided again."""
    config: Any = make(model_class(run.record.model.name).Config, run.record.model.config, run.record.model.name)
    pairs = pairs_of(run.corpus.train, run.tokenizer, config.window)
    return divided(pairs, config.held_out, run.record.training.seed)
