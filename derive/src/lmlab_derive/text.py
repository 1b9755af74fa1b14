"""Expressions back to text, as they are typed."""

from __future__ import annotations

from fractions import Fraction

from lmlab_derive import tree
from lmlab_derive.tree import Binary, Call, Compare, Derivative, Name, Negate, Node, Number, Slice, shown

_LEVEL = {"+": 10, "-": 10, "*": 20, "/": 20, "@": 20, "**": 40}


def level(node: Node) -> int:
    """How tightly the outermost operator binds; 100 for things that need no brackets."""
    if isinstance(node, tree.Table):
        return level(node.operand)
    if isinstance(node, Compare):
        return 5
    if isinstance(node, Binary):
        return _LEVEL[node.op]
    if isinstance(node, Negate):
        return 30
    if isinstance(node, Number) and (node.value < 0 or node.value.denominator != 1) and not _decimal(node.value):
        return 20
    return 100


def _decimal(value: Fraction) -> str | None:
    """A short exact decimal, when there is one."""
    if value < 0:
        return None
    text = f"{float(value):.12g}"
    return text if Fraction(text) == value else None


def number_text(value: Fraction) -> str:
    """A number as it can be typed again."""
    return _decimal(value) or str(value)


def to_text(node: Node) -> str:
    """The expression in the language itself, with no more brackets than needed."""
    match node:
        case Number():
            return number_text(node.value)
        case tree.Constant() | Name():
            return shown(node.name)
        case Negate():
            return "-" + _bracketed(node.operand, 30)
        case Binary(op="**"):
            loosest = 30 if isinstance(node.right, Negate) else 41
            return f"{_bracketed(node.left, 41)}**{_bracketed(node.right, loosest)}"
        case Binary():
            here = _LEVEL[node.op]
            left = _bracketed(node.left, here)
            if isinstance(node.left, Binary) and mixes(node.op, node.left):
                left = f"({to_text(node.left)})"  # a * b @ c is clear to the machine alone
            return f"{left} {node.op} {_bracketed(node.right, here + 1)}"
        case Compare():
            return f"({_bracketed(node.left, 6)} {node.op} {_bracketed(node.right, 6)})"
        case tree.Transpose():
            return _bracketed(node.operand, 100) + ".T"
        case Call(args=(tree.Table() as table,)) if len(table.letters) == 1:
            return f"{node.function}_{table.letters[0][0].name}({to_text(table.operand)})"
        case Call():
            return f"{node.function}({', '.join(map(to_text, node.args))}{_options(node)})"
        case tree.Stack():
            return "[" + ", ".join(map(to_text, node.items)) + "]"
        case tree.Index():
            return _bracketed(node.operand, 100) + "[" + ", ".join(map(_item, node.items)) + "]"
        case Derivative():
            return _derivative_text(node)
        case tree.Expectation():
            fixed = " | " + ", ".join(map(shown, node.fixed)) if node.fixed else ""
            return f"{node.kind}[{to_text(node.operand)}{fixed}]"
        case tree.Letter():
            return node.name
        case tree.Over():
            bounds = "" if node.start is None or node.stop is None else f"={to_text(node.start)}..{to_text(node.stop)}"
            return f"{node.function}({node.letter.name}{bounds}, {to_text(node.operand)})"
        case tree.Table():
            return to_text(node.operand)
        case tree.Recursion():
            return f"{to_text(node.operand)} from {to_text(node.start)}"
    raise AssertionError(node)


def operand_text(node: Node) -> str:
    """The expression as an operand of anything: in brackets, unless it needs none."""
    text = to_text(node)
    return text if level(node) == 100 else f"({text})"


def mixes(op: str, left: Binary) -> bool:
    """Whether a product of matrices and one of entries stand side by side; 2 * A @ x may."""
    if op == "@":
        return left.op in "*/" and not isinstance(left.left, Number)
    return op == "*" and left.op == "@"


def _options(node: Call) -> str:
    axis = "" if node.axis is None else f", axis={node.axis}"
    return axis + (", keepdims=True" if node.keepdims else "")


def _item(item: Node | Slice) -> str:
    if isinstance(item, Slice):
        return ":".join("" if end is None else to_text(end) for end in (item.start, item.stop))
    return to_text(item)


def _derivative_text(node: Derivative) -> str:
    by = [shown(name) for name in node.by]
    if node.strict:
        return f"jacobian({to_text(node.operand)}, {by[0]})"
    top = to_text(node.operand) if isinstance(node.operand, Name) else f"({to_text(node.operand)})"
    if len(by) == 1:
        return f"d{top}/d{by[0]}"
    return f"d2{top}/d{by[0]}2" if by[0] == by[1] else f"d2{top}/d{by[0]}d{by[1]}"


def _bracketed(node: Node, needed: int) -> str:
    text = to_text(node)
    return text if level(node) >= needed or (isinstance(node, Compare) and text.startswith("(")) else f"({text})"
