"""Tokens to expressions: a precedence-climbing parser with the operators of NumPy and a rule of its own for dJ/dx."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lmlab.config import nearest
from lmlab.prove.functions import ALONG, ARITY, BUILDERS, DERIVATIVES, FUNCTIONS, REDUCTIONS, TAKES_AXIS, TAKES_KEEPDIMS
from lmlab.prove.lexer import Token
from lmlab.prove.limits import MAX_DEPTH, MAX_EXPONENT, Refusal
from lmlab.prove.reader import TokenReader, constant_value, exponent_text, read_number
from lmlab.prove.syntax import (
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
    Slice,
    Stack,
    Transpose,
)

Options = dict[str, int | bool | None]
RELATIONS = ("=", "==", "<=", ">=", "<", ">")
_COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")
_BINDING = {"+": 10, "-": 10, "*": 20, "/": 20, "@": 20}


class ExpressionParser(TokenReader):
    """Parses one expression at a time. `known` are the names that may be used: givens, lets and sizes."""

    def __init__(self, tokens: Sequence[Token], known: Collection[str]) -> None:
        super().__init__(tokens)
        self.known = known
        self.depth = 0

    def expression(self) -> Node:
        """A full expression; a comparison in it is an array of 0 and 1."""
        self._deeper()
        left = self.sum_of_products()
        while self.next.text in _COMPARISONS and self.next.kind == "symbol":
            token = self.next
            self.at += 1
            left = Compare(token.text, left, self.sum_of_products(), column=token.column)
        self.depth -= 1
        return left

    def sum_of_products(self, tightest: int = 0) -> Node:
        """An expression without comparison signs at its top, so that a claim can be split at them."""
        left = self._signed()
        while self.next.kind == "symbol" and _BINDING.get(self.next.text, 0) > tightest:
            token = self.next
            self.at += 1
            left = Binary(token.text, left, self.sum_of_products(_BINDING[token.text]), column=token.column)
        return left

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} levels of brackets and signs; use let for parts of the formula")

    def _signed(self) -> Node:
        """A minus sign binds looser than ** and tighter than *."""
        token = self.next
        if self.take("-"):
            self._deeper()
            operand = self._signed()
            self.depth -= 1
            return Negate(operand, column=token.column)
        if self.take("+"):
            self._deeper()
            operand = self._signed()
            self.depth -= 1
            return operand
        return self._power()

    def _power(self) -> Node:
        base = self._postfix()
        token = self.next
        if not self.take("**"):
            return base
        self._deeper()
        exponent = self._signed()
        self.depth -= 1
        value = constant_value(exponent)
        if value is not None and abs(value) > MAX_EXPONENT:
            raise Refusal(
                f"column {token.column}: the power {exponent_text(value)} is too large; at most {MAX_EXPONENT} is read"
            )
        return Binary("**", base, exponent, column=token.column)

    def _postfix(self) -> Node:
        node = self._primary()
        while True:
            token = self.next
            if self.take(".T"):
                node = Transpose(node, column=token.column)
            elif token.text == "[" and token.kind == "symbol" and token.glued:
                node = self._index(node)
            else:
                break
        if (token.kind in ("name", "number") and token.text != "where") or (
            token.kind == "symbol" and token.text in "({"
        ):
            raise self.error("an operator is missing; write * between factors")
        return node

    def _index(self, operand: Node) -> Node:
        bracket = self.expect("[", "")
        items: list[Node | Slice] = []
        while True:
            start = None if self.next.text in (":", ",", "]") else self.sum_of_products()
            if self.take(":"):
                items.append(Slice(start, None if self.next.text in (",", "]") else self.sum_of_products()))
            elif start is None:
                raise self.error("a position or a slice is missing")
            else:
                items.append(start)
            if not self.take(","):
                break
        self.expect("]", "after a position")
        return Index(operand, tuple(items), column=bracket.column)

    def _primary(self) -> Node:
        token = self.next
        if token.kind == "number":
            self.at += 1
            return Number(read_number(token), column=token.column)
        if self.take("("):
            inner = self.expression()
            if self.take(","):
                return Stack((inner, *self._arguments(")", "the list")[0]), column=token.column)
            self.expect(")", "to close the bracket")
            return inner
        if self.take("["):
            items, _ = self._arguments("]", "the list")
            if not items:
                raise self.error("an empty list has no shape")
            return Stack(items, column=token.column)
        if token.kind == "name":
            return self._named()
        raise self.error("a name, a number or a bracket is expected here")

    def _named(self) -> Node:
        token = self.next
        following = self.peek(1).text if self.peek(1).kind == "symbol" else ""
        if token.text in ("E", "Var") and following == "[" and token.text not in self.known:
            return self._expectation()
        derivative = self._derivative()
        if derivative is not None:
            return derivative
        self.at += 1
        if following == "(":
            return self._call(token)
        if token.text in self.known:
            return Name(token.text, column=token.column)
        if token.text == "pi":
            return Constant("pi", column=token.column)
        if token.text in FUNCTIONS:
            raise Refusal(f"column {token.column}: {token.text} is a function; write {token.text}(...)")
        raise Refusal(f"column {token.column}: {token.text} is not defined; {nearest(token.text, self.known)}")

    def _expectation(self) -> Node:
        token = self.next
        self.at += 2
        operand = self.expression()
        fixed: list[str] = []
        if self.take("|"):
            while self.next.kind == "name":
                fixed.append(self._known_name(self.next.text, self.next))
                self.at += 1
                if not self.take(","):
                    break
        self.expect("]", f"to close {token.text}[")
        return Expectation(token.text, operand, tuple(fixed), column=token.column)

    def _derivative(self) -> Node | None:
        """dJ/dx, d2J/dz2, d2J/dxdy or d(expression)/dx; None when the tokens are something else."""
        token = self.next
        if token.text in ("d", "d2") and self.peek(1).text == "(":
            return self._derivative_of_bracket()
        bottom = self.peek(2)
        if self.peek(1).text != "/" or bottom.kind != "name" or not bottom.text.startswith("d"):
            return None
        if self.peek(3).text == "(" or not token.text.startswith("d"):
            return None
        if token.text in self.known and bottom.text in self.known:
            return None  # both are plain names: a quotient
        by: tuple[str, ...]
        if token.text.startswith("d2") and token.text[2:] in self.known and token.text[1:] not in self.known:
            top, by = token.text[2:], self._second_by(bottom.text, bottom)
        else:
            top, by = token.text[1:], (bottom.text[1:],)
            plain = token.text in self.known or bottom.text in self.known  # dx may be a size as well
            if plain and not {top, *by} <= set(self.known):
                return None
            self._known_name(top, token), self._known_name(by[0], bottom)
        self.at += 3
        return Derivative(Name(top, column=token.column), by, column=token.column)

    def _derivative_of_bracket(self) -> Node:
        token = self.next
        self.at += 2
        top = self.expression()
        self.expect(")", "to close the bracket")
        self.expect("/", f"after {token.text}(...), as in d(...)/dx")
        bottom = self.next
        if bottom.kind != "name" or not bottom.text.startswith("d"):
            raise self.error("write what to differentiate by, as in d(...)/dx")
        by = (
            self._second_by(bottom.text, bottom) if token.text == "d2" else (self._known_name(bottom.text[1:], bottom),)
        )
        self.at += 1
        return Derivative(top, by, column=token.column)

    def _second_by(self, bottom: str, token: Token) -> tuple[str, ...]:
        """The two names of dz2 or dxdy."""
        if bottom.endswith("2") and bottom[1:-1] in self.known:
            return (bottom[1:-1], bottom[1:-1])
        for cut in range(2, len(bottom) - 1):
            if bottom[cut] == "d" and bottom[1:cut] in self.known and bottom[cut + 1 :] in self.known:
                return (bottom[1:cut], bottom[cut + 1 :])
        raise Refusal(
            f"column {token.column}: {bottom!r} names no second derivative; write it like d2J/dz2 or d2J/dxdy"
        )

    def _known_name(self, name: str, token: Token) -> str:
        if name not in self.known:
            raise Refusal(f"column {token.column}: {name or token.text} is not defined; {nearest(name, self.known)}")
        return name

    def _call(self, token: Token) -> Node:
        name = token.text
        if name not in FUNCTIONS:
            if name in self.known:
                raise Refusal(
                    f"column {token.column}: {name} is not a function; write {name} * (...) or {name} @ (...)"
                )
            raise Refusal(f"column {token.column}: there is no function {name}; {nearest(name, FUNCTIONS)}")
        self.expect("(", "")
        if name in DERIVATIVES:
            return self._derivative_call(token)
        args, options = self._arguments(")", f"{name}(...)", options=True)
        args = self._numpy_forms(name, args, options)
        self._check_call(token, args, options)
        axis, keepdims = options.get("axis"), bool(options.get("keepdims", False))
        return Call(name, args, axis, keepdims, column=token.column)

    def _numpy_forms(self, name: str, args: tuple[Node, ...], options: Options) -> tuple[Node, ...]:
        """Other ways NumPy has of writing a call: sum(x, 0), concat([a, b], 1), ones((n, m)), reshape(x, (n, m))."""
        by_place = (REDUCTIONS | ALONG) - {"max", "min", "norm"}  # max(x, 0) and norm(x, 1) are read in two ways
        if len(args) == 2 and "axis" not in options and (name in by_place or isinstance(args[0], Stack)):
            value = constant_value(args[1])
            if value is not None and value.denominator == 1 and abs(value) < 10:
                options["axis"] = int(value)
                args = args[:1]
        if len(args) == 1 and isinstance(args[0], Stack) and name in ("concat", "ones", "zeros"):
            return args[0].items
        if name == "reshape" and len(args) == 2 and isinstance(args[1], Stack):
            return (args[0], *args[1].items)
        return args

    def _check_call(self, token: Token, args: tuple[Node, ...], options: Options) -> None:
        name = token.text
        wanted = ARITY.get(name)
        if len(args) == 2 and name in ("max", "min", "norm"):
            other = "sum(abs(x)) or max(abs(x))" if name == "norm" else f"{name}imum(a, b)"
            raise Refusal(f"column {token.column}: {name} takes one array; write {name}(x, axis=0) or {other}")
        if wanted is not None and len(args) != wanted:
            raise Refusal(f"column {token.column}: {name} takes {wanted} argument{'s' * (wanted > 1)}, not {len(args)}")
        if wanted is None and not args:
            raise Refusal(f"column {token.column}: {name} needs at least one argument")
        if "axis" in options and name not in TAKES_AXIS:
            raise Refusal(f"column {token.column}: {name} takes no axis=")
        if "keepdims" in options and name not in TAKES_KEEPDIMS:
            raise Refusal(f"column {token.column}: {name} takes no keepdims=")
        assert wanted is not None or name in BUILDERS

    def _derivative_call(self, token: Token) -> Node:
        args, _ = self._arguments(")", f"{token.text}(...)")
        if len(args) != 2 or not isinstance(args[1], Name):
            raise Refusal(f"column {token.column}: write {token.text}(h, x) with x the name to differentiate by")
        by = (args[1].name,) * (2 if token.text == "hessian" else 1)
        return Derivative(args[0], by, strict=token.text == "jacobian", column=token.column)

    def _arguments(self, closing: str, what: str, options: bool = False) -> tuple[tuple[Node, ...], Options]:
        """Expressions up to the closing bracket, and the values of axis= and keepdims= among them."""
        args: list[Node] = []
        found: Options = {}
        while self.next.text != closing:
            if options and self.next.kind == "name" and self.peek(1).text == "=":
                self._option(found)
            else:
                args.append(self.expression())
            if not self.take(","):
                break
        self.expect(closing, f"to close {what}")
        return tuple(args), found

    def _option(self, found: Options) -> None:
        name, sign = self.next.text, 1
        self.at += 2
        if name not in ("axis", "keepdims"):
            raise self.error(f"there is no option {name}=; there are axis= and keepdims=")
        if name == "keepdims":
            word = self.take("True", "False", "true", "false")
            if word is None:
                raise self.error("keepdims= is True or False")
            found[name] = word.text.lower() == "true"
            return
        if self.take("None"):
            found[name] = None
            return
        if self.take("-"):
            sign = -1
        if self.next.kind != "number" or not self.next.text.isdigit() or len(self.next.text) > 2:
            raise self.error("axis= is a whole number such as 0, 1 or -1")
        found[name] = sign * int(self.next.text)
        self.at += 1
