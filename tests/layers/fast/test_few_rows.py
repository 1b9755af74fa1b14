"""Products of few rows: the same numbers either way round, and the other way only where it was measured to be faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from lmlab.hardware import kept_figures, rates
from lmlab.hardware.choice import turns_few_rows
from lmlab.hardware.kept_figures import find
from lmlab.hardware.openmp import set_threads, threads_as_before
from lmlab.layers import fast
from lmlab.layers.fast import few_rows


class Order(TorchDispatchMode):
    """Which sizes the first factor of every product had."""

    def __init__(self) -> None:
        super().__init__()
        self.firsts = list[tuple[int, ...]]()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
            self.firsts.append(tuple(args[-2].shape))
        return func(*args, **(kwargs or {}))


def first_factor(x: Tensor, weight: Tensor) -> tuple[int, ...]:
    with Order() as order:
        few_rows.linear(x, weight)
    (first,) = order.firsts
    return first


def told(monkeypatch: pytest.MonkeyPatch, turned: float) -> None:
    """That products of few rows are so many times as fast the other way round."""
    found = find("cpu")
    other = replace(found, devices=tuple(replace(device, turned=turned) for device in found.devices))
    monkeypatch.setattr(few_rows, "_faster_turned", lambda _: turns_few_rows(other))


@pytest.fixture
def faster_turned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two threads, on a machine that was found to be faster the other way round."""
    told(monkeypatch, 2.0)
    before = torch.get_num_threads()
    set_threads(2)
    yield
    threads_as_before(before)


WEIGHT = torch.randn(640, 512)


@pytest.mark.usefixtures("faster_turned")
@pytest.mark.parametrize("shape", [(16, 512), (40, 512), (8, 2, 512), (56, 1, 512)])
@torch.no_grad()
def test_either_way_round_the_numbers_are_the_same(shape: tuple[int, ...]) -> None:
    x, bias = torch.randn(shape), torch.randn(640)
    assert first_factor(x, WEIGHT) == (640, 512), "the other way round"
    torch.testing.assert_close(few_rows.linear(x, WEIGHT), F.linear(x, WEIGHT), rtol=1e-5, atol=1e-4)
    made = few_rows.linear(x, WEIGHT, bias)
    torch.testing.assert_close(made, F.linear(x, WEIGHT, bias), rtol=1e-5, atol=1e-4)
    assert made.is_contiguous(), "as the steps that follow take it"


@pytest.mark.usefixtures("faster_turned")
@torch.no_grad()
def test_other_products_are_taken_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(16, 512)
    assert first_factor(x, WEIGHT) == (640, 512)
    assert first_factor(x[:15], WEIGHT) == (15, 512), "too few rows"
    assert first_factor(torch.randn(57, 512), WEIGHT) == (57, 512), "too many"
    assert first_factor(x, WEIGHT[:511]) == (16, 512), "a matrix that is small"
    assert first_factor(x.double(), WEIGHT.double()) == (16, 512), "another precision"
    with torch.enable_grad():
        assert first_factor(x, WEIGHT) == (16, 512), "a step of learning"
    with fast.plain():
        assert first_factor(x, WEIGHT) == (16, 512), "told to do without"
    with FakeTensorMode() as mode:
        assert first_factor(mode.from_tensor(x), mode.from_tensor(WEIGHT)) == (16, 512), "what has no numbers"
    set_threads(1)
    assert first_factor(x, WEIGHT) == (16, 512), "one thread"
    set_threads(2)
    told(monkeypatch, 1.1)
    assert first_factor(x, WEIGHT) == (16, 512), "a machine on which it is hardly faster"
    assert few_rows.linear(torch.randn(0, 512), WEIGHT).shape == (0, 640)


def test_the_gain_is_their_time_the_usual_way_by_that_the_other_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a product takes as long as its first factor has rows."""

    def seconds(work: Callable[[], object], *_: object) -> float:
        with Order() as order:
            work()
        return float(order.firsts[0][0])

    monkeypatch.setattr(rates, "seconds_of", seconds)
    rows, _, outputs = rates.FEW_ROWS
    assert rates.turned_gain(torch.device("cpu")) == rows / outputs
    assert rates.turned_gain(torch.device("cuda")) == 1


def test_what_is_not_known_is_not_measured_in_the_middle_of_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    kept_figures.forget()
    monkeypatch.setattr(few_rows, "_faster_turned", few_rows._faster_turned.__wrapped__)
    monkeypatch.setattr(kept_figures, "measure", lambda *_: pytest.fail("measured"))
    set_threads(2)
    with torch.no_grad():
        assert first_factor(torch.randn(16, 512), WEIGHT) == (16, 512)


@pytest.mark.usefixtures("faster_turned")
@torch.no_grad()
def test_it_is_asked_for_the_threads_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(few_rows, "_faster_turned", lambda threads: asked.append(threads) or False)
    for threads in (2, 3):
        set_threads(threads)
        few_rows.linear(torch.randn(16, 512), WEIGHT)
    assert asked == [2, 3]


@pytest.mark.usefixtures("faster_turned")
@torch.no_grad()
def test_autocast_and_other_precisions_of_the_weights_are_left_to_torch() -> None:
    x = torch.randn(16, 512)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert few_rows.linear(x, WEIGHT).dtype == torch.bfloat16
    with pytest.raises(RuntimeError, match="dtype"):
        few_rows.linear(x, WEIGHT.double())
