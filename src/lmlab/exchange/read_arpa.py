"""Reading ARPA files, as KenLM and SRILM write them, plain or gzipped.

Read are orders with log10 p and an optional back-off each; `-99` and less is log 0. A line without a back-off has log 1. An
n-gram whose history is missing gets it, with the probability that backing off gives it, so no prediction changes.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmlab.config import Mistake
from lmlab.exchange.arpa import BEGIN, END, UNKNOWN, ZERO_LOG10
from lmlab.hardware.memory import available_bytes
from lmlab.models._ngram_blocks import key_bits
from lmlab.models._ngram_smooth import Level

LN_10 = math.log(10)
MOST_ORDER = 16
BYTES_PER_NGRAM = 64  # of memory while an n-gram is read
LONGEST_LINE = 1 << 20
COUNT = re.compile(r"ngram\s+(\d+)\s*=\s*(\d+)\s*")

Words = NDArray[np.int64]  # n×k: the word of each place


@dataclass(frozen=True)
class ArpaModel:
    """What an ARPA file holds: words by id, with <unk> as the last one, and a table for each order."""

    words: list[str]  # in the file's order, then <unk>; </s> is among them, <s> is not
    levels: list[Level]
    counts: list[int]  # n-grams of each order in the file
    knows_unknown: bool  # whether the file gives <unk> a probability


@dataclass
class _Order:
    words: Words
    logp: NDArray[np.float64]  # NaN: to be backed off to
    weight: NDArray[np.float64]


def read_arpa(path: Path) -> ArpaModel:
    """Read an ARPA file.

    Raises:
        Mistake: the file is no ARPA file, is damaged, or needs more memory than is free.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") if _is_gzip(path) else path.open(encoding="utf-8") as file:
            lines = _Lines(path, file)
            counts = lines.counts()
            words = {UNKNOWN: 0}
            orders = [lines.order(k, count, words) for k, count in enumerate(counts, start=1)]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise Mistake(f"{path} cannot be read: {error}", code="arpa-not-readable") from None
    return _model(path, words, orders, counts)


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


class _Lines:
    """The lines of an ARPA file, with their numbers for messages."""

    def __init__(self, path: Path, file: object) -> None:
        self.path, self.file, self.number = path, file, 0

    def damaged(self, why: str) -> Mistake:
        return Mistake(f"{self.path}, line {self.number}: {why}; it is no whole ARPA file", code="arpa-damaged")

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """The next line that is not blank; the end of the file is damage, since \\end\\ comes before it."""
        while True:
            line = self.file.readline(LONGEST_LINE)  # type: ignore[attr-defined]
            self.number += 1
            if not line or len(line) == LONGEST_LINE:
                raise self.damaged("the line is too long" if line else "the file ends early")
            if line.strip():
                return line.rstrip("\r\n")

    def counts(self) -> list[int]:
        """The numbers of n-grams, from the header."""
        for line in self:
            if line.strip() == "\\data\\":
                break
            if self.number > 1000:
                raise self.damaged("there is no \\data\\ in the first thousand lines")
        counts: list[int] = []
        for line in self:
            match = COUNT.fullmatch(line.strip())
            if match is None:
                break
            if int(match[1]) != len(counts) + 1 or len(match[2]) > 15:
                raise self.damaged("the counts of n-grams are out of order")
            counts.append(int(match[2]))
        if not 1 <= len(counts) <= MOST_ORDER or line.strip() != "\\1-grams:":
            raise self.damaged(f"1 to {MOST_ORDER} counts and \\1-grams: were expected")
        needed, free = sum(counts) * BYTES_PER_NGRAM, available_bytes()
        if free is not None and needed > free:
            raise Mistake(
                f"{self.path} has {sum(counts):,} n-grams, which take about {needed / 1e9:,.1f} GB to read, and"
                f" {free / 1e9:,.1f} GB are free",
                code="arpa-exceeds-memory",
            )
        return counts

    def order(self, k: int, count: int, words: dict[str, int]) -> _Order:
        """The n-grams of one order, whose heading was read, up to and with the next heading."""
        found, logp, weight = [], [], []
        for line in self:
            if line.startswith("\\"):
                break
            columns = line.split("\t") if "\t" in line else line.split()
            spelled = columns[1].split(" ") if "\t" in line and len(columns) > 1 else columns[1 : k + 1]
            rest = columns[2:] if "\t" in line else columns[k + 1 :]
            try:
                p, backoff = float(columns[0]), float(rest[0]) if rest else 0.0
            except ValueError:
                raise self.damaged("a log-probability is no number") from None
            if len(spelled) != k or len(rest) > 1 or math.isnan(p) or math.isnan(backoff) or p > 1e-4:
                raise self.damaged(f"this is no {k}-gram with its log10 probability")
            if k == 1:
                if spelled[0] in words and spelled[0] != UNKNOWN:
                    raise self.damaged(f"{spelled[0][:40]!r} is there twice")
                words.setdefault(spelled[0], len(words))
            if (ids := [words.get(word, -1) for word in spelled]) and min(ids) < 0:
                raise self.damaged("a word is not among the 1-grams")
            found.append(ids)
            logp.append(p)
            weight.append(backoff)
        if len(found) != count:
            raise self.damaged(f"there are {len(found):,} {k}-grams, and the header says {count:,}")
        return _Order(
            np.array(found, dtype=np.int64).reshape(-1, k), _natural(np.array(logp)), _natural(np.array(weight))
        )


