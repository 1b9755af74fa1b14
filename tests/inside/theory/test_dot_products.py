"""Dot products: their spread by theory, what scaling does to the softmax, and the angles of random directions."""

from __future__ import annotations

import math

import pytest

from lmlab.config import Mistake
from lmlab.inside.theory.dot_products import DotProducts, cosine_density, cosine_share
from lmlab.inside.theory.verbs import explain_dot_products


@pytest.fixture(scope="module")
def found() -> DotProducts:
    return explain_dot_products(widths=[1, 4, 16, 64, 256])


@pytest.mark.parametrize(("mean", "sigma"), [(0.0, 1.0), (1.0, 0.5)])
def test_the_variance_is_what_theory_says(mean: float, sigma: float) -> None:
    for at in explain_dot_products(widths=[2, 8, 32], mean=mean, sigma=sigma, draws=2000).widths:
        assert at.predicted_variance == 2 * sigma**2 * at.width * mean**2 + at.width * sigma**4
        assert abs(at.variance - at.predicted_variance) < 5 * at.variance_error


def test_unscaled_scores_saturate_the_softmax_and_flatten_it_and_scaled_ones_do_not(found: DotProducts) -> None:
    unscaled, scaled = [at.unscaled for at in found.widths], [at.scaled for at in found.widths]
    assert [s.largest_weight for s in unscaled] == sorted(s.largest_weight for s in unscaled)
    assert unscaled[-1].largest_weight > 0.9
    assert unscaled[-1].jacobian_norm < 0.5 * scaled[-1].jacobian_norm
    assert unscaled[-1].flat > 0.3
    assert all(0.15 < s.jacobian_norm < 0.5 and s.largest_weight < 0.3 and s.flat == 0 for s in scaled)


def test_random_directions_are_nearly_orthogonal_in_many_dimensions(found: DotProducts) -> None:
    pairs = 10 * found.draws
    for at in found.widths[1:]:
        assert at.cosine_deviation == pytest.approx(at.predicted_cosine_deviation, rel=5 / math.sqrt(2 * pairs))
        chance = at.predicted_nearly_orthogonal
        assert abs(at.nearly_orthogonal - chance) < 5 * math.sqrt(chance * (1 - chance) / pairs)
        assert sum(at.cosines) == pytest.approx(1)
    assert found.widths[-1].nearly_orthogonal > 0.85


def test_the_density_of_the_cosine_is_a_density_with_variance_one_over_the_width() -> None:
    for width in (3, 8, 100):
        grid = [-1 + (i + 0.5) / 5000 for i in range(10_000)]
        assert sum(cosine_density(x, width) for x in grid) / 5000 == pytest.approx(1, rel=1e-4)
        assert sum(x * x * cosine_density(x, width) for x in grid) / 5000 == pytest.approx(1 / width, rel=1e-3)
        assert cosine_share(-1, 1, width) == pytest.approx(1, rel=1e-4)
    assert cosine_share(-0.1, 0.1, 3) == pytest.approx(0.1, rel=1e-4)  # on the sphere cosines are uniform (Archimedes)
    assert cosine_share(-0.1, 0.1, 2) == pytest.approx(2 * math.asin(0.1) / math.pi, rel=1e-4)


@pytest.mark.parametrize(
    "wrong", [{"widths": []}, {"widths": [0]}, {"keys": 1}, {"draws": 10**6}, {"sigma": 0.0}, {"mean": math.inf}]
)
def test_what_cannot_be_drawn_is_a_mistake(wrong: dict[str, object]) -> None:
    with pytest.raises(Mistake, match=next(iter(wrong))):
        explain_dot_products(**wrong)  # type: ignore[arg-type]
