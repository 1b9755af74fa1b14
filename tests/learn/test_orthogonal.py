"""Muon's rounds: each the best quintic there is, together as near to one as was asked, and in bf16 without running away."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from lmlab.layers import fast
from lmlab.learn.orthogonal import LEAST, LONG, best_quintic, orthogonalize, rounds

PRECISIONS = [torch.float32, torch.bfloat16]
USUAL = (3.4445, -4.7750, 2.0315)  # in wide use, five times


def after(quintics: tuple[tuple[float, float, float], ...], values: np.ndarray) -> np.ndarray:
    """What becomes of singular values."""
    for a, b, c in quintics:
        values = values * (a + b * values**2 + c * values**4)
    return values


@pytest.mark.parametrize(("least", "largest"), [(0.001, 1.0), (0.008, 2.03), (0.3, 1.7), (0.9, 1.1)])
def test_a_round_is_as_far_from_one_four_times_in_turn(least: float, largest: float) -> None:
    """Chebyshev: a polynomial that does so is the nearest, and the only one."""
    x = np.geomspace(least, largest, 400_001)
    distance = 1 - after((best_quintic(least, largest),), x)
    most = np.abs(distance).max()
    turns = [0]
    for place in np.flatnonzero(np.abs(distance) > most * (1 - 1e-6)):
        if distance[place] * distance[turns[-1]] < 0:
            turns.append(place)
    assert np.abs(distance[0]) == pytest.approx(most, rel=1e-6)
    assert len(turns) == 4


def test_no_quintic_found_by_search_is_nearer() -> None:
    """A thousand others, near and far."""
    least, largest = 0.05, 1.5
    x = np.linspace(least, largest, 4001)
    best = best_quintic(least, largest)
    mine = np.abs(1 - after((best,), x)).max()
    drawn = np.random.default_rng(0)
    for spread in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(250):
            other = tuple(best * (1 + spread * drawn.standard_normal(3)))
            assert np.abs(1 - after((other,), x)).max() > mine


def test_four_rounds_lift_small_values_nearly_as_far_as_five_of_the_usual_quintic() -> None:
    """What they give for it: the large ones end between 0.43 and 1.57, where five end between 0.68 and 1.21."""
    x = np.geomspace(LEAST, 1.0, 100_001)
    four, five = after(rounds(), x), after((USUAL,) * 5, x)
    assert four.min() > 0.9 * five.min() > 0.4
    assert four.max() < 1.58
    tiny = np.array([1e-6, 1e-5])
    np.testing.assert_allclose(after(rounds(), tiny), after((USUAL,) * 5, tiny), rtol=0.125)


@pytest.mark.parametrize(("least", "most"), [(0.001, 9), (0.01, 7), (0.5, 4), (0.9, 3)])
def test_more_rounds_come_nearer_until_nothing_is_left(least: float, most: int) -> None:
    """Without room for rounding; also where the least and the largest value have become one."""
    x = np.geomspace(least, 1.0, 100_001)
    distances = [np.abs(1 - after(rounds(least, count, room=1.0), x)).max() for count in range(1, most + 1)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-6


@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (6, 6)])
def test_what_becomes_of_a_matrix_is_what_the_rounds_make_of_its_values(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    matrix = torch.randn(1, *shape, dtype=torch.float64)
    u, values, vh = torch.linalg.svd(matrix, full_matrices=False)
    made = torch.from_numpy(after(rounds(), (values / matrix.norm()).numpy()))
    torch.testing.assert_close(
        orthogonalize(matrix, torch.float64), u @ torch.diag_embed(made) @ vh, rtol=1e-4, atol=1e-5
    )


def test_the_rounds_are_taken_in_the_precision_that_is_asked_for() -> None:
    torch.manual_seed(0)
    matrix = torch.randn(1, 32, 32)
    exact = orthogonalize(matrix.double(), torch.float64).float()
    apart = [float((orthogonalize(matrix, dtype) - exact).norm() / exact.norm()) for dtype in PRECISIONS]
    assert apart[0] < 1e-4 < 1e-3 < apart[1] < 0.1


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("shape", [(1, 8), (4, 64), (64, 64), (128, 48)])
@pytest.mark.parametrize("rank", [1, 2, 8, 128])
def test_values_do_not_run_away_where_few_hold_all_the_length(
    shape: tuple[int, int], rank: int, dtype: torch.dtype
) -> None:
    """A quintic grows steeply beyond what it was made for, and bf16 rounds a value that is all of a matrix's length up."""
    torch.manual_seed(rank)
    of_rank = torch.randn(8, shape[0], rank) @ torch.randn(8, rank, shape[1])
    values = torch.linalg.svdvals(orthogonalize(of_rank, dtype))
    assert values.max() < 1.6
    assert values[:, 0].min() > 0.4


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("size", [2, 8, 32])
def test_nor_do_they_where_all_rounding_goes_one_way(size: int, dtype: torch.dtype) -> None:
    """Rank one, of powers of two and of one number: every entry is rounded alike, so that nothing cancels."""
    drawn = torch.Generator().manual_seed(size)
    powers = 2.0 ** torch.randint(-3, 4, (100, size), generator=drawn)
    others = 2.0 ** torch.randint(-3, 4, (100, size), generator=drawn)
    steady = torch.rand(100, 1, 1, generator=drawn).expand(100, size, size)
    columns = torch.rand(100, 1, size, generator=drawn).expand(100, size, size)
    for matrices in (powers[:, :, None] * others[:, None], steady, columns):
        assert torch.linalg.svdvals(orthogonalize(matrices, dtype)).max() < 1.6


