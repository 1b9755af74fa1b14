"""Proofs: what is proved is true, for every size; and planted errors are never proved."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1]))

from lmlab_derive import check
from lmlab_derive.limits import Deadline, Refusal
from lmlab_derive.read.sheet import ScopedClaim, parse
from lmlab_derive.shapes.setting import build
from lmlab_derive.sheets.check import check_text
from lmlab_derive.symbols.proofs import prove
from sheet_strategies import LEAVES, SETTING, fitting, the_same_every_time

EXAMPLES = 25 if "LMLAB_THOROUGH" in os.environ else 6

PROVED = {
    "sigmoid mirrored": "given x: n\nclaim sigmoid(-x) == 1 - sigmoid(x)",
    "tanh by sigmoid": "given x: n\nclaim tanh(x) == 2 * sigmoid(2 * x) - 1",
    "variance of a dot product": "claim E[(a @ b)**2] == D where a: D normal(0, 1), b: D normal(0, 1)",
    "fourth moment": "claim E[norm(a)**4] == D**2 + 2*D where a: D normal(0, 1)",
    "softmax gradient": (
        "given z: n\ngiven y: n onehot\nlet J = -sum(y * log(softmax(z)))\nclaim dJ/dz == softmax(z) - y"
    ),
    "attention gradient": (
        "given Q: T, D\ngiven K: S, D\ngiven V: S, M\ngiven G: T, M\n"
        "let A = softmax(Q @ K.T)\nlet J = sum(G * (A @ V))\n"
        "let B = G @ V.T\nclaim dJ/dQ == (A * (B - sum(A * B, axis=1, keepdims=True))) @ K"
    ),
    "layer norm": (
        "given x: n\ngiven g: n\nlet u = x - mean(x)\nlet s = sqrt(mean(u**2))\nlet J = g @ (u / s)\n"
        "claim dJ/dx == (g - mean(g) - u / s * mean(g * u / s)) / s"
    ),
    "the inverse": "given X: n, n\ngiven a: n\nlet f = a @ inv(X) @ a\nclaim df/dX == -outer(inv(X).T @ a, inv(X) @ a)",
    "a rotation": "given R: n, n orthogonal\ngiven x: n\nclaim norm(R @ x)**2 == x @ x",
    "angles": "given a\ngiven b\nclaim sin(a + b) == sin(a) * cos(b) + cos(a) * sin(b)",
    "shapes": "given H: n, m\nlet O = tanh(H)\nclaim shape(jacobian(O, H)) == (n, m, n, m)",
    "fractions": "claim 0.4 / 0.65 == 8/13",
    "a finite distribution": "claim Var[u] == 2/3 where u: uniform{1, 2, 3}",
    "a bound": "given x: n\nclaim sigmoid(x) > 0",
    "another bound": "given x: n\nclaim softmax(x) <= 1",
    "squares": "given x: n\nclaim x @ x >= 0",
    "logarithms": "given a: positive\ngiven b: positive\nclaim log(a * b**2) == log(a) + 2 * log(b)",
    "parameter counts": "given V\ngiven d\ngiven h\nclaim V*d + V*h == V * (d + h)",
}


@pytest.mark.parametrize("name", PROVED)
def test_textbook_facts_are_proved(name: str) -> None:
    claim = check(PROVED[name]).claims[-1]
    assert claim.verdict == "proved", claim


NOT_PROVED = {
    "needs a positive number": "given x\nclaim sqrt(x**2) == x",
    "needs a symmetric matrix": "given A: n, n\ngiven x: n\nlet f = x @ A @ x\nclaim df/dx == 2 * A @ x",
    "needs an orthogonal matrix that is square": "given Q: n, k orthogonal\nclaim Q @ Q.T == eye(n)",
    "needs a row, not a column": "given Y: n, m onehot\nclaim sum(Y, axis=0) == 1",
    "one row is not many": "given y: 1, n onehot\ngiven Y: m, n onehot\nclaim sum(Y * y) == m",
    "off by a size": "claim E[(a @ b)**2] == D**2 where a: D normal(0, 1), b: D normal(0, 1)",
    "off by a sign": "given x: n\nclaim sigmoid(-x) == 1 + sigmoid(x)",
    "a strict bound that is attained": "given x\nclaim x**2 > 0",
    "a logarithm that has no value": "given a\ngiven b\nclaim log(a * b) == log(a) + log(b)",
}


@pytest.mark.parametrize("name", NOT_PROVED)
def test_what_is_false_is_not_proved(name: str) -> None:
    entry = parse(NOT_PROVED[name]).entries[-1]
    assert isinstance(entry, ScopedClaim)
    left, right = entry.claim.steps
    assert prove(build(entry.scope), left.value, right.relation, right.value, Deadline(60)) is None


@pytest.mark.slow
def test_no_wrong_claim_of_the_suite_is_proved() -> None:
    for path in sorted((Path(__file__).parents[1] / "derivations").glob("*.derive")):
        for block in re.split(r"^# == .* ==$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            lines = block.splitlines()
            for entry in parse(block).entries:
                assert isinstance(entry, ScopedClaim)
                if "# wrong" not in lines[entry.claim.line - 1] or entry.claim.derive:
                    continue
                left, right = entry.claim.steps
                setting = build(entry.scope)
                try:
                    setting.shape(left.value), setting.shape(right.value)
                except Refusal:
                    continue
                assert prove(setting, left.value, right.relation, right.value, Deadline(60)) is None, entry.claim.text


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str, str]:
    """A formula, the same formula written a little differently, and another of the same shape."""
    shape = draw(st.sampled_from(list(LEAVES)))
    formula = draw(fitting(shape, 3))
    same = draw(st.sampled_from(["({}) * 1", "({}) + 0", "-(-({}))", "({}) * 2 / 2", "({}) + 1 - 1"])).format(formula)
    return formula, same, draw(fitting(shape, 2))


@the_same_every_time(EXAMPLES)
@given(pairs())
def test_a_formula_equals_itself_and_what_is_refuted_is_never_proved(formulas: tuple[str, str, str]) -> None:
    formula, same, other = formulas
    report = check_text(f"{SETTING}\nclaim {formula} == {same}\nclaim {formula} == {other}", hints=False)
    assert report.claims[-2].verdict != "refuted", report.claims[-2]
    if report.claims[-1].verdict == "refuted":
        entry = parse(f"{SETTING}\nclaim {formula} == {other}").entries[-1]
        assert isinstance(entry, ScopedClaim)
        left, right = entry.claim.steps
        assert prove(build(entry.scope), left.value, "==", right.value, Deadline(60)) is None
