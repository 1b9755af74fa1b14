"""Muon's rounds: each the best quintic there is, together as near to one as was asked, and in bf16 without running away."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lmlab.learn.orthogonal import LEAST, best_quintic, orthogonalize, rounds

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


def test_four_rounds_do_what_five_of_the_usual_quintic_do() -> None:
    """From the least on, values end between 0.4 and 1.6; below, they grow as often, within an eighth."""
    x = np.geomspace(LEAST, 1.0, 100_001)
    four, five = after(rounds(), x), after((USUAL,) * 5, x)
    assert four.min() > 0.9 * five.min() > 0.4
    assert four.max() < 1.6
    tiny = np.array([1e-6, 1e-5])
    np.testing.assert_allclose(after(rounds(), tiny), after((USUAL,) * 5, tiny), rtol=0.125)


def test_more_rounds_come_nearer() -> None:
    x = np.geomspace(0.001, 1.0, 100_001)
    distances = [np.abs(1 - after(rounds(0.001, count, room=1.0), x)).max() for count in range(1, 8)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 8), (4, 64), (64, 64), (256, 96), (256, 256)])
@pytest.mark.parametrize("rank", [1, 2, 8, 256])
def test_values_do_not_run_away_where_few_hold_all_the_length(
    shape: tuple[int, int], rank: int, dtype: torch.dtype
) -> None:
    """A quintic grows steeply beyond what it was made for, and bf16 rounds a value that is all of a matrix's length up."""
    torch.manual_seed(rank)
    of_rank = torch.randn(20, shape[0], rank) @ torch.randn(20, rank, shape[1])
    values = torch.linalg.svdvals(orthogonalize(of_rank, dtype))
    assert values.max() < 1.6
    assert values[:, 0].min() > 0.4


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
    off_diagonal = core - torch.diag_embed(core.diagonal(dim1=-2, dim2=-1))
    assert off_diagonal.abs().max() < 0.1
