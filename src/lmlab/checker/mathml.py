"""Expressions as mathematics on pages: MathML, which every current browser shows without scripts."""

from __future__ import annotations

import html
import re

from lmlab.checker import tree
from lmlab.checker.functions import FUNCTIONS
from lmlab.checker.text import level, mixes, number_text, to_text
from lmlab.checker.tree import Binary, Call, Compare, Derivative, Index, Node, Number, shown

_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "epsilon": "ε", "eta": "η", "theta": "θ",
    "lam": "λ", "lambda_": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "kappa": "κ",
}  # fmt: skip
_RELATIONS = {"==": "=", "<=": "≤", ">=": "≥", "!=": "≠", "<": "<", ">": ">"}


def _split_name(name: str) -> tuple[str, str, bool]:
    """A name as base, subscript and whether it wears a hat: W2 is W with 2, yhat is y with a hat, h_t is h with t."""
    name = shown(name)
    match = re.fullmatch(r"([^\W\d_]+?)(hat)?_?(\d+|(?<=_)\w+)?('*)", name)
    if not match:
        return name, "", False
    base, hat, sub, primes = match.groups()
    return base + primes, sub or "", bool(hat)


def _arrays(node: Binary) -> bool:
    """Whether a product is better shown as elementwise: neither side is a plain number."""
    return not isinstance(node.left, Number) and not isinstance(node.right, Number)


def to_mathml(node: Node) -> str:
    """The expression as a MathML row (without the surrounding <math>)."""
    match node:
        case Number():
            value = node.value
            if value.denominator == 1:
                return f"<mn>{number_text(value)}</mn>"
            return f"<mfrac><mn>{value.numerator}</mn><mn>{value.denominator}</mn></mfrac>"
        case tree.Constant():
            return "<mi>π</mi>"
        case tree.Name():
            return _ml_name(node.name)
        case tree.Negate():
            return _row("<mo>−</mo>", _ml_in(node.operand, 30))
        case Binary(op="/"):
            return f"<mfrac>{_row(to_mathml(node.left))}{_row(to_mathml(node.right))}</mfrac>"
        case Binary(op="**"):
            return f"<msup>{_ml_in(node.left, 100)}{_row(to_mathml(node.right))}</msup>"
        case Binary():
            sign = {"*": "⊙" if _arrays(node) else "·", "@": "", "-": "−"}.get(node.op, node.op)
            mark = f"<mo>{sign}</mo>" if sign else '<mspace width="0.2em"/>'
            left = _ml_in(node.left, level(node))
            if isinstance(node.left, Binary) and mixes(node.op, node.left):
                left = _row("<mo>(</mo>", left, "<mo>)</mo>")
            return _row(left, mark, _ml_in(node.right, level(node) + 1))
        case Compare():
            inner = _row(to_mathml(node.left), f"<mo>{html.escape(_RELATIONS[node.op])}</mo>", to_mathml(node.right))
            return _row("<mn>𝟙</mn><mo>{</mo>", inner, "<mo>}</mo>")
        case tree.Transpose():
            return f"<msup>{_ml_in(node.operand, 100)}<mo>⊤</mo></msup>"
        case Call(function="sqrt"):
            return f"<msqrt>{to_mathml(node.args[0])}</msqrt>"
        case Call(function="norm"):
            return _row("<mo>‖</mo>", to_mathml(node.args[0]), "<mo>‖</mo>")
        case Call(function="inv"):
            return f"<msup>{_ml_in(node.args[0], 100)}<mrow><mo>−</mo><mn>1</mn></mrow></msup>"
        case Call():
            name = FUNCTIONS[node.function].symbol or node.function.replace("_", "-")
            return _row(f"<mi>{name}</mi>", "<mo>(</mo>", _commas([to_mathml(arg) for arg in node.args]), "<mo>)</mo>")
        case tree.Stack():
            return _row("<mo>[</mo>", _commas([to_mathml(item) for item in node.items]), "<mo>]</mo>")
        case Derivative():
            return _ml_derivative(node)
        case tree.Expectation():
            return _row(
                f"<mi>{'𝔼' if node.kind == 'E' else 'Var'}</mi><mo>[</mo>", to_mathml(node.operand), "<mo>]</mo>"
            )
    assert isinstance(node, Index)
    return f"<mtext>{html.escape(to_text(node))}</mtext>"


def _row(*parts: str) -> str:
    return "<mrow>" + "".join(parts) + "</mrow>"


def _commas(parts: list[str]) -> str:
    return "<mo>,</mo>".join(parts)


def _ml_name(name: str) -> str:
    base, sub, hat = _split_name(name)
    letter = f"<mi>{html.escape(_GREEK.get(base, base))}</mi>"
    if hat:
        letter = f'<mover accent="true">{letter}<mo>^</mo></mover>'
    return f"<msub>{letter}<mi>{html.escape(sub)}</mi></msub>" if sub else letter


def _ml_in(node: Node, needed: int) -> str:
    text = to_mathml(node)
    fraction = isinstance(node, Binary) and node.op == "/"
    if level(node) >= needed or fraction or isinstance(node, Compare):
        return text
    return _row("<mo>(</mo>", text, "<mo>)</mo>")


def _ml_derivative(node: Derivative) -> str:
    by = [_ml_name(name) for name in node.by]
    top = to_mathml(node.operand)
    if len(by) == 1:
        return f"<mfrac>{_row('<mi>∂</mi>', top)}{_row('<mi>∂</mi>', by[0])}</mfrac>"
    if by[0] == by[1]:
        bottom = _row("<mi>∂</mi>", f"<msup>{by[0]}<mn>2</mn></msup>")
    else:
        bottom = _row("<mi>∂</mi>", by[0], "<mi>∂</mi>", by[1])
    return f"<mfrac>{_row('<msup><mi>∂</mi><mn>2</mn></msup>', top)}{bottom}</mfrac>"


def relation_mathml(relation: str) -> str:
    """The sign between two sides."""
    return f"<mo>{html.escape(_RELATIONS[relation])}</mo>"
