"""Formulas: LaTeX becomes the MathML that a browser shows, and what is not known is refused."""

from __future__ import annotations

import re
import xml.dom.minidom

import pytest

from lmlab_derive.shared.mathml import UnknownCommand, derivation, to_mathml


def body(latex: str) -> str:
    """The MathML without its wrapping and without attributes."""
    inner = re.sub(r".*<semantics>|<annotation.*", "", to_mathml(latex))
    return re.sub(r"<(\w+) [^>]*?(/?)>", r"<\1\2>", inner)


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"x_i^2", "<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>"),
        (r"\frac12", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        (r"\sqrt{d_k}", "<msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt>"),
        (r"\mathbf x", "<mi>𝐱</mi>"),
        (r"f'", "<msup><mi>f</mi><mo>′</mo></msup>"),
        (r"\hat y", "<mover><mi>y</mi><mo>^</mo></mover>"),
        (r"a\not\Rightarrow b", "<mrow><mi>a</mi><mo>⇏</mo><mi>b</mi></mrow>"),
        (r"\text{is sparse}", "<mtext>is\u00a0sparse</mtext>"),
        (r"-1.5", "<mrow><mo>−</mo><mn>1.5</mn></mrow>"),
    ],
)
def test_latex_becomes_the_expected_mathml(latex: str, expected: str) -> None:
    assert body(latex) == expected


def test_a_sum_has_its_limits_below_and_above() -> None:
    assert body(r"\sum_{j=1}^n").startswith("<munderover><mo>∑</mo>")


def test_a_matrix_is_a_table_between_brackets() -> None:
    found = body(r"\begin{pmatrix}1&0\\0&1\end{pmatrix}")
    assert found.count("<mtr>") == 2
    assert found.count("<mtd>") == 4


@pytest.mark.parametrize("latex", [r"\unheardof", r"\frac{1}{2", r"\begin{tikzpicture}x\end{tikzpicture}", r"x^"])
def test_latex_that_is_not_known_is_refused_and_not_dropped(latex: str) -> None:
    with pytest.raises(UnknownCommand):
        to_mathml(latex)


def test_brackets_that_grow_hold_only_what_stands_between_them() -> None:
    found = body(r"\frac12+\left(x\right)")
    assert found.endswith("<mrow><mo>(</mo><mi>x</mi><mo>)</mo></mrow></mrow>")


def test_a_derivation_is_a_table_with_its_wrong_step_marked_and_its_latex_to_copy() -> None:
    found = derivation([("", "x + x"), ("=", "2x"), ("=", "3x")], wrong=2)
    rows = xml.dom.minidom.parseString(found).getElementsByTagName("mtr")
    assert [row.getAttribute("class") for row in rows] == ["", "", "wrong"]
    assert r"= &amp; 2x \\ = &amp; 3x" in found
