"""Expressions as LaTeX, for papers and, through `lmlab_derive.shared.mathml`, for pages."""

from __future__ import annotations

import re

from lmlab_derive.functions import FUNCTIONS
from lmlab_derive.text import level, mixes, number_text, to_text
from lmlab_derive.tree import (
    Binary,
    Call,
    Claim,
    Compare,
    Constant,
    Derivative,
    Expectation,
    Index,
    Letter,
    Name,
    Negate,
    Node,
    Number,
    Over,
    Recursion,
    Stack,
    Table,
    Transpose,
)

_GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "eta", "theta", "kappa", "mu", "nu", "xi", "pi", "rho", "sigma", "tau",
    "phi", "chi", "psi", "omega",
}  # fmt: skip
_SPELLED = {"eps": "varepsilon", "lam": "lambda", "lambda_": "lambda"}  # what LaTeX has other names for
_SHORTHAND = re.compile(r"(-?)\s*(KL|H)\s*\(\s*([^\W\d]\w*(?:\s*,\s*[^\W\d]\w*)?)\s*\)")
_RELATIONS = {"==": "=", "<=": r"\le", ">=": r"\ge", "!=": r"\ne", "<": "<", ">": ">"}


def relation_latex(relation: str) -> str:
    """The sign between two sides; nothing for the first."""
    return _RELATIONS.get(relation, "")


def claim_latex(claim: Claim) -> str:
    """All sides of a claim in one row."""
    parts = [
        part for step in claim.steps for part in (relation_latex(step.relation), side_latex(step.value, step.text))
    ]
    return " ".join(filter(None, parts))


def side_latex(value: Node, written: str) -> str:
    """A side of a claim; one that was written as KL(p, q) or H(p), which are read as their sums, as it was written."""
    found = _SHORTHAND.fullmatch(written.strip())
    if found is None:
        return to_latex(value)
    sign, function, names = found.groups()
    return (
        rf"{sign}\mathrm{{{function}}}\left({', '.join(_latex_name(name.strip()) for name in names.split(','))}\right)"
    )


def _split_name(name: str) -> tuple[str, str, bool]:
    """A name as base, subscript and whether it wears a hat: W2 is W with 2, yhat is y with a hat, h_t is h with t."""
    name = name.split("#")[0].rstrip("_") or name
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
            return {"pi": r"\pi", "inf": r"\infty"}[node.name]
        case Name():
            return _latex_name(node.name)
        case Negate():
            return "-" + _latex_in(node.operand, 30)
        case Binary(op="/"):
            return rf"\frac{{{to_latex(node.left)}}}{{{to_latex(node.right)}}}"
        case Binary(op="**"):
            return f"{_base(node.left)}^{{{to_latex(node.right)}}}"
        case Binary():
            sign = {"*": r" \odot " if _arrays(node) else r" \cdot ", "@": r"\, "}.get(node.op, f" {node.op} ")
            left = to_latex(node.left)
            if level(node.left) < level(node) or (isinstance(node.left, Binary) and mixes(node.op, node.left)):
                left = rf"\left({left}\right)"
            right = _latex_in(node.right, level(node) + 1)
            return left + sign + (rf"\left({right}\right)" if right.startswith("-") else right)
        case Compare():
            return rf"\mathbb{{1}}\{{{to_latex(node.left)} {_RELATIONS[node.op]} {to_latex(node.right)}\}}"
        case Transpose():
            return _base(node.operand) + r"^{\top}"
        case Call(function="sqrt"):
            return rf"\sqrt{{{to_latex(node.args[0])}}}"
        case Call(function="norm", axis=None):
            return rf"\lVert {to_latex(node.args[0])} \rVert"
        case Call(function="inv"):
            return _base(node.args[0]) + "^{-1}"
        case Call():
            name = FUNCTIONS[node.function].symbol or rf"\operatorname{{{node.function.replace('_', '-')}}}"
            axis = [] if node.axis is None else [rf"\mathrm{{axis}} = {node.axis}"]
            inner = ", ".join([*map(to_latex, node.args), *axis])
            return rf"{name}\left({inner}\right)"
        case Stack():
            return rf"\left[{', '.join(map(to_latex, node.items))}\right]"
        case Derivative():
            return _latex_derivative(node)
        case Expectation():
            symbol = r"\mathbb{E}" if node.kind == "E" else r"\operatorname{Var}"
            fixed = rf" \mid {', '.join(map(_latex_name, node.fixed))}" if node.fixed else ""
            return rf"{symbol}\left[{to_latex(node.operand)}{fixed}\right]"
        case Letter():
            return _latex_name(node.name)
        case Over():
            sign = r"\sum" if node.function == "sum" else r"\prod"
            letter = to_latex(node.letter)
            start = f"{letter} = {to_latex(node.start)}" if node.start else letter
            stop = f"^{{{to_latex(node.stop)}}}" if node.stop else ""
            return rf"{sign}_{{{start}}}{stop} {_latex_in(node.operand, 20)}"
        case Table() | Recursion():
            return to_latex(node.operand)
        case Index() if node.free_letters and all(isinstance(item, Node) for item in node.items):
            places = ", ".join(to_latex(item) for item in node.items if isinstance(item, Node))
            return rf"{{{_latex_in(node.operand, 100)}}}_{{{places}}}"
    assert isinstance(node, Index)
    return rf"\texttt{{{_escaped(to_text(node))}}}"


def _arrays(node: Binary) -> bool:
    """Whether a product is better shown as elementwise: neither side is a plain number."""
    return not isinstance(node.left, Number) and not isinstance(node.right, Number)


def _latex_name(name: str) -> str:
    base, sub, hat = _split_name(name)
    shown = base
    if base in _GREEK or base in _SPELLED:
        shown = "\\" + _SPELLED.get(base, base)
    elif len(base.rstrip("'")) > 1:
        shown = _upright(base)
    if hat:
        shown = rf"\hat{{{shown}}}"
    if not sub:
        return shown
    return f"{shown}_{{{sub if len(sub) == 1 or sub.isdigit() else _upright(sub)}}}"


def _upright(word: str) -> str:
    letters = word.rstrip("'")
    return rf"\mathrm{{{_escaped(letters)}}}" + word[len(letters) :]


def _escaped(text: str) -> str:
    return re.sub(r"([_{}%#&])", r"\\\1", text)


def _latex_in(node: Node, needed: int) -> str:
    text = to_latex(node)
    fraction = isinstance(node, Binary) and node.op == "/"
    return text if level(node) >= needed or fraction or isinstance(node, Compare) else rf"\left({text}\right)"


def _base(node: Node) -> str:
    """What an exponent stands on; one that has an exponent already is held together."""
    text = _latex_in(node, 100)
    if isinstance(node, Binary) and node.op == "/":
        text = rf"\left({text}\right)"
    return f"{{{text}}}" if "^" in text and not text.startswith(r"\left") else text


def _latex_derivative(node: Derivative) -> str:
    top = _latex_in(node.operand, 100)
    by = [_latex_name(name) for name in node.by]
    if len(by) == 1:
        return rf"\frac{{\partial {top}}}{{\partial {by[0]}}}"
    bottom = rf"\partial {by[0]}^2" if by[0] == by[1] else rf"\partial {by[0]}\,\partial {by[1]}"
    return rf"\frac{{\partial^2 {top}}}{{{bottom}}}"
