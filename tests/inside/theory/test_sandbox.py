"""The attention sandbox: closed forms within the error of sampling, and formulas for equal scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from lmlab.config import Mistake
from lmlab.inside.theory import sandbox as box
from lmlab.inside.theory.sandbox import Seen
from lmlab.inside.theory.verbs import explain_sandbox

DRAWS = 20_000
CASES = [
    {},
    {"keys": 2},
    {"keys": 10, "query_a": 4.0, "query_b": 6.0, "temperature": 0.5},
    {"noise": 1e-4},
    {"overlap": 0.4, "value_b": 75.0},
    {"temperature": 5.0, "stretch": 1.0},
]


def within_error(sampled: Seen, closed: Seen) -> None:
    """No number is further from its closed form than five standard errors (with a hundred numbers, four happen)."""
    error = max(closed.deviation, 1e-3) / math.sqrt(DRAWS)
    assert abs(sampled.mean - closed.mean) < 5 * error
    assert abs(sampled.deviation**2 - closed.deviation**2) < 5 * 0.5 / math.sqrt(DRAWS)
    shares = [(getattr(sampled, name), getattr(closed, name)) for name in ("near", "alone", "lost")]
    for found, exact in [*shares, *zip(sampled.histogram, closed.histogram, strict=True)]:
        assert abs(found - exact) <= 5 * math.sqrt(max(exact * (1 - exact), 1 / DRAWS) / DRAWS)
    assert abs(sampled.distance**2 - closed.distance**2) < 5 * 2 / math.sqrt(DRAWS)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_closed_forms_are_within_the_error_of_sampling(case: dict[str, float]) -> None:
    found = explain_sandbox(**case, samples=DRAWS)  # type: ignore[arg-type]
    within_error(found.one.sampled, found.one.closed)
    within_error(found.two.sampled, found.two.closed)


def test_with_two_keys_the_share_of_a_is_the_logistic_function_of_a_normal_variable() -> None:
    found = explain_sandbox(keys=2, samples=10).one.closed
    edge = math.log(9) / 10 / math.sqrt(0.5)  # of γ in deviations, where σ(λγ) is 0.9
    assert found.alone == pytest.approx(0.5 * math.erfc(edge / math.sqrt(2)), rel=1e-9)
    assert found.lost == pytest.approx(found.alone, rel=1e-9)
    assert found.mean == pytest.approx(0.5)
    gauss = np.polynomial.hermite_e.hermegauss(180)
    variance = (gauss[1] / gauss[1].sum()) @ (1 / (1 + np.exp(-10 * math.sqrt(0.5) * gauss[0])) - 0.5) ** 2
    assert found.deviation**2 == pytest.approx(float(variance), rel=1e-3)


def test_the_formulas_for_equal_scores_are_what_attention_gives() -> None:
    for n, lam in ((2, 1.0), (5, 10.0), (9, 3.0)):
        weight = math.exp(lam) / (2 * math.exp(lam) + n - 2)  # 5.2b, with the n - 2 that the document leaves out
        quiet = explain_sandbox(keys=n, query_a=lam, query_b=lam, stretch=0.0, samples=3)
        assert quiet.one.sampled.mean == pytest.approx(weight)
        copied = explain_sandbox(keys=n, query_a=lam, query_b=0.0, stretch=0.0, samples=3)
        assert copied.one.sampled.mean == pytest.approx(math.exp(lam) / (math.exp(lam) + n - 1))


def test_one_head_fails_where_two_do_not() -> None:
    found = explain_sandbox()
    assert found.one.closed.near < 0.05 < 0.8 < found.two.closed.near
    assert found.one.closed.deviation > 3 * found.two.closed.deviation
    sharper = explain_sandbox(query_a=20.0, query_b=20.0)
    assert sharper.one.closed.near < found.one.closed.near
    assert sharper.two.closed.near > found.two.closed.near
    assert sharper.two.closed.lost == pytest.approx(0.5 * math.erfc(1.0), rel=1e-3)  # γ < -1, however sharp the query


def test_noise_moves_the_scores_as_much_as_theory_says() -> None:
    s = box.SandboxSettings(noise=0.1, stretch=0.3, overlap=0.2, query_a=7.0, temperature=2.0, samples=DRAWS)
    gamma_S, noise_SN2 = box.draws(s)
    weights = box.attend(s, s.stretch * gamma_S, noise_SN2, box.queries(s)["one"][0])
    measured = float(np.log(weights[:, 0] / weights[:, 1]).std())
    assert measured == pytest.approx(box.sandbox(s).score_deviation, rel=5 / math.sqrt(2 * DRAWS))


def test_weights_are_those_of_softmax_in_torch_with_keys_written_out() -> None:
    s = box.SandboxSettings(keys=4, noise=0.2, overlap=0.3, temperature=1.7, samples=50)
    gamma_S, noise_SN2 = box.draws(s)
    means = np.zeros((4, 4))
    means[0, 0], means[1, :2], means[2, 2], means[3, 3] = 1, (0.3, math.sqrt(1 - 0.3**2)), 1, 1
    keys = np.broadcast_to(means, (50, 4, 4)).copy()
    keys[:, 0] += (s.stretch * gamma_S)[:, None] * means[0]
    keys[:, :, :2] += s.noise * noise_SN2
    query = np.concatenate([box.queries(s)["one"][0], [0, 0]])
    expected = torch.softmax(torch.from_numpy(keys @ query) / s.temperature, dim=1)
    assert np.allclose(box.attend(s, s.stretch * gamma_S, noise_SN2, query[:2]), expected)


def test_the_draws_are_normal_independent_and_other_with_another_seed() -> None:
    z = box.normals(0, 100_000)
    for power, moment in enumerate((0, 1, 0, 3), start=1):
        assert abs((z**power).mean() - moment) < 5 * float((z**power).std()) / math.sqrt(len(z))
    ranks = 0.5 * np.array([math.erfc(-v / math.sqrt(2)) for v in np.sort(z)])
    assert np.abs(ranks - (np.arange(len(z)) + 0.5) / len(z)).max() < 1.95 / math.sqrt(len(z))  # Kolmogorov, 1 in 1000
    for other in (z[1:], box.normals(1, len(z))[1:]):
        assert abs(np.corrcoef(z[:-1], other)[0, 1]) < 5 / math.sqrt(len(z))


@pytest.mark.parametrize(
    "wrong",
    [
        {"keys": 1},
        {"keys": 11},
        {"query_a": -1.0},
        {"temperature": 0.0},
        {"overlap": 1.0},
        {"samples": 0},
        {"noise": math.nan},
    ],
)
def test_a_setting_out_of_its_range_is_a_mistake(wrong: dict[str, float]) -> None:
    with pytest.raises(Mistake, match=rf"{next(iter(wrong))} is a number from"):
        explain_sandbox(**wrong)  # type: ignore[arg-type]
