"""Pairs as ids and batches: every row once an epoch, in few shapes with little padding, from (seed, step) alone."""

from __future__ import annotations

import dataclasses
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from lmlab.learn.micro_batches import cut
from lmlab.tasks.translation import data
from lmlab.tasks.translation.data import Encoded, grouped, refuse_long
from lmlab.tasks.translation.learner import Translating
from lmlab.text.sentence_pairs import Rows, read_pairs
from lmlab.text.tokenizers import train_tokenizer
from mistakes import mistake


def task(table: Path, rows: int = 10) -> Translating:
    tokenizer = train_tokenizer("byte", [])
    pairs = read_pairs(table)
    train = Encoded.of(tokenizer, pairs.parts["train"])
    return Translating(train=train, valid=None, tokenizer=tokenizer, languages=("de", "fr"), rows=rows)


def test_an_end_stands_behind_every_sentence_and_the_rest_is_the_text() -> None:
    tokenizer = train_tokenizer("byte", [])
    rows = Rows((("ab", "ä"), ("c", "xyz")), (1, 2), "here")
    found = Encoded.of(tokenizer, rows)
    assert found.languages[0].ids_N.tolist() == [97, 98, 256, 99, 256]
    assert found.lengths_BL.tolist() == [[3, 3], [2, 4]]
    assert (found.target_tokens, found.target_bytes) == (7, 5)
    batch = found.translations(np.array([1, 0]), 3, 3, 4)
    assert batch.source_BS.tolist() == [[99, 256, 256], [97, 98, 256], [256, 256, 256]]
    assert batch.there_BS.tolist() == [[True, True, False], [True, True, True], [True, False, False]]
    assert batch.mask_BKT.sum().item() == batch.count == 7


def test_an_epoch_shows_every_row_once_in_an_order_of_its_own(table: Path) -> None:
    learning = task(table)
    steps = learning.steps_per_epoch
    epochs = [[learning.batch(3, epoch * steps + i) for i in range(steps)] for epoch in range(2)]
    whole = sorted(learning.train.languages[0].ids_N.tolist())
    for epoch in epochs:
        assert sum(batch.count for batch in epoch) == learning.train.target_tokens
        assert (
            sorted(id for b in epoch for id in b.source_BS[b.there_BS & b.mask_BKT.any((1, 2))[:, None]].tolist())
            == whole
        )
    assert any(
        not a.source_BS.equal(b.source_BS)
        for a, b in zip(*epochs, strict=True)
        if a.source_BS.shape == b.source_BS.shape
    )
    assert learning.batch(3, 1).source_BS.equal(task(table).batch(3, 1).source_BS)


def test_batches_have_few_shapes_and_little_padding(table: Path) -> None:
    learning = task(table)
    batches = [learning.batch(0, step) for step in range(learning.steps_per_epoch)]
    assert len({(b.source_BS.shape, b.targets_BKT.shape) for b in batches}) <= data.GROUPS
    assert sum(b.count for b in batches) > 0.7 * sum(b.mask_BKT.numel() for b in batches)


def test_what_is_timed_has_the_commonest_shape(table: Path) -> None:
    timed = dataclasses.replace(task(table), timed=True)
    assert len({timed.batch(0, step).targets_BKT.shape for step in range(2 * timed.steps_per_epoch)}) == 1


def test_micro_batches_share_the_rows_of_a_batch(table: Path) -> None:
    whole = task(table).batch(0, 2)
    parts = cut(whole, 2)
    assert sum(part.count for part in parts) == whole.count
    assert torch.cat([part.source_BS for part in parts]).equal(whole.source_BS)


def test_groups_hold_the_least_padding_that_so_many_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "GROUPS", 3)
    lengths = np.random.default_rng(0).integers(1, 12, 40)
    found = grouped(np.stack([lengths, lengths], axis=1), 5)
    cost = sum(len(g.members_B) * g.target for g in found)
    sizes = sorted(set(lengths.tolist()))
    best = min(
        sum(min(edge for edge in (*edges, sizes[-1]) if edge >= n) for n in lengths.tolist())
        for edges in combinations(sizes[:-1], 2)
    )
    assert cost == best
    assert sorted(np.concatenate([g.members_B for g in found]).tolist()) == list(range(40))


def test_a_sentence_that_is_too_long_is_named_by_its_line() -> None:
    rows = Rows((("ab", "c"), ("d", "efghi")), (2, 7), "pairs.tsv")
    encoded = Encoded.of(train_tokenizer("byte", []), rows)
    refuse_long(rows, encoded, 6)
    with mistake("pairs-line-too-long", "line 7"):
        refuse_long(rows, encoded, 5)
