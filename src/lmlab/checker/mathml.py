"""Expressions as mathematics: LaTeX for papers, MathML for pages (every current browser shows it without scripts)."""

from __future__ import annotations

import html
import re

from lmlab.checker.text import level, mixes, number_text, to_text
from lmlab.checker.tree import (
    Binary,
    Call,
    Compare,
    Constant,
    Derivative,
    Expectation,
    Index,
    Name,
    Negate,
    Node,
    Number,
    Stack,
    Transpose,
)

_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "epsilon": "ε", "eta": "η", "theta": "θ",
    "lam": "λ", "lambda_": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "kappa": "κ",
}  # fmt: skip
_LATEX_GREEK = {"eps": "varepsilon", "lam": "lambda", "lambda_": "lambda"}
_RELATIONS = {"==": "=", "<=": "≤", ">=": "≥", "!=": "≠", "<": "<", ">": ">"}
_LATEX_RELATIONS = {"==": "=", "<=": r"\le", ">=": r"\ge", "!=": r"\ne", "<": "<", ">": ">"}


def _split_name(name: str) -> tuple[str, str, bool]:
    """A name as base, subscript and whether it wears a hat: W2 is W with 2, yhat is y with a hat, h_t is h with t."""
    name = name.split("#")[0]
    match = re.fullmatch(r"([^\W\d_]+?)(hat)?_?(\d+|(?<=_)\w+)?('*)", name)
    if not match:
        return name, "", False
    base, hat, sub, primes = match.groups()
    return base + primes, sub or "", bool(hat)


def to_latex(node: Node) -> str:
    """The expression in LaTeX."""
    match node:
        case Number():
            value = node.value
            return (
                number_text(value) if value.denominator == 1 else rf"\tfrac{{{value.numerator}}}{{{value.denominator}}}"
            )
        case Constant():
            return r"\pi"
        case Name():
            return _latex_name(node.name)
        case Negate():
            return "-" + _latex_in(node.operand, 30)
        case Binary(op="/"):
            return rf"\frac{{{to_latex(node.left)}}}{{{to_latex(node.right)}}}"
        case Binary(op="**"):
            return f"{_latex_in(node.left, 100)}^{{{to_latex(node.right)}}}"
        case Binary():
            sign = {"*": r" \odot " if _arrays(node) else r" \cdot ", "@": r"\, "}.get(node.op, f" {node.op} ")
            left = to_latex(node.left)
            if level(node.left) < level(node) or (isinstance(node.left, Binary) and mixes(node.op, node.left)):
                left = rf"\left({left}\right)"
            return left + sign + _latex_in(node.right, level(node) + 1)
        case Compare():
            return rf"\mathbb{{1}}\{{{to_latex(node.left)} {_LATEX_RELATIONS[node.op]} {to_latex(node.right)}\}}"
        case Transpose():
            return _latex_in(node.operand, 100) + r"^{\top}"
        case Call(function="sqrt"):
            return rf"\sqrt{{{to_latex(node.args[0])}}}"
        case Call(function="norm"):
            return rf"\lVert {to_latex(node.args[0])} \rVert"
        case Call(function="inv"):
            return _latex_in(node.args[0], 100) + "^{-1}"
        case Call(function="sigmoid"):
            return rf"\sigma({to_latex(node.args[0])})"
        case Call():
            return rf"\operatorname{{{node.function.replace('_', ' ')}}}({', '.join(map(to_latex, node.args))})"
        case Derivative():
            return _latex_derivative(node)
        case Expectation():
            symbol = r"\mathbb{E}" if node.kind == "E" else r"\operatorname{Var}"
            return rf"{symbol}\left[{to_latex(node.operand)}\right]"
    return rf"\texttt{{{to_text(node)}}}"


def _arrays(node: Binary) -> bool:
    """Whether a product is better shown as elementwise: neither side is a plain number."""
    return not isinstance(node.left, Number) and not isinstance(node.right, Number)


def _latex_name(name: str) -> str:
    base, sub, hat = _split_name(name)
    shown = base
    if base in _GREEK:
        shown = "\\" + _LATEX_GREEK.get(base, base)
    elif len(base.rstrip("'")) > 1:
        shown = rf"\mathrm{{{base}}}".replace("_", r"\_")
    if hat:
        shown = rf"\hat{{{shown}}}"
    return f"{shown}_{{{sub}}}" if sub else shown


def _latex_in(node: Node, needed: int) -> str:
    text = to_latex(node)
    fraction = isinstance(node, Binary) and node.op == "/"
    return text if level(node) >= needed or fraction or isinstance(node, Compare) else rf"\left({text}\right)"


def _latex_derivative(node: Derivative) -> str:
    top = to_latex(node.top)
    by = [_latex_name(name) for name in node.by]
    if len(by) == 1:
        return rf"\frac{{\partial {top}}}{{\partial {by[0]}}}"
    bottom = rf"\partial {by[0]}^2" if by[0] == by[1] else rf"\partial {by[0]}\,\partial {by[1]}"
    return rf"\frac{{\partial^2 {top}}}{{{bottom}}}"


def to_mathml(node: Node) -> str:
    """The expression as a MathML row (without the surrounding <math>)."""
    match node:
        case Number():
            value = node.value
            if value.denominator == 1:
                return f"<mn>{number_text(value)}</mn>"
            return f"<mfrac><mn>{value.numerator}</mn><mn>{value.denominator}</mn></mfrac>"
        case Constant():
            return "<mi>π</mi>"
        case Name():
            return _ml_name(node.name)
        case Negate():
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
        case Transpose():
            return f"<msup>{_ml_in(node.operand, 100)}<mo>⊤</mo></msup>"
        case Call(function="sqrt"):
            return f"<msqrt>{to_mathml(node.args[0])}</msqrt>"
        case Call(function="norm"):
            return _row("<mo>‖</mo>", to_mathml(node.args[0]), "<mo>‖</mo>")
        case Call(function="inv"):
            return f"<msup>{_ml_in(node.args[0], 100)}<mrow><mo>−</mo><mn>1</mn></mrow></msup>"
        case Call():
            name = "σ" if node.function == "sigmoid" else node.function.replace("_", "-")
            return _row(f"<mi>{name}</mi>", "<mo>(</mo>", _commas([to_mathml(arg) for arg in node.args]), "<mo>)</mo>")
        case Stack():
            return _row("<mo>[</mo>", _commas([to_mathml(item) for item in node.items]), "<mo>]</mo>")
        case Derivative():
            return _ml_derivative(node)
        case Expectation():
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
    shown = f"<mi>{html.escape(_GREEK.get(base, base))}</mi>"
    if hat:
        shown = f'<mover accent="true">{shown}<mo>^</mo></mover>'
    return f"<msub>{shown}<mi>{html.escape(sub)}</mi></msub>" if sub else shown


def _ml_in(node: Node, needed: int) -> str:
    text = to_mathml(node)
    fraction = isinstance(node, Binary) and node.op == "/"
    if level(node) >= needed or fraction or isinstance(node, Compare):
        return text
    return _row("<mo>(</mo>", text, "<mo>)</mo>")


def _ml_derivative(node: Derivative) -> str:
    by = [_ml_name(name) for name in node.by]
    top = to_mathml(node.top)
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
