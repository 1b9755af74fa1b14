"""Powers fitted to counted operations are those of the theory, and generation without a cache costs one more."""

from __future__ import annotations

import pytest

from lmlab.costs import growth
from lmlab.costs.counting import count_learned
from lmlab.costs.figures import growing, where
from lmlab.costs.growth import Growth, attention, crossing, fitted_power, growths, writing


@pytest.fixture(scope="module")
def found() -> list[Growth]:
    """Two lengths of writing show its powers; a third takes longer than all else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growth, "WRITTEN", (128, 256))
        return growths()


def test_powers_of_counted_operations_are_those_of_the_theory(found: list[Growth]) -> None:
    for one in found:
        assert one.power == pytest.approx(one.theory, abs=0.1), one.name


def test_without_a_cache_writing_costs_one_power_more(found: list[Growth]) -> None:
    powers = {one.name: one.power for one in found}
    assert powers["writing without a cache"] - powers["writing with a cache"] == pytest.approx(1, abs=0.1)


def test_attention_counts_what_theory_says() -> None:
    n, m, k = 5, 7, 3
    assert attention(n, m, k) == 4 * n * k**2 + 4 * m * k**2 + 4 * n * m * k


def test_a_cache_saves_what_is_made_again() -> None:
    assert writing(1, 4, cache=True) == writing(1, 4, cache=False)
    assert writing(9, 4, cache=True) < writing(9, 4, cache=False)


@pytest.mark.parametrize("width", [8, 64])
def test_scores_overtake_projections_at_twice_the_width(width: int) -> None:
    assert crossing(width) == 2 * width


def test_a_power_law_is_fitted_exactly() -> None:
    assert fitted_power([1, 2, 4], [3, 24, 192]) == pytest.approx(3)


def test_pictures_name_the_parts_and_the_powers(found: list[Growth]) -> None:
    picture = where(count_learned("gpt"))
    assert all(name in picture for name in ("embedding", "feed-forward", "parameters", "operations"))
    assert "theory 3" in growing(found)
