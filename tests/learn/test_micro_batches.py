"""Micro-batches: all rows of a batch once, each with dropout of its own, and together the same step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from lmlab.hardware.choice import Hardware
from lmlab.interface import Learner, Windows
from lmlab.learn import micro_batches
from lmlab.learn.gradients import join_rows
from lmlab.learn.micro_batches import MicroBatch, cut, dropout_seed
from lmlab.learn.optimizer import Optimizer, OptimizerConfig
from lmlab.learn.stepping import Eager
from lmlab.models.autoencoder import LabelledPairs
from lmlab.models.bert import Masked
from lmlab.models.families.encoder import Symbols
from lmlab.models.families.labelling import Bags
from lmlab.models.glove import PairBatch
from lmlab.models.registry import model_class
from lmlab.models.translator import Translations
from lmlab.tasks.masked.data import masked

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
VOCAB, ROWS, LENGTH = 11, 5, 8
SETTINGS: dict[str, dict[str, Any]] = {
    "gpt": {"layers": 1, "width": 16, "heads": 2, "context": LENGTH, "stride": 4, "tie": False, "dropout": 0.0},
    "lstm": {"layers": 1, "width": 12, "embedding_width": 8, "tie": False, "dropout": 0.0},
    "bert": {
        "layers": 1, "width": 16, "heads": 2, "hidden": 32, "context": LENGTH + 2, "dropout": 0.0,
        "symbols": True, "pooler": False, "transform": True,
    },
    "translator": {"languages": 2, "layers": 1, "width": 16, "heads": 2, "context": LENGTH, "dropout": 0.0},
    "dan": {"labels": 3, "width": 6, "hidden": 5, "word_dropout": 0.0, "dropout": 0.0},
    "glove": {"width": 4},
    "autoencoder": {"labels": 2, "width": 4, "parent": 3},
}  # fmt: skip


def made(name: str, **changes: Any) -> Learner:
    torch.manual_seed(0)
    cls: Any = model_class(name)
    model: Learner = cls(cls.Config(**{**SETTINGS[name], **changes}), VOCAB)
    return model.train()


def windows(sizes: tuple[int, ...] = (8, 3, 8, 1, 5)) -> Windows:
    """Windows of documents of these sizes."""
    tokens_BT = torch.randint(VOCAB, (len(sizes), LENGTH), generator=torch.Generator().manual_seed(1))
    return Windows(tokens_BT, torch.arange(LENGTH) < torch.tensor(sizes)[:, None])


def batch_for(name: str) -> Any:
    draw = torch.Generator().manual_seed(2)

    def ids(*shape: int) -> torch.Tensor:
        return torch.randint(VOCAB, shape, generator=draw)

    if name == "bert":
        return masked(windows(), Symbols.beside(VOCAB), VOCAB, np.random.default_rng(0))
    if name == "translator":
        lengths_B1 = torch.tensor([8, 3, 5, 1, 2])[:, None]
        there_BS = torch.arange(LENGTH) < lengths_B1
        mask_BKT = (torch.arange(LENGTH) < lengths_B1)[:, None].repeat(1, 2, 1)
        mask_BKT[4] = False  # a row that only fills the batch up
        return Translations(ids(ROWS, LENGTH), there_BS, ids(ROWS, 2, LENGTH), mask_BKT)
    if name == "dan":
        return Bags(ids(12), torch.tensor([0, 4, 4, 9, 10]), torch.tensor([0, 1, 2, 0, 1]))
    if name == "glove":
        return PairBatch(ids(ROWS), ids(ROWS), torch.rand(ROWS, generator=draw), torch.rand(ROWS, generator=draw))
    if name == "autoencoder":
        return LabelledPairs(ids(ROWS, 2), torch.tensor([0, 1, 1, 0, 1]))
    return windows()


def gradients(model: Learner, parts: list[Any], count: int) -> dict[str, torch.Tensor]:
    for part in parts:
        (model.loss(part).total / count).backward()
    join_rows(list(model.parameters()))
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {name: grad.to_dense() if grad.is_sparse else grad for name, grad in found.items()}


@pytest.mark.parametrize("name", list(SETTINGS))
@pytest.mark.parametrize("parts", [2, 5])
def test_micro_batches_together_have_the_gradient_of_their_batch(name: str, parts: int) -> None:
    batch = batch_for(name)
    shared = list(cut(batch, parts))
    assert [part.rows for part in shared] == ([2, 3] if parts == 2 else [1] * 5)
    assert sum(part.count for part in shared) == batch.count
    whole, together = (gradients(made(name), each, batch.count) for each in ([batch], shared))
    assert whole.keys() == together.keys()
    for key, expected in whole.items():
        torch.testing.assert_close(together[key], expected, rtol=1e-4, atol=1e-6, msg=lambda m, k=key: f"{k}: {m}")


def test_a_batch_in_one_part_is_not_touched() -> None:
    batch = windows()
    assert cut(batch, 1)[0] is batch


def test_a_batch_of_few_rows_has_few_micro_batches_and_no_empty_ones() -> None:
    assert [part.rows for part in cut(windows((8, 8, 8)), 8)] == [1, 1, 1]


def test_masked_places_stay_with_their_text() -> None:
    batch: Masked = batch_for("bert")
    for first, part in enumerate(cut(batch, ROWS)):
        place_N = part.places_N if part.asked_N is None else part.places_N[part.asked_N]
        shown = batch.inputs_BT[first][place_N]
        assert torch.equal(part.inputs_BT.flatten()[place_N], shown)


def losses_of_equal_rows(seed_of: Callable[[int, int, int], int]) -> list[float]:
    """What four micro-batches of the same text cost, with dropout."""
    model = made("lstm", dropout=0.3)
    with torch.no_grad():
        for weight in model.parameters():  # outputs begin at zero, and dropout would not show
            weight.add_(torch.randn_like(weight))
    optimizer = Optimizer(dict(model.named_parameters()), OptimizerConfig())
    seen: list[float] = []

    def loss_of(model: Learner, piece: Any, carry: Any) -> Any:
        loss = model.loss(piece)
        seen.append(float(loss.total.detach()))
        return loss, carry

    parts = cut(Windows(torch.arange(LENGTH).repeat(4, 1)), 4)
    given = [MicroBatch(piece=part, seed=seed_of(0, 7, number)) for number, part in enumerate(parts)]
    Eager(model, loss_of, optimizer, CPU.device).take(given, 4 * LENGTH, 1.0)
    return seen


def test_every_micro_batch_has_dropout_of_its_own() -> None:
    assert len(set(losses_of_equal_rows(dropout_seed))) == 4


def test_the_same_dropout_in_every_micro_batch_is_noticed() -> None:
    """A planted bug."""
    assert len(set(losses_of_equal_rows(lambda seed, step, part: dropout_seed(seed, step, 0)))) == 1


def test_a_seed_that_differs_beyond_32_bits_alone_is_noticed() -> None:
    """A planted bug: torch's generator of the CPU would draw the same."""
    assert len(set(losses_of_equal_rows(lambda seed, step, part: dropout_seed(seed, step, 0) + (part << 40)))) == 1


def test_no_two_micro_batches_of_a_run_share_a_seed() -> None:
    """As the CPU reads seeds: modulo 2**32. Whatever parts are less than 1024 apart, their seeds meet after a million steps."""
    apart = np.arange(1, 1024, dtype=np.uint64) * micro_batches.BETWEEN_MICRO_BATCHES % 2**32
    assert np.minimum(apart, 2**32 - apart).min() > 1e6


def test_the_first_micro_batch_has_the_seed_of_an_undivided_batch() -> None:
    assert dropout_seed(3, 50, 0) == 3 * 1_000_003 + 50
