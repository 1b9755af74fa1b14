"""Which tokens are hidden: 15%, of these 80% as the mask, 10% exchanged, 10% as they are; drawn from (seed, step) alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from lmlab.interface import Windows
from lmlab.learn.unit import Unit
from lmlab.models.bert import Masked
from lmlab.models.families.encoder import Symbols
from lmlab.tasks.masked import data
from lmlab.tasks.masked.data import masked, one_by_one
from lmlab.tasks.masked.learner import Masking
from lmlab.text.stream import TokenStream

WORDS = 1000
SYMBOLS = Symbols.beside(WORDS)


def drawn(rows: int = 40, length: int = 100, seed: int = 0) -> tuple[Windows, Masked]:
    tokens_BL = torch.from_numpy(np.random.default_rng(9).integers(0, WORDS, (rows, length)))
    windows = Windows(tokens_BL)
    return windows, masked(windows, SYMBOLS, WORDS, np.random.default_rng(seed))


def check(windows: Windows, batch: Masked) -> None:
    """What BERT's recipe promises; AssertionError where it is broken."""
    places = batch.places_N.numpy()
    shown_N, is_N = batch.inputs_BT.numpy().flat[places], batch.targets_N.numpy()
    assert len(set(places.tolist())) == len(places) == round(0.15 * windows.tokens_BT.numel())
    rows, columns = np.divmod(places, batch.inputs_BT.shape[1])
    assert (windows.tokens_BT.numpy()[rows, columns - 1] == is_N).all()
    as_mask, as_is = shown_N == SYMBOLS.mask, shown_N == is_N
    assert as_mask.mean() == pytest.approx(0.8, abs=0.06)
    assert as_is.mean() == pytest.approx(0.1, abs=0.05)
    assert (~as_mask & ~as_is).mean() == pytest.approx(0.1, abs=0.05)
    untouched = np.ones(batch.inputs_BT.numel(), bool)
    untouched[places] = False
    before = np.concatenate([windows.tokens_BT.numpy()[:, :1], windows.tokens_BT.numpy(), windows.tokens_BT[:, :1]], 1)
    before[:, 0], before[:, -1] = SYMBOLS.begin, SYMBOLS.end
    assert (batch.inputs_BT.numpy().flat[untouched] == before.flat[untouched]).all()


def test_what_is_hidden_is_as_published() -> None:
    check(*drawn())


@pytest.mark.parametrize(
    "bug", [{"HIDDEN": 0.0}, {"HIDDEN": 1.0}, {"EXCHANGED": 0.0}, {"EXCHANGED": 0.2}, {"MASKED_OF_20": 8}]
)
def test_a_recipe_that_is_not_as_published_is_noticed(bug: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in bug.items():  # the first: the mask is never shown
        monkeypatch.setattr(data, name, value)
    with pytest.raises(AssertionError):
        check(*drawn())


def test_only_text_is_asked_for_and_the_end_stands_behind_it() -> None:
    mask_BL = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]]).bool()
    windows = Windows(torch.tensor([[5, 6, 7, 8], [9, 0, 0, 0]]), mask_BL)
    for seed in range(20):
        batch = masked(windows, SYMBOLS, WORDS, np.random.default_rng(seed))
        assert batch.text_BT is not None
        assert batch.text_BT.tolist() == [[True] * 6, [True, True, True, False, False, False]]
        assert batch.inputs_BT[1, 2] == SYMBOLS.end
        assert batch.count == 1  # 15% of five tokens, rounded up
        assert len(batch.places_N) == 2  # as many as eight tokens would have: one shape for all batches
        assert int(batch.places_N[0]) in (1, 2, 3, 4, 7)
        assert int(batch.targets_N[0]) in (5, 6, 7, 8, 9)


def test_every_token_is_hidden_once_for_the_pseudo_likelihood() -> None:
    batch = one_by_one(np.array([5, 6, 7], dtype=np.uint16), SYMBOLS)
    b, e, m = SYMBOLS
    assert batch.inputs_BT.tolist() == [[b, m, 6, 7, e], [b, 5, m, 7, e], [b, 5, 6, m, e]]
    assert batch.targets_N.tolist() == [5, 6, 7]
    assert batch.inputs_BT.flatten()[batch.places_N].tolist() == [m, m, m]


def test_batches_depend_on_seed_and_step_alone_and_some_are_of_short_texts() -> None:
    ids = np.random.default_rng(0).integers(0, WORDS, 5000).astype(np.uint16)
    stream = TokenStream(ids=ids, starts=np.array([0, 5000]), bytes=5000, chars=5000, words=1)
    unit, nothing = Unit(bits_per_nat=1, spelling_bits=0), None
    task = Masking(
        train=stream, valid=stream, units={"train": unit, "valid": unit}, vocab_size=WORDS, rows=4, length=32,
        tokenizer=nothing, chunks=None,  # type: ignore[arg-type]
    )  # fmt: skip
    one, again, other = task.batch(1, 7), task.batch(1, 7), task.batch(2, 7)
    assert torch.equal(one.inputs_BT, again.inputs_BT)
    assert torch.equal(one.places_N, again.places_N)
    assert one.inputs_BT.shape != other.inputs_BT.shape or not torch.equal(one.inputs_BT, other.inputs_BT)
    shapes = {tuple(task.batch(0, step).inputs_BT.shape) for step in range(60)}
    assert shapes == {(4, 34), (16, 10)}
    first, second = ([batch.inputs_BT for batch in task.validation()] for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
