"""What a definition defines: every name of its list, arrays of the right shape, and all entries."""

from __future__ import annotations

import pytest

from lmlab_derive import check
from lmlab_derive.read.sheet import parse
from lmlab_derive.tree import Given

LISTS = [
    "given a, b ~ normal(0, 1)",
    "given c, a, b ~ normal(0, 1)",
    "given a, b: n ~ normal(0, 1)",
    r"given a, b \sim normal(0, 1)",
    r"given \alpha, a, b ~ normal(0, 1)",
    "given s: n, a ~ normal(0, 1)\ngiven b ~ normal(0, 1)",
]


@pytest.mark.parametrize("text", LISTS)
def test_all_names_of_a_list_have_the_distribution(text: str) -> None:
    definitions = parse(text).scope.definitions
    for name in ("a", "b"):
        given = definitions[name]
        assert isinstance(given, Given)
        assert [kind.name for kind in given.kinds] == ["normal"], given


def test_names_of_a_list_are_independent_in_a_where_clause_too() -> None:
    assert check("claim E[(u - v)**2] = 1/6 where u, v ~ uniform(0, 1)").ok


PARAMETERS = """
given m: n
given a: n positive
given s, c: positive
given S: n, n positive definite
given M: n, k
given w: n simplex
"""
SHAPES = {
    "normal(m, S)": "n",
    "normal(0, S)": "n",
    "normal(0, S + outer(m, m))": "n",
    "normal(m, s)": "n",
    "normal(0, a)": "n",
    "normal(M, s)": "n, k",
    "normal(s, c)": "",
    "exponential(a)": "n",
    "uniform(-a, a)": "n",
    "bernoulli(w)": "n",
    "dirichlet(a)": "n",
    "onehot(w)": "n",
    "categorical(w)": "",
    "rademacher": "",
    "uniform{1, 2}": "",
}


@pytest.mark.parametrize("kind", SHAPES)
def test_where_no_shape_is_written_it_is_that_of_the_parameters(kind: str) -> None:
    given = parse(f"{PARAMETERS}given x ~ {kind}").scope.definitions["x"]
    assert isinstance(given, Given)
    assert ", ".join(map(str, given.shape)) == SHAPES[kind]


def test_parameters_that_do_not_fit_each_other_are_refused_in_their_line() -> None:
    report = check("given m: n\ngiven s: k positive\ngiven x ~ normal(m, s)").claims[0]
    assert (report.line, report.verdict) == (3, "invalid")


ENTRIES = r"""
given x ∈ ℝ^n
given X: T, n
given W: n, n
given b, c
given h_0: n
let q_i = \frac{x_i^2}{1 + b^2}
let r_{ij} = q_i x_j
let h_t = \tanh(W h_{t-1} + X_t)
let k[0] = x
let k[t] = k[t-1] + X[t]
let g = σ(b)
let s = b + c
"""
HOLD = [
    r"\frac{\partial q_i}{\partial x_j} = \frac{2 x_i}{1 + b^2} \delta_{ij}",
    r"r_{ij} x_i = r_{ii} x_j",
    r"\sum_{i=1}^n q_i = x @ x/(1 + b^2)",
    r"h_t = \tanh(W h_{t-1} + X_t)",
    "h[0] = h_0",
    "sum(j, k[t, j]) = sum(k[t])",
    "sum(j, k[t][j]) = sum(k[t])",
    "sum(t, k[t, j]) = sum(k, axis=0)[j] - x[j]",
    r"\max_j k[t, j] = max(k[t])",
    "∂g/∂b = g(1 - g)",
    "∂²g/∂b² = g(1 - g)(1 - 2g)",
    "g(c + 1) = g*c + g",
    "s(s - b) = s*c",
]


@pytest.mark.parametrize("claim", HOLD)
def test_what_is_defined_entry_by_entry_or_as_a_number_is_used_as_such(claim: str) -> None:
    report = check(f"{ENTRIES}claim {claim}").claims[-1]
    assert report.holds, (report.verdict, report.reason, report.read)


FAIL = [r"\sum_{i=1}^n q_i^2 = 1", r"\frac{\partial q_i}{\partial x_j} = 2 x_i", "sum(j, k[t, j]) <= 1"]
FAIL += ["∂g/∂b = g(1 + g)", "sum(k) = sum(t, sum(k[t]))"]


@pytest.mark.parametrize("claim", FAIL)
def test_what_is_wrong_of_entries_is_refuted(claim: str) -> None:
    assert check(f"{ENTRIES}claim {claim}").claims[-1].verdict == "refuted"


ASKED = {
    "let w = x_i**2\nclaim w = 1": "write let w[i] = ...",
    "let u[0] = x[i]\nclaim u = 1": "one row",
    "let u[0] = 0\nlet u[t] = u[t-1] + X[t, j]\nclaim u[t] = 1": "whole arrays",
    "claim w = 1 where w = x[i]": "write let w[i] = ...",
    "given y ~ normal(x[i], 1)\nclaim E[y] = x[i]": "whole arrays",
    "given y: finite{x[i]: 1}\nclaim E[y] = 1": "whole arrays",
    "given y_i\nclaim sum(i=1..n, y_i) = 1": "given y: n",
    "claim g(b + 1) = 1": "write g * (...)",
}


@pytest.mark.parametrize("text", ASKED)
def test_a_letter_or_a_bracket_that_is_not_clear_is_asked_about(text: str) -> None:
    reasons = [claim.reason for claim in check(ENTRIES + text).claims]
    assert ASKED[text] in reasons[0], reasons
    assert not any("mistake of the checker" in reason for reason in reasons)


def test_what_is_assumed_of_an_entry_is_assumed_of_all() -> None:
    assert check("given x: n\nassume x[i] > 0\nclaim sum(x) > 0").ok


def test_many_lets_of_lets_are_read_at_once() -> None:
    lets = "".join(f"let a{i + 1} = a{i} * a{i} - a{i}\n" for i in range(40))
    assert len(parse(f"given a0\n{lets}claim 2 a40 = a40(1 - a40)").entries) == 1
