"""Right answers are never refuted and wrong ones never accepted, at any seed: averages, bounds and domains."""

from __future__ import annotations

import re

import pytest

from lmlab_derive import check

HOLDS = [
    "E[E[(x + y)**2 | x]] = 2 where x: normal(0, 1), y: normal(0, 1)",
    "Var[x + y] = E[Var[x + y | x]] + Var[E[x + y | x]] where x: normal(0, 1), y: normal(x, 2)",
    "E[(u < p)] = p where p: fraction, u: uniform(0, 1)",
    "E[(x > 0)] = (1 + erf(m / (s * sqrt(2)))) / 2 where m, s: positive, x: normal(m, s)",
    "E[maximum(q * (x - t), (q - 1) * (x - t))] = E[(t - x) * (x < t)] - q * t where q: fraction, t: positive, x: normal(0, 1)",
    "E[relu(x)] = m * (1 + erf(m / (s * sqrt(2)))) / 2 + s * exp(-m**2 / (2 * s**2)) / sqrt(2 * pi)"
    " where m, s: positive, x: normal(m, s)",
    "E[(x > t)] <= exp(-t**2 / 2) / (t * sqrt(2 * pi)) where t: positive, x: normal(0, 1)",
    "E[(x > t)] >= t / (1 + t**2) * exp(-t**2 / 2) / sqrt(2 * pi) where t: positive, x: normal(0, 1)",
    "E[relu(x)**2] >= 0 where x: normal(0, 1)",
    "E[-log(u)] = 1 where u: uniform(0, 1)",
    "E[max(x)] <= sqrt(2 * log(n)) where x: n normal(0, 1)",
    "E[max(u)] = n / (n + 1) where u: n uniform(0, 1)",
    "E[min(x)] = 1 / (n * l) where l: positive, x: n exponential(l)",
    "E[exp(-t * x)] = l / (l + t) where l, t: positive, x: exponential(l)",
    "E[x * log(x)] = a / b * (digamma(a + 1) - log(b)) where a, b: positive, x: gamma(a, b)",
    "E[log(x)] = digamma(a) - digamma(a + b) where a, b: positive, x: beta(a, b)",
    "E[abs(x - m)] = b where m, b: positive, x: laplace(m, b)",
    "E[exp(t * k)] = exp(l * (exp(t) - 1)) where t: fraction, l: positive, k: poisson(l)",
    "E[x] = a / sum(a) where a: n positive, x: n dirichlet(a)",
    "E[x @ A @ x] = trace(A @ S) + m @ A @ m where A: n, n, S: n, n definite, m: n, x: n normal(m, S)",
    "E[relu(a @ x)] = sqrt(a @ S @ a / (2 * pi)) where a: n, S: n, n definite, x: n normal(0, S)",
    "P[x^2 + y^2 < 1] = 1 - exp(-1/2) where x: normal(0, 1), y: normal(0, 1)",
    "P[u + w < 1] = 1/2 where u: uniform(0, 1), w: uniform(0, 1)",
    "P[u w > a] = 1 - a + a log(a) where a: fraction, u: uniform(0, 1), w: uniform(0, 1)",
    "P[c + e > 2] = 3exp(-2) where c: exponential(1), e: exponential(1)",
    "E[maximum(x, y)] = 1 / sqrt(pi) where x: normal(0, 1), y: normal(0, 1)",
    "E[1 / sqrt(u)] = 2 where u: uniform(0, 1)",
    "E[log(abs(x - 1/3))] <= 0 where x: normal(0, 1)",
    "H(u) = 0 where u: uniform(0, 1)",
    "E[log(p)] = digamma(a) - digamma(sum(a)) where a: n positive, p: n dirichlet(a)",
    "E[log(p[i])] = digamma(a[i]) - digamma(sum(a)) where a: n positive, p: n dirichlet(a)",
    "P[x[0] < x[1]] = l[0] / (l[0] + l[1]) where l: 3 positive, x: 3 exponential(l)",
    "E[exp(x[i] + x[j])] = exp(1 + (i == j)) where x: n normal(0, 1)",
    "P[x > y] = (1 + erf((m - k) / sqrt(2 * (s**2 + r**2)))) / 2 where m, k: real, s, r: positive,"
    " x: normal(m, s), y: normal(k, r)",
    "E[z] = a / (a + b) where a, b: positive, p: beta(a, b), z: bernoulli(p)",
    "E[z] = a / sum(a) where a: n positive, p: n dirichlet(a), z: n onehot(p)",
    "P[z = 1 and w = 1] = 1/3 where p: uniform(0, 1), z: bernoulli(p), w: bernoulli(p)",
    "E[k] = 3 / 2 where l: gamma(3, 2), k: poisson(l)",
    "E[exp(35 * x)] = exp(35**2 / 2) where x: normal(0, 1)",
    "E[1 / (k + 1)] = (1 - exp(-200)) / 200 where k: poisson(200)",
    "E[y**2] = 1 + E[sin(x)**2] where x: normal(0, 1), y: normal(sin(x), 1)",
    "x / x = 1 where x: nonzero",
    "(x**2 - 1) / (x - 1) = x + 1 where x: integer, x != 1",
    "norm(x / norm(x)) = 1 where x: n",
]
FAILS = [
    "E[1 / x] = 0 where x: normal(0, 1)",
    "E[x / y] = 0 where x: normal(0, 1), y: normal(0, 1)",
    "E[exp(x**2)] = 1 where x: normal(0, 1)",
    "E[exp(l * x)] = 2 where l: positive, x: exponential(l)",
    "E[1 / abs(x - 1)] = 3 where x: normal(0, 1)",
    "P[x^2 + y^2 < 1] = 0.3934 where x: normal(0, 1), y: normal(0, 1)",
    "E[-log(u)] = 1.002 where u: uniform(0, 1)",
    "E[exp(t * x)] = 1 / (1 - t) where t: real, x: exponential(1)",
    "E[exp(x[i] + x[j])] = exp(1) where x: n normal(0, 1)",
    "E[log(p)] = digamma(a) - log(sum(a)) where a: n positive, p: n dirichlet(a)",
    "E[z] = sigmoid(m) where m: real, x: normal(m, 1), z: bernoulli(sigmoid(x))",
    "Var[sum(z)] = 3 / 4 where p: uniform(0, 1), z: 3 bernoulli(p)",
    "Var[x] <= 1/5 where a, b: positive, x: beta(a, b)",
    "log(x) <= 2.9 * x**(1/8) where x: positive",
    "E[(x > t)] <= exp(-t**2 / 2) / (t**2 * sqrt(2 * pi)) where t: positive, x: normal(0, 1)",
    "E[(x > t)] <= exp(-t**2 / 2) / 3 where t: positive, x: normal(0, 1)",
    "logsumexp(x) <= max(x) + 2 where x: n",
    "E[max(x)] <= sqrt(log(n)) where x: n normal(0, 1)",
    "n <= 63 where x: n",
    "x / x = 1 where x:",
    "(x**2 - 1) / (x - 1) = x + 1 where x:",
    "(x > 0) + (x < 0) = 1 where x:",
]


