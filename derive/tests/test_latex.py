"""Claims typeset: shorthands as they were written, brackets where LaTeX needs them."""

from __future__ import annotations

import pytest

from lmlab_derive.read.sheet import ScopedClaim, parse
from lmlab_derive.to_latex import claim_latex

GIVENS = "given m, s\ngiven f, g: normal(0, 1)\ngiven p, q: n simplex\n"


@pytest.mark.parametrize(
    ("claim", "latex"),
    [
        ("KL(f, g) >= 0", r"\mathrm{KL}\left(f, g\right) \ge 0"),
        ("-H(p) <= 0", r"-\mathrm{H}\left(p\right) \le 0"),
        ("((m - 1)/s)**2 >= 0", r"\left(\frac{m - 1}{s}\right)^{2} \ge 0"),
        ("m - -s > -inf", r"m - \left(-s\right) > -\infty"),
    ],
)
def test_claims_are_typeset_as_they_were_meant(claim: str, latex: str) -> None:
    (entry,) = parse(f"{GIVENS}claim {claim}").entries
    assert isinstance(entry, ScopedClaim)
    assert claim_latex(entry.claim) == latex
