"""Tokens to expressions: a precedence-climbing parser with the operators of NumPy and a rule of its own for dJ/dx."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lmlab.checker.kinds import ARITY, BUILDERS, DERIVATIVES, FUNCTIONS, TAKES_AXIS, TAKES_KEEPDIMS
from lmlab.checker.limits import MAX_DEPTH, MAX_EXPONENT, Refusal
from lmlab.checker.read.cursor import TokenReader, constant_value, exponent_text, read_number
from lmlab.checker.read.spellings import (
    NO_NUMBERS,
    NOT_METHODS,
    OTHER_NAMES,
    OTHER_OPTIONS,
    WRITTEN_OUT,
    Item,
    Options,
    last_two_swapped,
    numpy_forms,
    with_new_axes,
    written_out,
)
from lmlab.checker.read.tokens import Token
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
    Slice,
    Stack,
    Transpose,
)
from lmlab.config import nearest

RELATIONS = ("=", "==", "<=", ">=", "<", ">")
_INSTEAD_OF = {
    "and": "write one claim a line, or a chain such as 0 <= x <= 1",
    "or": "write one claim a line",
    "if": "write where(c, a, b)",
    "for": "write sum(...) or another reduction over an array",
}
_COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")
_BINDING = {"+": 10, "-": 10, "*": 20, "/": 20, "@": 20}


class ExpressionParser(TokenReader):
    """Parses one expression at a time. `known` are the names that may be used: givens, lets and sizes."""

    def __init__(self, tokens: Sequence[Token], known: Collection[str]) -> None:
        super().__init__(tokens)
        self.known = known
        self.depth = 0
        self.stops: tuple[str, ...] = ("where",)  # words that end an expression

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
            elif self.take(".mT"):
                node = last_two_swapped(node, token.column)
            elif self.take("."):
                node = self._method(node)
            elif token.text == "[" and token.kind == "symbol" and token.glued:
                node = self._index(node)
            else:
                break
        if (token.kind in ("name", "number") and token.text not in self.stops) or (
            token.kind == "symbol" and token.text in "({"
        ):
            one_each = token.text in _INSTEAD_OF
            raise self.error(
                f"{token.text} is not part of the language; {_INSTEAD_OF[token.text]}"
                if one_each
                else "an operator is missing; write * between factors"
            )
        return node

    def _method(self, node: Node) -> Node:
        """x.sum(axis=0) and other calls written after their first argument."""
        token = self.next
        self.at += 1
        if token.text in NOT_METHODS:
            raise Refusal(f"column {token.column}: {token.text} is no method; write {token.text}(...)")
        return self._call(token, node)

    def _index(self, operand: Node) -> Node:
        bracket = self.expect("[", "")
        items: list[Item] = []
        while True:
            if self.take("None", "newaxis"):
                items.append(None)
                if not self.take(","):
                    break
                continue
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
        places = tuple(item for item in items if item is not None)
        if len(places) == len(items) or any(item != Slice(None, None) for item in places):
            operand = Index(operand, places, column=bracket.column)
        return with_new_axes(operand, items)

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
        instead = "; write abs(...) or norm(...)" if token.text == "|" else ""
        raise self.error(f"a name, a number or a bracket is expected here{instead}")

    def _named(self) -> Node:
        token = self.next
        following = self.peek(1).text if self.peek(1).kind == "symbol" else ""
        if token.text in ("E", "Var") and following in ("[", "(") and token.text not in self.known:
            return self._expectation()
        if token.text == "Cov" and following in ("[", "(") and token.text not in self.known:
            return self._covariance()
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
        if token.text in ("d", "d2") and following == "/":
            raise Refusal(f"column {token.column}: write what is differentiated above, as in dJ/dx or d(formula)/dx")
        advice = NO_NUMBERS.get(token.text) or nearest(token.text, self.known)
        raise Refusal(f"column {token.column}: {token.text} is not defined; {advice}")

    def _covariance(self) -> Node:
        """Cov[a, b] = E[a * b] - E[a] * E[b], entry by entry as Var is."""
        token, closing = self.next, "]" if self.peek(1).text == "[" else ")"
        self.at += 2
        left = self.expression()
        self.expect(",", "between the two formulas of Cov")
        right = self.expression()
        fixed = self._fixed()
        self.expect(closing, "to close the Cov")

        def mean(node: Node) -> Node:
            return Expectation("E", node, fixed, column=token.column)

        both = mean(Binary("*", left, right, column=token.column))
        return Binary("-", both, Binary("*", mean(left), mean(right), column=token.column), column=token.column)

    def _expectation(self) -> Node:
        token, closing = self.next, "]" if self.peek(1).text == "[" else ")"
        self.at += 2
        operand = self.expression()
        fixed = self._fixed()
        self.expect(closing, f"to close the {token.text}")
        return Expectation(token.text, operand, fixed, column=token.column)

    def _fixed(self) -> tuple[str, ...]:
        """The names after |, which are not averaged over."""
        fixed: list[str] = []
        if self.take("|"):
            while self.next.kind == "name":
                fixed.append(self._known_name(self.next.text, self.next))
                self.at += 1
                if not self.take(","):
                    break
        return tuple(fixed)

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
        if bottom.text == "d" and token.text == "d" and self.peek(1).text == "(" and self.peek(3).text == ")":
            inner = self._known_name(self.peek(2).text, self.peek(2))  # d(...)/d(x)
            self.at += 4
            return Derivative(top, (inner,), column=token.column)
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

    def _call(self, token: Token, *first: Node) -> Node:
        """A function and its arguments; `first` is the array that a method is called on."""
        name = token.text if token.text in FUNCTIONS else OTHER_NAMES.get(token.text, token.text)
        if name not in FUNCTIONS and name not in WRITTEN_OUT:
            if name in self.known:
                raise Refusal(
                    f"column {token.column}: {name} is not a function; write {name} * (...) or {name} @ (...)"
                )
            raise Refusal(f"column {token.column}: there is no function {name}; {nearest(name, FUNCTIONS)}")
        self.expect("(", "")
        if name in DERIVATIVES:
            return self._derivative_call(token)
        args, options = self._arguments(")", f"{name}(...)", options=True)
        args = numpy_forms(name, (*first, *args), options)
        self._check_call(token, name, args, options)
        if name in WRITTEN_OUT:
            return written_out(name, args, token.column)
        if name == "stack":
            return Stack(args, column=token.column)
        axis, keepdims = options.get("axis"), bool(options.get("keepdims", False))
        return Call(name, args, axis, keepdims, column=token.column)

    def _check_call(self, token: Token, name: str, args: tuple[Node, ...], options: Options) -> None:
        wanted = ARITY.get(name, WRITTEN_OUT.get(name))
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
        name, sign = OTHER_OPTIONS.get(self.next.text, self.next.text), 1
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
