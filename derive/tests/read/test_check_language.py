"""Reading the language: what is understood, and one clear line for what is not."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from lmlab_derive import check
from lmlab_derive.read.sheet import ScopedClaim, parse
from lmlab_derive.text import to_text

REFUSALS = {
    "claim 2x == x": "x is not defined",
    "given x\nclaim x 2 == x": "write * between factors",
    "given x\nclaim x ** 1000000 == x": "the power 1000000 is too large",
    "claim 9**9**9**9 == 1": "too large",
    "claim 10**20**2 == 1": "too large",
    "given x: 1000000000": "the size 1000000000 is not allowed",
    "given x: 100000": "a size written as a number is 1 to 64",
    "given x: n, n, n, n, n, n, n, n, n": "at most 8 axes",
    "given x: n onehott": "did you mean 'onehot'?",
    "given x: n normal(0)": "normal takes 2 arguments",
    "given x\nclaim sigmod(x) == x": "did you mean 'sigmoid'?",
    "given x\nclaim xx == x": "xx is not defined; did you mean 'x'?",
    "given W\nclaim W(1) == W": "W is not a function",
    "given x\nclaim dJ/dx == x": "J is not defined",
    "given x\nclaim x == ": "a name, a number or a bracket is expected",
    "given x\nclaim (x == x": "')' is missing",
    "given x\nclaim x": "the claim has only one side",
    "given x\nderive x": "each starting with =",
    "given x\nclaim x != x": "a claim says ==, <=, >=, < or >",
    "hello": "a statement starts with given, let, assume, claim, derive",
    "given claim": "is a word of the language",
    "given x: n\nclaim sum(x, axis=a) == 1": "axis= is a whole number",
    "given x: n\nclaim exp(x, axis=0) == 1": "exp takes no axis=",
    "given x\nclaim exp(x, x) == 1": "exp takes 1 argument, not 2",
    "given x\nclaim " + "(" * 80 + "x" + ")" * 80 + " == x": "levels of brackets",
    "given x\nclaim " + "-" * 80 + "x == x": "levels of brackets",
    "given x\nclaim " + " + ".join(["x"] * 300) + " == x": "use let for parts",
    "given x\nclaim x == 1e400": "the number 1e400",
    "given x: n\nclaim max(0, x) == relu(x)": "maximum(a, b)",
    "given x: n\nclaim norm(x, 1) == 0": "norm(x, axis=0)",
    "given x: n symmetric": "a symmetric given is a square matrix",
    "given x simplex": "the shape or kind is not understood",
    "given x: n\nclaim E[x] == 0": "nothing inside E[...] is random",
    "given A: 64, 64, 64\nclaim A == A": "more than",
}


@pytest.mark.parametrize("text", REFUSALS, ids=lambda text: text[:40].replace("\n", "; "))
def test_what_is_not_understood_is_answered_in_one_clear_line(text: str) -> None:
    report = check(text + ("\nclaim x == x" if text.startswith("given") and "claim" not in text else ""))
    invalid = [claim for claim in report.claims if claim.verdict == "invalid"]
    assert invalid
    assert any(REFUSALS[text] in claim.reason for claim in invalid), invalid[0].reason
    assert all("\n" not in claim.reason for claim in invalid)


def test_a_broken_definition_is_blamed_where_its_name_is_used() -> None:
    report = check("given x\nlet y = x ++* 2\nclaim y == x")
    assert "because line 2 is not understood" in report.claims[-1].reason


def test_one_forgotten_bracket_spoils_one_statement() -> None:
    report = check("given x\nlet y = (x + 1\nclaim x == x")
    assert [claim.verdict == "invalid" for claim in report.claims] == [True, False]


@pytest.mark.parametrize(
    "text",
    [
        "a * (b + c)",
        "a - (b - c)",
        "a / (b * c)",
        "-a**2",
        "(-a)**2",
        "a**-b",
        "a**b**c",
        "(a**b)**c",
        "(a * b) @ c",
        "a @ (b * c)",
        "a * (b @ c)",
        "2 * a @ b",
        "-(a + b)",
        "sum(a, axis=0, keepdims=True)",
        "(a > 0) * b",
        "da/db @ c.T",
        "d2a/db2",
        "jacobian(a @ b, c)",
        "E[a | b]",
        "[a, [b, c]][0, 1]",
        "a[0:n, 1]",
        "1 - 1/2 * a",
    ],
)
def test_an_expression_written_out_reads_back_the_same(text: str) -> None:
    scope = "given a: n, n\ngiven b: n, n\ngiven c: n, n\n"
    entry = parse(f"{scope}claim {text} == a").entries[0]
    assert isinstance(entry, ScopedClaim), entry
    again = parse(f"{scope}claim {to_text(entry.claim.steps[0].value)} == a").entries[0]
    assert isinstance(again, ScopedClaim)
    assert again.claim.steps[0].value == entry.claim.steps[0].value


NUMPY_MEANING = {
    "softmax(A)": lambda A, v, s: np.exp(A) / np.exp(A).sum(-1, keepdims=True),
    "softmax(A, axis=0)": lambda A, v, s: np.exp(A) / np.exp(A).sum(0, keepdims=True),
    "sum(A)": lambda A, v, s: A.sum(),
    "mean(A, axis=1)": lambda A, v, s: A.mean(1),
    "max(A, axis=0, keepdims=True)": lambda A, v, s: A.max(0, keepdims=True),
    "norm(A)": lambda A, v, s: np.linalg.norm(A),
    "norm(A, axis=1)": lambda A, v, s: np.linalg.norm(A, axis=1),
    "logsumexp(A)": lambda A, v, s: np.log(np.exp(A).sum()),
    "var(A, axis=0)": lambda A, v, s: A.var(0),
    "std(A)": lambda A, v, s: A.std(),
    "prod(v)": lambda A, v, s: v.prod(),
    "cumsum(v)": lambda A, v, s: v.cumsum(),
    "trace(s)": lambda A, v, s: np.trace(s),
    "det(s)": lambda A, v, s: np.linalg.det(s),
    "inv(s)": lambda A, v, s: np.linalg.inv(s),
    "diag(v)": lambda A, v, s: np.diag(v),
    "diag(s)": lambda A, v, s: np.diag(s),
    "outer(A, v)": lambda A, v, s: np.outer(A, v),
    "kron(A, s)": lambda A, v, s: np.kron(A, s),
    "kron(v, v)": lambda A, v, s: np.kron(v, v),
    "concat(A, s, axis=1)": lambda A, v, s: np.concatenate([A, s], axis=1),
    "A.T @ s": lambda A, v, s: A.T @ s,
    "v @ A": lambda A, v, s: v @ A,
    "v @ v": lambda A, v, s: v @ v,
    "v.T": lambda A, v, s: v,
    "A > 0": lambda A, v, s: (A > 0).astype(float),
    "vec(A)": lambda A, v, s: A.reshape(-1),
    "where(A > 0, A, 0)": lambda A, v, s: np.where(A > 0, A, 0),
    "maximum(A, 0)": lambda A, v, s: np.maximum(A, 0),
    "A[0:2, 1]": lambda A, v, s: A[0:2, 1],
    "A[-1]": lambda A, v, s: A[-1],
    "sigmoid(A)": lambda A, v, s: 1 / (1 + np.exp(-A)),
    "relu(A)": lambda A, v, s: np.maximum(A, 0),
    "eye(3) * 2": lambda A, v, s: np.eye(3) * 2,
    "2**v": lambda A, v, s: 2.0**v,
    "v**2 / 3": lambda A, v, s: v**2 / 3,
}


@pytest.mark.parametrize("text", NUMPY_MEANING)
def test_every_arithmetic_means_what_numpy_means(text: str) -> None:
    from lmlab_derive.limits import Deadline
    from lmlab_derive.numbers.decimals import LongOps
    from lmlab_derive.numbers.derivatives import DualOps
    from lmlab_derive.numbers.doubles import FloatOps
    from lmlab_derive.numbers.points import Point, make_frame
    from lmlab_derive.shapes.setting import build

    rng = np.random.default_rng(5)
    A, v, s = rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=(3, 3))
    entry = parse(f"given A: 3, 4\ngiven v: 3\ngiven s: 3, 3\nlet t = {text}\nclaim t == t").entries[0]
    assert isinstance(entry, ScopedClaim)
    setting = build(entry.scope)
    want = np.asarray(NUMPY_MEANING[text](A, v, s))
    for ops in (DualOps(), FloatOps(), LongOps(40)):
        frame = make_frame(setting, Point({}, {"A": A, "v": v, "s": s}), ops, Deadline(60))
        got = np.asarray(frame.evaluate(setting.lets["t"].value), dtype=float)
        assert got.shape == want.shape
        assert got.shape == tuple(axis.value({}) for axis in setting.shapes.names["t"])
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_a_definition_whose_shapes_do_not_fit_is_blamed_in_every_claim_that_uses_it() -> None:
    report = check("given X: n, d\ngiven W: m, m\nlet Q = X @ W\nclaim Q == X\nclaim X == Q\nclaim sum(Q) >= 0")
    assert [claim.reason for claim in report.claims] == ["line 3, Q: (n, d) @ (m, m): inner sizes differ (d and m)"] * 3


@pytest.mark.parametrize("slice", ["x[0:n+1]", "x[:, None][0:n, 1:2]", "ones(3)[1:4]", "ones(3)[-5:2]"])
def test_a_slice_beyond_its_axis_is_refused_rather_than_cut_short(slice: str) -> None:
    (claim,) = check(f"given x: n\nclaim {slice} == x").claims
    assert claim.verdict == "invalid"
    assert "goes beyond size" in claim.reason


def test_the_first_example_of_the_language_page_holds_as_it_stands() -> None:
    page = Path(__file__).parents[3] / "docs" / "derivations.md"
    rows = itertools.takewhile(
        lambda row: not row.startswith("**Statements"), page.read_text(encoding="utf-8").splitlines()
    )
    report = check("\n".join(row for row in rows if row.startswith("    ")))
    assert len(report.claims) == 4
    assert report.ok, report


SPELLINGS = [  # other ways people write what the language has
    "∂²J/∂x² == 2 * diag(y)",
    "d²J/dx² == 2 * diag(y)",
    "∂²J/∂x∂y == 2 * diag(x)",
    "d(J)/d(x) == 2 * x * y",
    "X.mean(dim=1, keepdim=True) == mean(X, axis=1, keepdims=True)",
    "M**3 == M",
    "tril(M)[0] <= 1",
    "x @ S @ x >= 0",
    "S.T == S",
    "inv(S) @ S == eye(n)",
    "Cov[x @ z, y @ z] == x @ y",
    "Cov[z, 2 * z + 1] == 2 * Var[z]",
]
SCENE = """given x, y: n
given M: n, n binary
given S: n, n positive definite
given X: N, D
given z: n normal(0, 1)
let J = sum(x**2 * y)
"""


@pytest.mark.parametrize("claim", SPELLINGS)
def test_other_spellings_and_kinds_are_read(claim: str) -> None:
    answer = check(f"{SCENE}claim {claim}").claims[0]
    assert answer.holds, answer


BEYOND = [  # true of many definite and binary matrices, not of all
    "log(det(S)) >= 0",
    "x @ S @ x >= x @ x / 100",
    "n**n * det(S) >= trace(S)**n / 100",
    "S >= 0",
    "M == 0",
    "M == 1",
    "M.T == M",
]


@pytest.mark.parametrize("claim", BEYOND)
def test_kinds_promise_no_more_than_they_say(claim: str) -> None:
    assert check(f"{SCENE}claim {claim}").claims[0].verdict == "refuted"


ADVICE = [
    ("claim d/dq(J) == x", r"dJ/dx or d\(formula\)/dx"),
    ("claim triu(x @ x.T, 2) == x", r"triu\(x, 1\)"),
    ("claim J > 0 and J < 1", "one claim a line"),
    ("claim J == 2 if J > 0", "where"),
    ("claim einsum('i,i->', x, y) == x @ y", "einsum"),
    ("given a: onehot\nclaim a == a", "given a: n onehot"),
]


@pytest.mark.parametrize(("text", "words"), ADVICE)
def test_what_is_not_read_is_answered_with_what_to_write(text: str, words: str) -> None:
    answer = check(SCENE + text).claims[0]
    assert answer.verdict == "invalid"
    assert re.search(words, answer.reason), answer.reason