@pytest.mark.parametrize("claim", HOLDS)
def test_a_right_claim_holds(claim: str) -> None:
    answer = check(f"claim {claim}").claims[0]
    assert answer.holds, answer.reason


@pytest.mark.parametrize("claim", FAILS)
def test_a_wrong_claim_is_refuted(claim: str) -> None:
    answer = check(f"claim {claim}").claims[0]
    assert answer.verdict == "refuted", answer.reason


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
def test_no_seed_changes_these_verdicts(seed: int) -> None:
    assert [c for c in HOLDS if not check(f"claim {c}", seed=seed).ok] == []
    assert [c for c in FAILS if check(f"claim {c}", seed=seed).claims[0].verdict != "refuted"] == []


def test_an_equation_of_means_that_are_only_sampled_is_undecided_and_says_how_coarsely() -> None:
    answer = check("given x: 7 normal(0, 1)\nclaim E[max(abs(x))] == 1.8").claims[0]
    assert answer.verdict in ("undecided", "refuted")
    close = check("given x: 7 normal(0, 1)\nclaim E[max(abs(x) + x)] == E[max(x + abs(x))]").claims[0]
    assert close.verdict == "undecided"
    assert "samples" in close.reason


@pytest.mark.slow
def test_a_mean_of_samples_that_is_next_to_nothing_refutes_nothing() -> None:
    text = "given a: n positive\ngiven p: n dirichlet(a)\nclaim E[log(max(p))] <= 0\nclaim E[log(sum(p))] == 0"
    assert all(claim.verdict != "refuted" for claim in check(text).claims)


def test_a_mean_that_is_exact_only_at_size_one_does_not_make_an_equation_supported() -> None:
    text = "given a: n positive\ngiven p: n dirichlet(a)\nclaim E[max(log(p))] == log(E[max(p)]) - (n - 1) / 9"
    assert check(text).claims[0].verdict in ("undecided", "refuted")


def test_a_bound_says_how_far_it_was_tried() -> None:
    reason = check("given x: n\nclaim max(x) <= logsumexp(x)").claims[0].reason
    assert re.search(r"sizes up to 1000 and values from \de-07 up to 1e\+06 were tried", reason), reason


def test_an_average_that_does_not_exist_is_said_to_diverge() -> None:
    assert "diverges" in check("claim E[1 / x] = 0 where x: normal(0, 1)").claims[0].reason
