"""Products of few rows: the same numbers either way round, and the other way only where it was measured to be faster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

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


WEIGHT = torch.randn(320, 256)


@pytest.mark.usefixtures("faster_turned")
@pytest.mark.parametrize("shape", [(16, 256), (40, 256), (8, 2, 256), (56, 1, 256)])
@torch.no_grad()
def test_either_way_round_the_numbers_are_the_same(shape: tuple[int, ...]) -> None:
    x, bias = torch.randn(shape), torch.randn(320)
    assert first_factor(x, WEIGHT) == (320, 256), "the other way round"
    torch.testing.assert_close(few_rows.linear(x, WEIGHT), F.linear(x, WEIGHT), rtol=1e-5, atol=1e-4)
    made = few_rows.linear(x, WEIGHT, bias)
    torch.testing.assert_close(made, F.linear(x, WEIGHT, bias), rtol=1e-5, atol=1e-4)
    assert made.is_contiguous(), "as the steps that follow take it"


@pytest.mark.usefixtures("faster_turned")
@torch.no_grad()
def test_other_products_are_taken_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(16, 256)
    assert first_factor(x, WEIGHT) == (320, 256)
    assert first_factor(x[:15], WEIGHT) == (15, 256), "too few rows"
    assert first_factor(torch.randn(57, 256), WEIGHT) == (57, 256), "too many"
    assert first_factor(x, WEIGHT[:255]) == (16, 256), "a matrix that is small"
    assert first_factor(x.double(), WEIGHT.double()) == (16, 256), "another precision"
    with torch.enable_grad():
        assert first_factor(x, WEIGHT) == (16, 256), "a step of learning"
    with fast.plain():
        assert first_factor(x, WEIGHT) == (16, 256), "told to do without"
    with FakeTensorMode() as mode:
        assert first_factor(mode.from_tensor(x), mode.from_tensor(WEIGHT)) == (16, 256), "what has no numbers"
    set_threads(1)
    assert first_factor(x, WEIGHT) == (16, 256), "one thread"
    set_threads(2)
    told(monkeypatch, 1.1)
    assert first_factor(x, WEIGHT) == (16, 256), "a machine on which it is hardly faster"
    assert few_rows.linear(torch.randn(0, 256), WEIGHT).shape == (0, 320)


def test_the_gain_is_measured_and_kept() -> None:
    """Of this machine, whatever it is."""
    assert 0.05 < find("cpu").device("cpu").turned < 50
