"""Products of two to eight rows in C: the numbers of F.linear, whatever the sizes, the threads, and the rows beside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.hardware.c_kernels import made, no_c_kernels
from lmlab.hardware.openmp import set_threads, threads_as_before
from lmlab.hardware.races import Race
from lmlab.layers import fast
from lmlab.layers.fast import few_rows, few_rows_in_c

pytestmark = pytest.mark.skipif(
    made(few_rows_in_c.SOURCE, shared=True) is None, reason="there is no compiler here, or none with OpenMP"
)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Which products are made in C, on a machine where they are faster so: the shape of x."""
    shapes, product = list[tuple[int, ...]](), few_rows_in_c.product

    def noted(x_BK: Tensor, weight_NK: Tensor) -> Tensor:
        shapes.append(tuple(x_BK.shape))
        return product(x_BK, weight_NK)

    monkeypatch.setattr(few_rows_in_c, "product", noted)
    for race in (few_rows_in_c.PAIR_RACE, few_rows_in_c.SOME_RACE):
        monkeypatch.setattr(race, "taken", lambda _: made(few_rows_in_c.SOURCE, shared=True) is not None)
    return shapes


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    threads_as_before(before)


@pytest.mark.parametrize("rows", range(2, 9))
@pytest.mark.parametrize(("inputs", "outputs"), [(384, 1536), (192, 577), (200, 321), (17, 2000), (1, 40_000)])
def test_the_numbers_are_those_of_exact_products(rows: int, inputs: int, outputs: int) -> None:
    generator = torch.Generator().manual_seed(rows)
    x = torch.randn(rows, inputs, generator=generator)
    weight = torch.randn(outputs, inputs, generator=generator)
    found, exact = few_rows_in_c.product(x, weight), x.double() @ weight.double().T
    assert found.shape == exact.shape
    plain_off = (F.linear(x, weight) - exact).abs().max()
    assert (found - exact).abs().max() <= 2 * plain_off + 1e-6


@pytest.mark.usefixtures("threads")
def test_they_are_the_same_to_the_last_bit_with_any_threads_and_any_rows_beside() -> None:
    x, weight = torch.randn(8, 200), torch.randn(703, 200)
    set_threads(1)
    whole = few_rows_in_c.product(x, weight)
    for count in (1, 2, 3):
        set_threads(count)
        for rows in few_rows_in_c.ROWS:
            assert torch.equal(few_rows_in_c.product(x[:rows], weight), whole[:rows])
            assert torch.equal(few_rows_in_c.product(x[8 - rows :], weight), whole[8 - rows :])


@torch.no_grad()
def test_it_is_taken_for_few_rows_that_lie_in_memory_and_for_nothing_else(
    taken: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, weight, bias = torch.randn(4, 384), torch.randn(640, 384), torch.randn(640)
    torch.testing.assert_close(few_rows.linear(x, weight, bias), F.linear(x, weight, bias), rtol=1e-5, atol=1e-4)
    assert few_rows.linear(x.view(2, 2, 384), weight).shape == (2, 2, 640)
    assert taken == [(4, 384), (4, 384)]
    taken.clear()
    for other_x, other_weight in (
        (x[:1], weight),  # one row
        (torch.randn(9, 384), weight),  # many
        (x[:0], weight),  # none
        (x, weight[:80]),  # a small matrix
        (torch.randn(384, 4).T, weight),  # not row by row
        (x, torch.randn(384, 640).T),
        (x.double(), weight.double()),  # another precision
    ):
        wanted = F.linear(other_x, other_weight)
        torch.testing.assert_close(few_rows.linear(other_x, other_weight), wanted, rtol=1e-5, atol=1e-4)
    with torch.enable_grad():
        few_rows.linear(x, weight.requires_grad_()).sum().backward()
        assert weight.grad is not None
    weight = weight.detach()
    with fast.plain():
        few_rows.linear(x, weight)
    with no_c_kernels():
        few_rows.linear(x, weight)
    with monkeypatch.context() as patch:  # what a kernel makes would be written down as it is
        patch.setattr(torch.jit, "is_tracing", lambda: True)
        few_rows.linear(x, weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert few_rows.linear(x, weight).dtype == torch.bfloat16
    with pytest.raises(RuntimeError):
        few_rows.linear(x, torch.randn(640, 385))
    assert taken == []


@pytest.mark.parametrize("race", [few_rows_in_c.PAIR_RACE, few_rows_in_c.SOME_RACE])
def test_its_races_are_of_the_rows_they_decide_on(race: Race, taken: list[tuple[int, ...]]) -> None:
    ours, _ = race._ways(torch.float32)
    ours()
    assert {few_rows_in_c.race_of(rows) for rows, _ in taken} == {race}
    assert {inputs for _, inputs in taken} == {few_rows_in_c.RACED_INPUTS, few_rows_in_c.RACED_OUTPUTS}
    assert {few_rows_in_c.race_of(rows) for rows in few_rows_in_c.ROWS} >= {race}