@pytest.mark.parametrize("falls_to", [1.0, 1e-2, 1e-4, 0.0])
@pytest.mark.parametrize("shape", [(3, 8, 16), (2, 96, 24), (1, 48, 192)])
def test_long_matrices_come_to_the_same_through_their_gram_matrix(shape: tuple[int, ...], falls_to: float) -> None:
    """Whose eigenvalues are squares: of values far below the largest little is left in float32, and as little comes of them."""
    torch.manual_seed(0)
    u, values, vh = torch.linalg.svd(torch.randn(shape, dtype=torch.float64), full_matrices=False)
    values *= torch.linspace(1.0, falls_to**0.25, values.shape[-1], dtype=torch.float64) ** 4
    matrices = u @ torch.diag_embed(values) @ vh
    with fast.plain():
        exact, plain = orthogonalize(matrices, torch.float64), orthogonalize(matrices.float())
    made = orthogonalize(matrices.float())
    assert float((made.double() - exact).norm() / exact.norm()) < 2e-3
    assert not torch.equal(made, plain), "another way"


@pytest.mark.filterwarnings("ignore:.*TF32:UserWarning")
@pytest.mark.parametrize("rounded", ["autocast", "medium"])
def test_where_products_are_rounded_further_long_matrices_go_round_by_round(rounded: str) -> None:
    """Of rank two: what bf16 leaves of the other eigenvalues of their Gram matrix would grow to fifty times one."""
    torch.manual_seed(0)
    matrices = torch.randn(1, 64, 2) @ torch.randn(1, 2, 256)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium" if rounded == "medium" else "highest")
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=rounded == "autocast"):
            made = orthogonalize(matrices)
    finally:
        torch.set_float32_matmul_precision(before)
    assert torch.linalg.svdvals(made.float()).max() < 1.7


@pytest.mark.parametrize(("length", "fewer"), [(LONG, True), (4, True), (1, False)])
def test_rounds_of_the_gram_matrix_are_taken_where_they_are_fewer_operations(length: int, fewer: bool) -> None:
    def operations() -> int:
        with FlopCounterMode(display=False) as counter:
            orthogonalize(torch.ones(2, 32, 32 * length))
        return counter.get_total_flops()

    with fast.plain():
        plain = operations()
    assert (operations() < plain) == fewer


def test_they_are_found_where_tensors_have_no_numbers() -> None:
    """As where a step is gone through to see what memory it would take, first of all in a process."""
    rounds.cache_clear()
    with FakeTensorMode():
        assert orthogonalize(torch.ones(2, 8, 8)).shape == (2, 8, 8)


def test_nothing_stays_nothing() -> None:
    """The gradient of a matrix that nothing has read yet."""
    assert orthogonalize(torch.zeros(2, 8, 8), torch.bfloat16).count_nonzero() == 0


@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 24, 8), (2, 8, 24)])
def test_orthogonalize_brings_every_singular_value_near_one(shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    values = torch.linalg.svdvals(orthogonalize(torch.randn(shape)).float())
    assert values.min() > 0.4
    assert values.max() < 1.6


def test_orthogonalize_keeps_the_singular_directions() -> None:
    torch.manual_seed(2)
    m = torch.randn(1, 6, 6)
    u, _, vh = torch.linalg.svd(m)
    core = u.mT @ orthogonalize(m) @ vh.mT
    diagonal = core.diagonal(dim1=-2, dim2=-1)
    assert (core - torch.diag_embed(diagonal)).abs().max() < 0.1
    assert diagonal.min() > 0.4, "the same way, not the opposite"
