"""Planted errors: a formula or constant of a claim is replaced by a wrong one (or a wrong one by the right one).

Every verdict is reached by running its check, so it must change. Each case names the verdict that the altered claim gets;
"failed" means that an answer, correction or repair of the ledger's own no longer holds.
"""

from __future__ import annotations

from typing import Any

import pytest

from lmlab.ledger import Claim, claims

HOLDS = {"proved", "supported"}


class Edit:
    """Replace a piece of a text under test, which must be there."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def __call__(self, text: str) -> str:
        assert self.old in text, f"{self.old!r} is not in {text!r}"
        return text.replace(self.old, self.new)


CASES: list[tuple[str, dict[str, Any], str]] = [
    ("week2.E1a", {"count": "V*d + d"}, "refuted"),
    ("week2.E1b", {"count": "((N-1)*d)*h"}, "refuted"),
    ("week2.E1c", {"count": "V*h + V"}, "refuted"),
    ("week2.E1d", {"factored": "V*(d + h) + (N*d + 1)*h"}, "refuted"),
    ("week2.E1e", {"functions": ("ReLU", "PReLU")}, "refuted"),
    ("week2.E1f", {"slope": "d"}, "refuted"),
    ("week2.E1f", {"count": "V*(d + h) + ((N-1)*d + 2)*h"}, "refuted"),
    ("week2.E2a", {"scores": "N-1"}, "proved"),
    ("week2.E2a", {"corrected": "N"}, "failed"),
    ("week2.E2b", {"over": "all scores"}, "proved"),
    ("week2.E2c", {"width": "k"}, "refuted"),
    ("week2.E2c", {"derivation": Edit("W @ (alpha @ e)", "W @ sum(e, axis=0)")}, "refuted"),
    ("week2.E2d", {"moved": 5}, "refuted"),
    ("week2.E3", {"count": "k*d + v*d"}, "refuted"),
    ("week2.E4a", {"count": "v*h"}, "refuted"),
    ("week2.E4b", {"count": "V*(d + h) + 2*k*d + v*d + v*h"}, "refuted"),
    ("week2.E4c", {"count": "V*(d + h) + 2*k*d + v*d + (v + 1)*h + N*d"}, "refuted"),
    ("week2.I1b", {"table": {(3, 2): "8.32", (3, 4): "8.51", (5, 2): "10.63", (5, 4): "6.65"}}, "refuted"),
    ("week2.I1b", {"quoted": {3: ("8.32", "8.15"), 5: ("10.63", "6.56")}}, "refuted"),
    ("week2.I1c", {"quoted": {4: ("8.15", "6.65"), 2: ("8.32", "10.36")}}, "refuted"),
    ("week2.I1c", {"table": {(3, 2): "8.32", (3, 4): "8.15", (5, 2): "8.03", (5, 4): "6.65"}}, "refuted"),
    ("week2.I2a", {"fixed": ("rotary", "learned")}, "refuted"),
    ("week2.I2b", {"percent": "54"}, "proved"),
    ("week2.I2b", {"corrected": "55.1"}, "failed"),
    ("week2.I2c", {"layers": (3, 2, 1)}, "refuted"),
    ("week2.I2d", {"sizes": {"width": 512, "hidden": 512, "words": 4348, "places": 8}}, "refuted"),
    ("quiz1.Q1", {"derivation": Edit("+ sum(q * log(q / prior))", "- sum(q * log(q / prior))")}, "refuted"),
    ("quiz1.Q1.b", {"derivation": Edit(">=", "<=")}, "refuted"),
    ("quiz1.Q2.1", {"derivation": Edit("[n, m]", "[m, n]")}, "failed"),
    ("quiz1.Q2.2", {"derivation": Edit("[n, m, n, m]", "[n, m]")}, "failed"),
    ("quiz1.Q2.3", {"expected": (3, 4)}, "failed"),
    ("quiz1.Q2.4", {"derivation": Edit("[n, m, n, m]", "[n, n, m, m]")}, "failed"),
    ("quiz1.Q3.0a", {"signs": (1, -1)}, "refuted"),
    ("quiz1.Q3.0b", {"loss": "d"}, "proved"),
    ("quiz1.Q3.0c", {"prediction": "softmax"}, "proved"),
    ("quiz1.Q3.0d", {"result": ((1, 1), (0, 1))}, "refuted"),
    ("quiz1.Q3.1", {"derivation": Edit("(xr - x)", "(x - xr)")}, "failed"),
    ("quiz1.Q3.2", {"derivation": Edit("(h > 0)", "h")}, "failed"),
    ("quiz1.Q3.3", {"derivation": Edit("delta2 @ x.T", "delta1 @ x.T")}, "failed"),
    ("quiz1.Q4.0a", {"derivation": Edit("given X: d, n", "given X: n, d")}, "proved"),
    ("quiz1.Q4.0b", {"matrix": (("a", "b"), ("-b", "c"))}, "refuted"),
    ("quiz1.Q4.1", {"products": ("1", "-2", "1/2")}, "refuted"),
    ("quiz1.Q4.2", {"bound": "1/d"}, "proved"),
    ("quiz1.Q4.2", {"repaired": Edit("/ n", "/ (n + 1)")}, "failed"),
    ("quiz1.Q4.3", {"bound": "Min(p, q)"}, "failed"),
    ("assignment2.1a.1", {"derivation": Edit("-log(sum(y * yhat))", "log(sum(y * yhat))")}, "refuted"),
    ("assignment2.1a.2", {"derivation": Edit("* diag(jacobian(yhat, theta))", "@ jacobian(yhat, theta)")}, "proved"),
    ("assignment2.1a.3", {"derivation": Edit("== -y / p", "== y / p")}, "refuted"),
    ("assignment2.1a.4", {"other": "yi*yj"}, "refuted"),
    ("assignment2.1a.5", {"labels_sum": "2"}, "refuted"),
    ("assignment2.1a.6", {"derivation": Edit("yhat - y", "y - yhat")}, "refuted"),
    ("assignment2.1b.1", {"derivation": Edit("W2.T", "2 * W2.T")}, "refuted"),
    ("assignment2.1b.2", {"slope": "s*(1+s)"}, "refuted"),
    ("assignment2.1b.3", {"derivation": Edit("* h * (1 - h)", "* h")}, "refuted"),
    ("assignment2.1b.4", {"derivation": Edit("(yhat - y)", "(y - yhat)")}, "refuted"),
    ("assignment2.1c", {"batch_bias": "mean"}, "refuted"),
    ("assignment2.1d.2", {"reported": "0.87"}, "refuted"),
    ("assignment2.1d.2", {"vocabularies": (3000, 20)}, "failed"),
    ("assignment2.2a.1", {"outside": "spam"}, "proved"),
    ("assignment2.2a.2", {"memory": "V*d + 12*L*d**2"}, "proved"),
    ("assignment2.2a.2", {"memory": "V*d + 13*L*d**2 + 2*L*T*d"}, "refuted"),
    ("assignment2.2a.3", {"order": 1}, "refuted"),
    ("assignment2.2a.5", {"cost": "4*L*T*W*d"}, "refuted"),
    ("assignment2.2a.5", {"cost": "2*T*(12*L*d**2 + V*d) + 2*L*T*W*d"}, "refuted"),
    ("assignment2.3a", {"perplexity": "t**(-(log(p1)+log(p2)+log(p3)+log(p4))/(4*log(2)))"}, "refuted"),
    ("assignment2.3b.2", {"reported": ("0.577", "24.69")}, "refuted"),
    ("assignment2.3b.3", {"compared": "held-out"}, "proved"),
    ("assignment2.3b.4", {"unit": "byte"}, "proved"),
    ("assignment2.3c", {"unknown_is_cheap": False}, "failed"),
    ("assignment2.3d", {"preparation": "everything small"}, "failed"),
    ("assignment2.5.1a", {"derivation": Edit("sum(a) == 1", "sum(a) == n")}, "refuted"),
    ("assignment2.5.1.pre", {"scale": "1"}, "refuted"),
    ("assignment2.5.1b", {"margin": "1"}, "refuted"),
    ("assignment2.5.1b", {"margin": "log((n-2)*(1-eps)/eps)"}, "refuted"),
    ("assignment2.5.1c", {"derivation": Edit("(1 - a[0]) *", "(1 - a[0])**2 *")}, "refuted"),
    ("assignment2.5.1d", {"length": "4"}, "proved"),
    ("assignment2.5.1d", {"corrected_margin": "log(n)"}, "failed"),
    ("assignment2.5.1d", {"corrected_margin": "log(10*(n-1))"}, "failed"),
    ("assignment2.5.2a.1", {"derivation": Edit("== va", "== vb")}, "refuted"),
    ("assignment2.5.2a.2", {"derivation": Edit("M @ vb == vb", "M @ vb == 0 * vb")}, "proved"),
    ("assignment2.5.2b.1", {"coefficients": ("1", "2")}, "refuted"),
    ("assignment2.5.2b.2", {"weight": "exp(l)/(3*exp(l))"}, "refuted"),
    ("assignment2.5.3a", {"deviation": "l*sqrt(a)"}, "refuted"),
    ("assignment2.5.3b.1", {"gamma_variance": "1/4"}, "failed"),
    ("assignment2.5.3b.1", {"literal": "along"}, "proved"),
    ("assignment2.5.3b.2", {"weight": "exp(l*g)/(exp(l*(1+g))+exp(l))"}, "refuted"),
    ("assignment2.5.3b.3", {"weight": "exp(l)/(exp(l*(1+g))+exp(l))"}, "proved"),
    ("assignment2.5.3b.4", {"gammas": ("1/20", "0", "-1/20")}, "refuted"),
    ("assignment2.5.3b.5", {"gamma_variance": "1/100"}, "refuted"),
    ("assignment2.5.3b.6", {"along_a": "1/1000000"}, "refuted"),
    ("assignment2.5.4a.1", {"first": "a", "second": "b"}, "proved"),
    ("assignment2.5.4a.3", {"weight": "exp(l)/(exp(l)+n)"}, "refuted"),
    ("assignment2.5.4b.1", {"overlap": "1/10"}, "refuted"),
    ("assignment2.5.4b.2", {"needed": "0"}, "refuted"),
    ("assignment2.5.4b.2", {"needed": "log(82)"}, "refuted"),
    ("assignment2.5.4b.3", {"floor": "-1"}, "refuted"),
    ("assignment2.5.4b.4", {"share": "1/2"}, "failed"),
    ("lab11.1a", {"norm": "1"}, "refuted"),
    ("lab11.1b", {"start": "0.9"}, "refuted"),
    ("lab11.1d", {"activations": ("3*tanh(x)",)}, "proved"),
    ("lab11.1e", {"derivation": Edit("norm(clipped) <= c", "norm(clipped) <= c / 2")}, "refuted"),
    ("lab11.1f", {"law": "g**(T-1)"}, "refuted"),
    ("lab11.1g", {"he": "1"}, "refuted"),
    ("lab11.1h", {"factor": "1/(v+eps)"}, "refuted"),
    ("lab11.2a", {"mirrored": "-s"}, "refuted"),
    ("lab11.2b", {"gate_bias": "0"}, "refuted"),
    ("lab11.2c", {"z_bias": "-20"}, "refuted"),
    ("lab11.3a", {"state": "0"}, "refuted"),
    ("lab11.3b", {"recurrent": "0"}, "refuted"),
    ("lab11.3c", {"gate": "tanh(x)"}, "refuted"),
    ("lab11.3c", {"gate": "1/(2+exp(-x))"}, "refuted"),
    ("lab11.3c.note", {"candidate_bias": "5"}, "proved"),
    ("lab11.3d", {"squash": "softmax"}, "refuted"),
    ("lab11.4.0", {"recurrent": "1/10"}, "proved"),
    ("lab11.4a", {"cost_gradient": "total"}, "refuted"),
    ("lab11.4a.1", {"derivation": Edit("tanh(C)**2)", "tanh(C))")}, "refuted"),
    ("lab11.4a.2", {"direct": Edit("== diag(f)", "== diag(i)")}, "refuted"),
    ("lab11.4a.3", {"direct": Edit("let C = f * Cp + i * g", "let C = f * Cp + g")}, "refuted"),
    ("lab11.4b", {"forget": "0.9"}, "refuted"),
    ("lab11.5a.1", {"earlier": "1/2"}, "proved"),
    ("lab11.5a.2", {"attend_to": "all"}, "proved"),
    ("lab11.5a.3", {"model": "self-attention"}, "proved"),
    ("lab11.5a.4", {"derivation": Edit("sqrt(d) * (ht.T", "d * (ht.T")}, "refuted"),
    ("lab11.5b", {"derivation": Edit("softmax(Q @ K.T) @ V", "softmax(Q @ K.T, axis=0) @ V")}, "refuted"),
    ("lab11.6a", {"mean": "u + d"}, "refuted"),
    ("lab11.6b", {"derivation": Edit("2*d*s**2", "2*s**2")}, "proved"),
    ("lab11.6b", {"corrected": Edit("2*s**2", "s**2")}, "failed"),
    ("lab11.6b.mid", {"derivation": Edit("+ d*s**4", "+ s**4")}, "refuted"),
    ("lab11.6c.q", {"repair": "d"}, "failed"),
    ("lab11.6c.q", {"mean": "d*m**3/s"}, "proved"),
    ("lab11.6c", {"scale": "1"}, "proved"),
    ("lab11.6d.1", {"variance": "d*s**2"}, "refuted"),
    ("lab11.6d.2", {"scale": "1/sqrt(d)"}, "refuted"),
    ("lab11.6d.3", {"through": "identity"}, "proved"),
    ("lab11.6d.4", {"scale": "1/d"}, "refuted"),
    ("lab11.7.1a", {"output": "average"}, "proved"),
    ("lab11.7.1b", {"indices": "d/2"}, "proved"),
    ("lab11.7.2a", {"heads": 1}, "refuted"),
    ("lab11.7.3a.1", {"exact": "6*M*k**2 + 4*M**2*k"}, "refuted"),
    ("lab11.7.3a.2", {"kept": "M*k"}, "refuted"),
    ("lab11.7.3b.1", {"bound": "N*k**2 + M*N*k"}, "refuted"),
    ("lab11.7.3b.2", {"kept": "M*N"}, "refuted"),
    ("lab11.7.3b.2", {"full": "N*k**2 + M*k**2 - M*N*k"}, "refuted"),
    ("lab11.7.3c", {"kept": "N*k**2"}, "refuted"),
    ("lab11.7.4a", {"part": "decoder"}, "refuted"),
    ("lab11.7.4b", {"full": "12*N*k**2 + 4*N**2*k + 4*M*N*k + 16*N*k**2"}, "refuted"),
    ("lab11.7.4b", {"kept": "N**3 + M*N"}, "refuted"),
    ("lab11.7.4c", {"cost": "M + N"}, "refuted"),
    ("bishop12.1", {"bound": "9/10"}, "refuted"),
    ("bishop12.2", {"derivation": Edit("== ones(N)", "== 2 * ones(N)")}, "refuted"),
    ("bishop12.3", {"corrected": Edit("+ N - 1", "+ N")}, "failed"),
    ("bishop12.3.b", {"much": "2"}, "refuted"),
    ("bishop12.3.c", {"scale": "sqrt(D)"}, "refuted"),
    ("bishop12.4", {"derivation": Edit("== D where", "== 2 * D where")}, "refuted"),
    ("bishop12.5", {"derivation": Edit("Wv2 @ Wo[Dv:2*Dv]", "Wv2 @ Wo[0:Dv]")}, "refuted"),
    ("bishop12.6.a", {"attention": "4*D**2"}, "refuted"),
    ("bishop12.6.b", {"derivation": Edit("kron(A, Wv)", "kron(A, Wv.T)")}, "proved"),
    ("bishop12.6.c", {"mixing": "identity"}, "proved"),
    ("bishop12.6.d", {"doubled": Edit("let B = softmax(2 * X @ Wq @ (2 * X @ Wk).T / sqrt(D))", "let B = A")}, "refuted"),
    ("bishop12.7", {"outputs": "unchanged"}, "refuted"),
    ("bishop12.7.b", {"derivation": Edit("P @ S @ P.T / sqrt(Dk)", "P @ S @ P.T")}, "proved"),
    ("bishop12.7.c", {"strength": "0"}, "refuted"),
    ("bishop12.8", {"variance": "2/D"}, "refuted"),
    ("bishop12.9", {"derivation": Edit("+ Wr @ r", "- Wr @ r")}, "refuted"),
    ("bishop12.9.b", {"second_block": "same"}, "proved"),
    ("bishop12.10.a", {"matrix": (("cos(k*w)", "-sin(k*w)"), ("sin(k*w)", "cos(k*w)"))}, "refuted"),
    ("bishop12.10.b", {"functions": ("sin", "cos")}, "refuted"),
    ("bishop12.11", {"estimate": "(N_j + 1)/(N + 3)"}, "refuted"),
    ("bishop12.12", {"free": "V**n - 1"}, "refuted"),
    ("bishop12.13.a", {"omitted": 0}, "refuted"),
    ("bishop12.13.b", {"omitted": 1}, "proved"),
    ("bishop12.13.c", {"joint": "V**L"}, "refuted"),
    ("bishop12.13.d", {"added_to_context": "V"}, "proved"),
    ("bishop12.13.d", {"corrected_context": "1"}, "failed"),
    ("bishop12.13.e", {"weights": ("1/2", "3/10", "3/10")}, "refuted"),
    ("bishop12.15.a", {"table": {"AA": "40/100", "AB": "9/100", "BA": "30/100", "BB": "21/100"}}, "proved"),
    ("bishop12.15.b", {"table": {"AA": "0.35", "AB": "0.25", "BA": "0", "BB": "0.4"}}, "proved"),
    ("bishop12.15.c", {"best": "BA"}, "proved"),
    ("bishop12.15.d", {"values": ("2/15", "13/15", "8/15", "5/13")}, "refuted"),
    ("bishop12.15.e", {"tables": ("2 2 3 4", "1 4 3 2", "4 1 3 2")}, "refuted"),
    ("bishop12.15.e", {"claimed": ("optimal", "optimal", "tie")}, "refuted"),
    ("bishop12.15.f", {"table": {"AA": "40/100", "AB": "19/100", "BA": "30/100", "BB": "11/100"}}, "refuted"),
    ("bishop12.16.a", {"counts": {"mlp": 8_388_608}}, "refuted"),
    ("bishop12.16.b", {"total_millions": "332.8"}, "proved"),
    ("bishop12.16.c", {"total_millions": "350"}, "refuted"),
    ("bishop12.16.d", {"published": 334_617_600}, "failed"),
    ("bishop12.16.e", {"explained": "2*L*4096 + 6000000"}, "proved"),
]  # fmt: skip

SLOW_CASES: list[tuple[str, dict[str, Any], str]] = [
    ("week2.I1a", {"vocabularies": (3000,)}, "proved"),
    ("week2.I1e", {"steps": 0}, "proved"),
    ("assignment2.2b", {"evidence": "held-out loss"}, "proved"),
    ("assignment2.4e.0", {"repair": "none"}, "failed"),
    ("assignment2.4e.1", {"pooling": "decaying"}, "proved"),
    ("assignment2.4e.2", {"pooling": "decaying"}, "proved"),
    ("lab11.7.2d", {"steps": 0}, "refuted"),
]


def altered(identifier: str, changes: dict[str, Any]) -> Claim:
    (claim,) = claims([identifier])
    new = {key: change(claim.tested[key]) if isinstance(change, Edit) else change for key, change in changes.items()}
    return claim.altered(**new)


def planted(identifier: str, changes: dict[str, Any], expected: str) -> None:
    outcome = altered(identifier, changes).check()
    assert outcome.verdict == expected or {outcome.verdict, expected} <= HOLDS, outcome.evidence
    if expected == "failed":  # our own answer broke, not the check's code
        assert outcome.evidence.startswith("BrokenCheck"), outcome.evidence


@pytest.mark.parametrize(("identifier", "changes", "expected"), CASES, ids=[f"{i}-{'-'.join(c)}" for i, c, _ in CASES])
def test_a_planted_error_changes_the_verdict(identifier: str, changes: dict[str, Any], expected: str) -> None:
    planted(identifier, changes, expected)


@pytest.mark.slow
@pytest.mark.parametrize(("identifier", "changes", "expected"), SLOW_CASES, ids=[i for i, _, _ in SLOW_CASES])
def test_a_planted_error_changes_the_verdict_of_a_trained_claim(
    identifier: str, changes: dict[str, Any], expected: str
) -> None:
    planted(identifier, changes, expected)


def test_every_claim_has_a_planted_error() -> None:
    assert {claim.id for claim in claims()} == {case[0] for case in CASES + SLOW_CASES}
