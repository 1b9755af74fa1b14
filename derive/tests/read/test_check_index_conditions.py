"""Conditions on the letters of a claim: they restrict the letters' ranges, and must leave something to look at."""

from __future__ import annotations

import pytest

from lmlab_derive import check

ROWS = "given x: n\ngiven X: n, m\nlet c = cumsum(x)\n"
STEPS = "given x: T\ngiven a: nonzero\ngiven h0\nlet h[0] = h0\nlet h[t] = a*h[t-1] + x[t]\n"
SHARES = "given p: n simplex\n"

HOLDS = {
    ROWS: [
        "c[i] - c[i-1] = x[i] where i > 1",
        "c[i] - c[i-1] = x[i] where i >= 2",
        "c[i] - c[i-2] = x[i] + x[i-1] where 2 < i",
        "c[i+1] - c[i] = x[i+1] where i < n",
        "c[i+1] - c[i] = x[i+1] where i <= n - 1",
        "c[i+1] - c[i-1] = x[i+1] + x[i] where 1 < i < n",
        "c[i+1] - c[i-1] = x[i+1] + x[i] where i > 1 and n > i",
        "c[i] - c[i-1] = x[i] where i != 1",
        "X[i-1] + X[i] = X[i] + X[i-1] where i > 1",
        "c[i] - c[j-1] = x[j] + sum(k=j+1..i, x[k]) where j > 1, i >= j",
        "x[i] + x[i - j] + x[j] = x[j] + x[i - j] + x[i] where i > j",
    ],
    STEPS: ["h[t] - a*h[t-1] = x[t] where t > 1", "h[t] - a**2*h[t-2] = x[t] + a*x[t-1] where t >= 2"],
    SHARES: ["p[i] + p[i-1] <= 1 where i >= 2", "p[i]*p[j] <= 1/4 where i < j, j < 4, n < 9"],
}
FAILS = {
    ROWS: [
        "c[i] - c[i-1] = x[i-1] where i > 1",
        "c[i+1] - c[i] = x[i] where i < n",
        "c[i+1] - c[i-1] = x[i] + x[i-1] where 1 < i < n",
        "X[i-1] = X[i] where i > 1",
        "c[i] - c[j-1] = x[j] + sum(k=j+1..i-1, x[k]) where j > 1, i > j",
        "x[i] = 0 where i > 10",
        "x[i] = x[j] where i > j + 6, j >= 3",
    ],
    STEPS: ["h[t] - a*h[t-1] = x[t-1] where t > 1", "h[t] - a**2*h[t-2] = x[t] where t >= 2"],
    SHARES: ["p[i] + p[i-1] <= 0.99 where i >= 2", "p[i]*p[j]*p[k] <= 0.0369 where i < j < k"],
}


def verdict(setting: str, claim: str) -> str:
    """What is said of one claim."""
    return check(f"{setting}claim {claim}").claims[-1].verdict


@pytest.mark.parametrize(("setting", "claim"), [(s, claim) for s, claims in HOLDS.items() for claim in claims])
def test_what_holds_under_a_condition_holds(setting: str, claim: str) -> None:
    assert verdict(setting, claim) in ("supported", "proved")


@pytest.mark.parametrize(("setting", "claim"), [(s, claim) for s, claims in FAILS.items() for claim in claims])
def test_what_fails_under_a_condition_fails(setting: str, claim: str) -> None:
    assert verdict(setting, claim) == "refuted"


@pytest.mark.parametrize("condition", ["i >= 1", "i > 0", "i != 2", "i <= n"])
def test_a_condition_that_lets_an_index_go_beyond_its_axis_is_invalid(condition: str) -> None:
    answer = check(f"{ROWS}claim c[i] - c[i-1] = x[i] where {condition}").claims[-1]
    assert answer.verdict == "invalid"
    assert "beyond" in answer.reason


@pytest.mark.parametrize("claim", ["x[i] = 0 where i > n", "x[i] = 0 where i > 3, i < 2", "x[i] = 0 where i < 1"])
def test_conditions_that_leave_no_entry_are_invalid(claim: str) -> None:
    answer = check(f"{ROWS}claim {claim}").claims[-1]
    assert answer.verdict == "invalid"
    assert "no entry" in answer.reason


def test_a_choice_by_an_index_looks_only_at_what_is_chosen() -> None:
    assert verdict(ROWS, "c[i] - where(i > 1, c[i-1], 0) = x[i]") == "supported"
