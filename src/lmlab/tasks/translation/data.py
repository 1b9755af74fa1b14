"""Pairs as ids, and batches of sentences of similar lengths in few shapes, so that little is padding.

Shapes: N ids of all sentences, B rows, S tokens of a source, K languages, T tokens of a target, G groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from lmlab.config import Mistake
from lmlab.models.translator import Translations
from lmlab.text.sentence_pairs import Rows
from lmlab.text.tokenizers import Tokenizer

GROUPS = 8  # shapes of batches: on a GPU the step of each is recorded once


@dataclass(frozen=True)
class Sentences:
    """Sentences of one language as ids end to end, an end symbol behind each, and where each begins (and the last ends)."""

    ids_N: np.ndarray
    starts_B: np.ndarray

    @classmethod
    def of(cls, tokenizer: Tokenizer, texts: Sequence[str]) -> Sentences:
        """Encoded each by itself."""
        encoded, lengths_B = tokenizer.encode_each(list(texts))
        starts_B = np.concatenate([[0], np.cumsum(lengths_B + 1)])
        ids_N = np.insert(encoded.ids.astype(np.int64), np.cumsum(lengths_B), tokenizer.vocab_size)
        return cls(ids_N, starts_B)

    @cached_property
    def lengths_B(self) -> np.ndarray:
        """Tokens of each, its end included."""
        return np.diff(self.starts_B)

    def padded(self, which: np.ndarray, rows: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Some of them in so many rows of that length, and where there is something; behind a sentence stand ends."""
        at_T = np.arange(length)
        there_BT = at_T < self.lengths_B[which][:, None]
        ids_BT = np.full((rows, length), self.ids_N[-1])
        ids_BT[: len(which)][there_BT] = self.ids_N[(self.starts_B[which][:, None] + at_T)[there_BT]]
        whole_BT = np.zeros((rows, length), dtype=bool)
        whole_BT[: len(which)] = there_BT
        return torch.from_numpy(ids_BT), torch.from_numpy(whole_BT)


@dataclass(frozen=True)
class Encoded:
    """Rows of a part in every language, the source first."""

    languages: tuple[Sentences, ...]
    target_bytes: int  # of all targets, in UTF-8

    @classmethod
    def of(cls, tokenizer: Tokenizer, rows: Rows) -> Encoded:
        """All of them."""
        count = len(rows.texts[0]) if len(rows) else 0
        size = sum(len(text.encode()) for row in rows.texts for text in row[1:])
        return cls(tuple(Sentences.of(tokenizer, rows.of(k)) for k in range(count)), size)

    def __len__(self) -> int:
        return len(self.languages[0].lengths_B) if self.languages else 0

    @cached_property
    def lengths_BL(self) -> np.ndarray:
        """Tokens in every language, ends included."""
        return np.stack([sentences.lengths_B for sentences in self.languages], axis=1)

    @property
    def target_tokens(self) -> int:
        """Of all targets, ends included."""
        return int(self.lengths_BL[:, 1:].sum()) if len(self) else 0

    def translations(self, which: np.ndarray, rows: int, source: int, target: int) -> Translations:
        """Some of them as a batch of that shape; rows that are left over hold no target."""
        first, *others = self.languages
        source_BS, there_BS = first.padded(which, rows, source)
        there_BS[len(which) :, 0] = True  # attention over nothing would be no number
        ids, masks = zip(*(language.padded(which, rows, target) for language in others), strict=True)
        return Translations(source_BS, there_BS, torch.stack(ids, dim=1), torch.stack(masks, dim=1))


@dataclass(frozen=True)
class Group:
    """Rows that are batched together: batches of one shape, each with nearly as many rows."""

    members_B: np.ndarray
    rows: int
    batches: int
    source: int
    target: int


def grouped(lengths_BL: np.ndarray, rows: int) -> list[Group]:
    """In groups of similar lengths. rows: of a batch on average; all batches have about as many tokens of targets."""
    longest_B = lengths_BL.max(axis=1)
    tokens, languages = rows * lengths_BL[:, 1:].sum(1).mean(), lengths_BL.shape[1] - 1
    found = []
    for low, high in _cuts(longest_B):
        members_B = np.flatnonzero((longest_B > low) & (longest_B <= high))
        lengths = lengths_BL[members_B]
        target = int(lengths[:, 1:].max())
        most = max(1, round(tokens / (target * languages)))
        even = -(-len(members_B) // -(-len(members_B) // most))  # no batch is much smaller than the others
        found.append(Group(members_B, even, -(-len(members_B) // even), int(lengths[:, 0].max()), target))
    return found


def _cuts(longest_B: np.ndarray) -> list[tuple[int, int]]:
    """Lengths (above, up to) of at most GROUPS groups that together hold the least padding, by dynamic programming."""
    sizes_U, counts_U = np.unique(longest_B, return_counts=True)
    before_U = np.concatenate([[0], np.cumsum(counts_U)])
    count = len(sizes_U)
    cost_U, back = np.where(np.arange(count + 1) == 0, 0.0, np.inf), []
    for _ in range(min(GROUPS, count)):
        whole_UU = cost_U[:, None] + (before_U[None, 1:] - before_U[:, None]) * sizes_U[None]
        whole_UU[np.arange(count + 1)[:, None] > np.arange(count)[None]] = np.inf
        back.append(np.concatenate([[0], whole_UU.argmin(0)]))
        cost_U = np.concatenate([[np.inf], whole_UU.min(0)])
    cuts, at = [], count
    for from_U in reversed(back):
        begin = int(from_U[at])
        cuts.append((int(sizes_U[begin - 1]) if begin else 0, int(sizes_U[at - 1])))
        at = begin
    return cuts[::-1]


def refuse_long(rows: Rows, encoded: Encoded, context: int) -> None:
    """Mistake, with its line, where a sentence is longer than the model reads."""
    if not len(encoded):
        return
    longest_B = encoded.lengths_BL.max(axis=1)
    worst = int(longest_B.argmax())
    if longest_B[worst] > context:
        raise Mistake(
            f"{rows.file}, line {rows.lines[worst]}: a sentence of {longest_B[worst]} tokens, and the translator reads"
            f" {context} at most; leave it out, or train with a longer context",
            code="pairs-line-too-long",
        )
