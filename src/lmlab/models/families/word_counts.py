"""Texts as the counts of their words: the distinct words of each text with weights, and its distinct pairs of words.

A pair is two words that stand next to each other. Pairs have no vocabulary: a pair's number is a hash of its two words, so two
pairs may share a number.

Shapes: N distinct words of all texts together, M distinct pairs, B texts, K labels, F different words or pairs there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)  # odd numbers of no pattern
_HALF = np.uint64(32)


class Entries(NamedTuple):
    """The distinct words, or pairs, of some texts: the number of each, and the text that has it."""

    ids_N: Tensor
    text_N: Tensor


@dataclass(frozen=True)
class WordCounts:
    """A batch of texts as their distinct words and pairs, in the order of their numbers, with the label of each text.

    Attributes:
        words_N: the words of the first text, then those of the second, and so on.
        weights_N: how much each counts in the average of its text.
        starts_B: where the words of each text begin; one more than there are texts, the last is the end.
        pairs_M: the pairs likewise; none where the model has none.
        pair_starts_B: where the pairs of each text begin, likewise.
        labels_B: the labels.
    """

    words_N: Tensor
    weights_N: Tensor
    starts_B: Tensor
    pairs_M: Tensor
    pair_starts_B: Tensor
    labels_B: Tensor

    @property
    def count(self) -> int:
        """The number of texts."""
        return len(self.labels_B)

    @property
    def rows(self) -> int:
        """The number of texts."""
        return len(self.labels_B)

    @property
    def words(self) -> Entries:
        """The words, and the text of each."""
        return Entries(self.words_N, _owners(self.starts_B))

    @property
    def pairs(self) -> Entries:
        """The pairs, and the text of each."""
        return Entries(self.pairs_M, _owners(self.pair_starts_B))

    def select(self, rows: slice) -> WordCounts:
        """Return the batch of these texts."""
        return self.take(torch.arange(*rows.indices(self.rows), device=self.labels_B.device))

    def take(self, which_B: Tensor) -> WordCounts:
        """Return the batch of these texts, in this order."""
        at_N, starts_B = places(self.starts_B, which_B)
        pair_at_M, pair_starts_B = places(self.pair_starts_B, which_B)
        words_N, weights_N = self.words_N[at_N], self.weights_N[at_N]
        return WordCounts(words_N, weights_N, starts_B, self.pairs_M[pair_at_M], pair_starts_B, self.labels_B[which_B])

    def to(self, device: torch.device) -> WordCounts:
        """Return the same batch on another device."""
        return WordCounts(*(tensor.to(device) for tensor in vars(self).values()))


def count_words(
    ids_N: Tensor, starts_B: Tensor, labels_B: Tensor, *, log_counts: bool, pair_buckets: int
) -> WordCounts:
    """Count the words and the pairs of texts.

    Args:
        ids_N: the words of all texts, one text after the other.
        starts_B: where each text begins.
        labels_B: the labels.
        log_counts: weigh a word that a text has c times by 1 + ln c, not by c.
        pair_buckets: how many numbers there are for pairs; 0: no pairs.
    """
    device = ids_N.device
    ids, starts = ids_N.cpu().numpy().astype(np.int64), np.append(starts_B.cpu().numpy(), len(ids_N))
    words, times, word_starts = _distinct(ids, starts)
    weights = (1 + np.log(times) if log_counts else times).astype(np.float32)
    pairs, pair_starts = np.zeros(0, dtype=np.int64), np.zeros_like(starts)
    if pair_buckets:
        hashed, first = hashed_pairs(ids, starts, pair_buckets)
        pairs, _, pair_starts = _distinct(hashed, first)
    arrays = words, weights, word_starts, pairs, pair_starts
    words_N, weights_N, firsts_B, pairs_M, pair_firsts_B = (torch.from_numpy(array).to(device) for array in arrays)
    return WordCounts(words_N, weights_N, firsts_B, pairs_M, pair_firsts_B, labels_B)


def hashed_pairs(ids: np.ndarray, starts: np.ndarray, buckets: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of every pair of neighbouring words, text after text, and where each text begins, with the end.

    Args:
        ids: the words of all texts, one text after the other.
        starts: where each text begins, and the end.
        buckets: how many numbers there are.
    """
    if len(ids) < 2:
        return np.zeros(0, dtype=np.int64), np.zeros_like(starts)
    unsigned = ids.astype(np.uint64)
    mixed = (unsigned[:-1] + np.uint64(1)) * _FIRST + unsigned[1:]
    mixed = (mixed ^ (mixed >> _HALF)) * _SECOND
    numbers = ((mixed >> _HALF) % np.uint64(buckets)).astype(np.int64)
    is_inside = np.ones(len(numbers), dtype=bool)
    edges = starts[1:-1]  # the pair before such a place has words of two texts
    is_inside[edges[(edges > 0) & (edges < len(ids))] - 1] = False
    return numbers[is_inside], np.concatenate([[0], np.cumsum(np.maximum(np.diff(starts) - 1, 0))])


def label_evidence(entries: Entries, labels_B: Tensor, labels: int, different: int) -> Tensor:
    """Return how much each word, or pair, speaks for each label in training texts: F×K, in nats, of mean 0 over the labels.

    The evidence is the logarithm of p(label | word) / p(label) (naive Bayes; Wang and Manning 2012). One text for each label is
    added, spread over the labels as the training texts are, so a word that is never met speaks for none.

    Args:
        entries: the distinct words of each training text.
        labels_B: the labels of the training texts.
        labels: K.
        different: F.
    """
    label_N = labels_B[entries.text_N]
    met_FK = torch.bincount(entries.ids_N * labels + label_N, minlength=different * labels).view(different, labels)
    share_K = (met_FK.sum(0) + 1).float()
    share_K /= share_K.sum()
    added_FK = met_FK.float().add_(labels * share_K)
    evidence_FK = added_FK.div_(added_FK.sum(1, keepdim=True)).log_().sub_(share_K.log())
    return evidence_FK.sub_(evidence_FK.mean(1, keepdim=True))


def places(starts_B: Tensor, which_B: Tensor) -> tuple[Tensor, Tensor]:
    """Return the places of all entries of some rows, row after row, and where each row begins among them, with the end.

    Args:
        starts_B: where the entries of each row begin, and the end.
        which_B: the rows.
    """
    lengths_B = starts_B[which_B + 1] - starts_B[which_B]
    begins_B = torch.nn.functional.pad(lengths_B.cumsum(0), (1, 0))
    shifted_N = torch.repeat_interleave(starts_B[which_B] - begins_B[:-1], lengths_B)
    return shifted_N + torch.arange(len(shifted_N), device=starts_B.device), begins_B


def _owners(starts_B: Tensor) -> Tensor:
    """Return the row of each entry."""
    rows_B = torch.arange(len(starts_B) - 1, device=starts_B.device)
    return torch.repeat_interleave(rows_B, starts_B.diff())


def _distinct(ids: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct ids of each text in ascending order, how often the text has each, and where each text begins."""
    texts, most = len(starts) - 1, int(ids.max(initial=0)) + 1
    keys = np.sort(np.repeat(np.arange(texts), np.diff(starts)) * most + ids)
    is_new = np.ones(len(keys), dtype=bool)
    is_new[1:] = keys[1:] != keys[:-1]
    at = np.flatnonzero(is_new)
    text, id_ = np.divmod(keys[at], most)
    return id_, np.diff(at, append=len(keys)), np.searchsorted(text, np.arange(texts + 1))