def _natural(log10: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(log10 <= ZERO_LOG10, -np.inf, log10 * LN_10)


def _model(path: Path, words: dict[str, int], orders: list[_Order], counts: list[int]) -> ArpaModel:
    """Give ids (words, then <unk>, and above them <s>), complete the histories, and build the tables."""
    if BEGIN not in words or END not in words:
        raise Mistake(
            f"{path} lacks {BEGIN} or {END}, so that no sentence begins or ends", code="arpa-without-sentences"
        )
    knows_unknown = bool(np.isin(words[UNKNOWN], orders[0].words))
    kept = [word for word in words if word not in (UNKNOWN, BEGIN)] + [UNKNOWN]
    size = len(kept)
    new_ids = np.empty(len(words), dtype=np.int64)
    for new, word in enumerate(kept):
        new_ids[words[word]] = new
    new_ids[words[BEGIN]] = size
    end = int(new_ids[words[END]])
    for order in orders:
        order.words = new_ids[order.words]
        inner = order.words[:, 1:] == size  # a begin inside, or an end before the last place, can never be met
        odd = inner.any(axis=1) | (order.words[:, :-1] == end).any(axis=1)
        order.words, order.logp, order.weight = order.words[~odd], order.logp[~odd], order.weight[~odd]
    for k in range(len(orders) - 1, 1, -1):
        _add_histories(orders[k - 1], orders[k].words[:, :-1])
    logp, weight = np.full(size + 1, -np.inf), np.zeros(size + 1)
    logp[orders[0].words[:, 0]], weight[orders[0].words[:, 0]] = orders[0].logp, orders[0].weight
    last = len(orders) == 1
    levels = [_level(np.arange(size), logp[:size], np.zeros(0) if last else weight)]
    bits = key_bits(size)
    for k, order in enumerate(orders[1:], start=2):
        keys = (_ids(levels, order.words[:, :-1], bits) << bits) | order.words[:, -1]
        keys, first = np.unique(keys, return_index=True)
        if len(keys) < len(order.words):
            raise Mistake(f"{path} has the same {k}-gram twice", code="arpa-ngram-twice")
        missing = np.flatnonzero(np.isnan(order.logp))
        order.logp[missing] = [_backed_off(levels, order.words[i], bits) for i in missing.tolist()]
        levels.append(_level(keys, order.logp[first], np.zeros(0) if k == len(orders) else order.weight[first]))
    return ArpaModel(kept, levels, counts, knows_unknown)


def _level(keys: Words, logp: NDArray[np.float64], weight: NDArray[np.float64]) -> Level:
    return Level(keys=keys, logp=logp.astype(np.float32), weight=weight.astype(np.float32))


def _add_histories(order: _Order, wanted: Words) -> None:
    """Add the histories of longer n-grams that an order lacks."""
    every = np.unique(wanted, axis=0)
    both, where = np.unique(np.concatenate([order.words, every]), axis=0, return_inverse=True)
    has = np.zeros(len(both), dtype=bool)
    has[where.ravel()[: len(order.words)]] = True
    added = both[~has]
    order.words = np.concatenate([order.words, added])
    order.logp = np.concatenate([order.logp, np.full(len(added), np.nan)])
    order.weight = np.concatenate([order.weight, np.zeros(len(added))])


def _ids(levels: list[Level], words: Words, bits: int) -> Words:
    """The ids of n-grams in the table of their length; each of them is there."""
    ids: Words = words[:, 0]
    for m in range(1, words.shape[1]):
        ids = np.searchsorted(levels[m].keys, (ids << bits) | words[:, m])
    return ids


def _backed_off(levels: list[Level], words: Words, bits: int) -> float:
    """log p of the last of these words after the others, from the n-grams that `levels` has."""
    *history, last = words.tolist()
    total = 0.0
    while history:
        before = _id(levels, history, bits)
        if before is not None:
            if (at := _id(levels, [*history, last], bits)) is not None:
                return total + float(levels[len(history)].logp[at])
            total += float(levels[len(history) - 1].weight[before])
        history = history[1:]
    return total + float(levels[0].logp[last])


def _id(levels: list[Level], words: list[int], bits: int) -> int | None:
    """The id of an n-gram in the table of its length; None if it is not there."""
    id = words[0]
    for m, word in enumerate(words[1:], start=1):
        if m >= len(levels):
            return None
        keys, wanted = levels[m].keys, (id << bits) | word
        id = int(np.searchsorted(keys, wanted))
        if id == len(keys) or keys[id] != wanted:
            return None
    return id
