"""Tokens to expressions: a precedence-climbing parser with the operators of NumPy and a rule of its own for dJ/dx."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeVar

from lmlab_derive import tree
from lmlab_derive.functions import DERIVATIVES, FUNCTIONS, NAMES, OTHER_NAMES, WRITTEN_OUT
from lmlab_derive.limits import MAX_DEPTH, MAX_EXPONENT
from lmlab_derive.read import spellings
from lmlab_derive.read.cursor import BARS, TokenReader, read_number, refusal
from lmlab_derive.read.spellings import Item, Options
from lmlab_derive.read.tokens import Token
from lmlab_derive.shared.mistakes import nearest
from lmlab_derive.small_formulas import over, power, times
from lmlab_derive.tree import Binary, Expectation, Name, Node, Slice, constant_value

T = TypeVar("T")
RELATIONS = ("=", "==", "<=", ">=", "<", ">")
CONDITIONS = ("<", ">", "<=", ">=", "!=")
_INSTEAD_OF = {
    "and": "write one claim a line, or a chain such as 0 <= x <= 1",
    "or": "write one claim a line",
    "if": "write where(c, a, b)",
    "for": "write sum(...) or another reduction over an array",
}
_COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")
PRIME = "'"
BESIDE = "beside"  # the sign that is not there in 2x
_BINDING = {"+": 10, "-": 10, "*": 20, "/": 20, "@": 20, "·": 20, BESIDE: 20}


class ExpressionParser(TokenReader):
    """Parses one expression at a time. `known` are the names that may be used: givens, lets and sizes."""

    def __init__(self, tokens: Sequence[Token], known: Collection[str]) -> None:
        super().__init__(tokens)
        self.known = known
        self.depth = 0
        self.stops: tuple[str, ...] = ("where",)  # words that end an expression
        self.within = ""  # the bars of |x| or ‖x‖, or that of E[x | y]: such a bar then closes or separates

    def expression(self) -> Node:
        """A full expression; a comparison in it is an array of 0 and 1."""
        return self._nested(self._comparison)

    def _comparison(self) -> Node:
        left = self.sum_of_products()
        while token := self.take(*_COMPARISONS):
            left = tree.Compare(token.text, left, self.sum_of_products(), column=token.column)
        return left

    def sum_of_products(self, tightest: int = 0) -> Node:
        """An expression without comparison signs at its top, so that a claim can be split at them."""
        left = self._signed()
        while (op := self._operator_here()) and _BINDING[op] > tightest:
            token, before = self.next, self.tokens[self.at - 1]
            self.at += op != BESIDE
            if op == BESIDE and isinstance(left, Binary) and left.op == "/" and before.text != ")":
                raise self.error("1/2x can be read in two ways; write 1/(2*x) or x/2")
            right = self.sum_of_products(_BINDING[op])
            plain = op not in (BESIDE, "·")
            left = Binary(op, left, right, column=token.column) if plain else self.joined(left, right, token)
        return left

    def joined(self, left: Node, right: Node, token: Token) -> Node:
        """What stands side by side, as in 2x: a product."""
        return Binary("*", left, right, column=token.column)

    def _operator_here(self) -> str:
        """The operator that follows; * between a number and what follows it, as in 2x, 3(a + b), and between brackets."""
        token = self.next
        if token.kind == "symbol" and token.text in _BINDING:
            return token.text
        return BESIDE if self._beside() else ""

    def _beside(self) -> bool:
        """Whether a factor follows without a sign, as in 2x, (a + b)(c + d) and s E[x]."""
        token = self.next
        if token.text in self.stops or token.text in _INSTEAD_OF:
            return False
        opens = token.text == "(" or (token.text in BARS and token.text[0] != self.within[:1])
        return token.kind == "name" or (token.kind == "symbol" and opens)

    def _nested(self, read: Callable[[], T]) -> T:
        """What `read` reads, one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} levels of brackets and signs; use let for parts of the formula")
        found = read()
        self.depth -= 1
        return found

    def enclosed(self, bars: str, read: Callable[[], T]) -> T:
        """What `read` reads inside brackets of some kind: a bar after an operand closes bars, and opens them elsewhere."""
        outside, self.within = self.within, bars
        found, self.within = read(), outside
        return found

    def _signed(self) -> Node:
        """A minus sign binds looser than ** and tighter than *."""
        sign = self.take("-", "+")
        if sign is None:
            return self._power()
        operand = self._nested(self._signed)
        return tree.Negate(operand, column=sign.column) if sign.text == "-" else operand

    def _power(self) -> Node:
        base = self._postfix()
        token = self.take("**")
        if token is None:
            return base
        exponent = self._nested(self._signed)
        value = constant_value(exponent)
        if value is not None and abs(value) > MAX_EXPONENT:
            text = str(value)
            short = text if len(text) < 12 else text[:9] + "..."
            raise refusal(token, f"the power {short} is too large; at most {MAX_EXPONENT} is read")
        return self.raised(base, exponent, token)

    def raised(self, base: Node, exponent: Node, token: Token) -> Node:
        """A power, entry by entry."""
        return Binary("**", base, exponent, column=token.column)

    def _postfix(self) -> Node:
        node = self._primary()
        while True:
            token = self.next
            if self.take(".T"):
                node = tree.Transpose(node, column=token.column)
            elif self.take(".mT"):
                node = spellings.last_two_swapped(node, token.column)
            elif self.take("!"):
                node = replace(WRITTEN_OUT["factorial"].means(node), column=token.column)
            elif self.take("."):
                node = self._method(node)
            elif token.text == "[" and token.kind == "symbol" and token.glued:
                node = self._index(node)
            else:
                break
        if token.text in _INSTEAD_OF and token.kind == "name" and token.text not in self.stops:
            raise self.error(f"{token.text} is not part of the language; {_INSTEAD_OF[token.text]}")
        if token.kind == "number" or (token.kind == "symbol" and token.text == "{"):
            raise self.error("an operator is missing; write * between factors")
        return node

    def _method(self, node: Node) -> Node:
        """x.sum(axis=0) and other calls written after their first argument."""
        token = self.next
        self.at += 1
        function = FUNCTIONS.get(token.text) or WRITTEN_OUT.get(token.text)
        if token.text in DERIVATIVES or (function and not function.is_method):
            raise refusal(token, f"{token.text} is no method; write {token.text}(...)")
        return self._call(token, node)

    def positions(self) -> list[Node | Slice]:
        """[i, j]: positions and slices between brackets."""
        items = self._items()
        if None in items:
            raise self.error("None adds an axis; it stands after the derivative")
        return [item for item in items if item is not None]

    def _items(self) -> list[Item]:
        before, bracket = self.tokens[self.at - 1], self.expect("[", "")
        items: list[Item] = []
        while True:
            items.append(self._position())
            if not self.take(","):
                break
        self.expect("]", "after a position")
        if bracket.paper:
            self.subscript(before, items)
        return items

    def subscript(self, before: Token, places: Sequence[Item]) -> None:
        """Refuse a subscript that could count from 0 or from 1, where subscripts are known."""

    def _index(self, operand: Node) -> Node:
        bracket = self.next
        items = self._items()
        places = tuple(item for item in items if item is not None)
        if len(places) == len(items) or any(item != Slice(None, None) for item in places):
            operand = spellings.entry_of(operand, places, bracket.column)
        return spellings.with_new_axes(operand, items)

    def _position(self) -> Item:
        if self.take("None", "newaxis"):
            return None
        start = None if self.next.text in (":", ",", "]") else self.sum_of_products()
        if self.take(":"):
            return Slice(start, None if self.next.text in (",", "]") else self.sum_of_products())
        if start is None:
            raise self.error("a position or a slice is missing")
        return start

    def _primary(self) -> Node:
        token = self.next
        if token.kind == "number":
            self.at += 1
            return tree.Number(read_number(token), column=token.column)
        if self.take("("):
            inner = self.enclosed("", self.expression)
            if self.take(","):
                return tree.Stack((inner, *self._arguments(")", "the list")[0]), column=token.column)
            self.expect(")", "to close the bracket")
            return inner
        if self.take("["):
            items, _ = self._arguments("]", "the list")
            if not items:
                raise self.error("an empty list has no shape")
            if len(items) == 1 and self.next.text == "[" and self.next.paper:
                return items[0]  # [A B]_ij is an entry, not one of a list
            return tree.Stack(items, column=token.column)
        if token.kind == "name":
            return self._named()
        found = self.bars()
        if found is not None:
            return found
        raise self.error("a name, a number or a bracket is expected here")

    def notation(self, token: Token, following: str) -> Node | None:
        """What a name begins that is notation rather than a name or a call; see `NotationParser`."""
        return None

    def derivative(self) -> Node | None:
        """dJ/dx, where derivatives are known; see `DerivativeParser`."""
        return None

    def no_name(self, name: str) -> str:
        """What to write in place of a name that is none, where more is known than the nearest one."""
        return ""

    def no_derivative(self, following: str) -> str:
        """What to write in place of a d that begins no derivative."""
        return "d is not defined"

    def derivative_call(self, token: Token) -> Node:
        """grad(J, x), where derivatives are known."""
        raise NotImplementedError(token.text)

    def bars(self) -> Node | None:
        """|x|, where it is known."""
        return None

    def condition(self) -> Node | None:
        """The event after a bar, where events are known."""
        return None

    def _named(self) -> Node:
        token = self.next
        following = self.peek(1).text if self.peek(1).kind == "symbol" else ""
        if token.text in ("E", "Var", "Cov") and following in ("[", "(") and token.text not in self.known:
            if self.peek(1).paper:
                raise refusal(token, f"a subscript of {token.text} is not read; {spellings.NOT_READ['E']}")
            return self._expectation()
        found = self.notation(token, following) or self.derivative()
        if found is not None:
            return found
        self.at += 1
        if following == "(" and (token.text not in self.known or self.next.glued):
            return self._call(token)
        if token.text in self.known:
            return Name(token.text, column=token.column)
        if token.text in ("pi", "inf"):
            return tree.Constant(token.text, column=token.column)
        if token.text in NAMES or token.text in WRITTEN_OUT:
            raise refusal(token, f"{token.text} is a function; write {token.text}(...)")
        if token.text in ("d", "d2") and following in ("/", "**"):
            raise refusal(token, self.no_derivative(following))
        advice = self.no_name(token.text) or nearest(token.text, self.known)
        raise refusal(token, f"{token.text} is not defined; {advice}")

    def _expectation(self) -> Node:
        """E[a], Var[a], or Cov[a, b] = E[a * b] - E[a] * E[b], entry by entry as Var is."""
        token, closing = self.next, "]" if self.peek(1).text == "[" else ")"
        self.at += 2
        operand = self.enclosed("|", self.expression)
        if token.text != "Cov":
            return self.averaged(token, token.text, operand, closing)
        self.expect(",", "between the two formulas of Cov")
        other = self.enclosed("|", self.expression)
        fixed = self._fixed() if self.take("|") else ()
        self.expect(closing, f"to close the {token.text}")
        mean, other_mean = (Expectation(side, "E", fixed, column=token.column) for side in (operand, other))
        both = Expectation(times(operand, other), "E", fixed, column=token.column)
        return Binary("-", both, times(mean, other_mean), column=token.column)

    def averaged(self, token: Token, kind: str, operand: Node, closing: str) -> Node:
        """E or Var of an operand, up to the closing bracket: alone, with names held fixed, or given an event."""
        event: Node | None = None
        fixed: tuple[str, ...] = ()
        if self.take("|"):
            event = self.condition()
            fixed = () if event is not None else self._fixed()
        self.expect(closing, f"to close the {token.text}")
        if event is None:
            return Expectation(operand, kind, fixed, column=token.column)
        chance = Expectation(event, "E", column=token.column)
        mean, square = (over(Expectation(times(x, event), "E"), chance) for x in (operand, power(operand, 2)))
        return mean if kind == "E" else Binary("-", square, power(mean, 2), column=token.column)

    def _fixed(self) -> tuple[str, ...]:
        """The names after |, which are not averaged over."""
        fixed: list[str] = []
        while self.next.kind == "name":
            fixed.append(self._known_name(self.next.text, self.next))
            self.at += 1
            if not self.take(","):
                break
        return tuple(fixed)

    def _known_name(self, name: str, token: Token) -> str:
        if name not in self.known:
            raise refusal(token, f"{name or token.text} is not defined; {nearest(name, self.known)}")
        return name

    def _call(self, token: Token, *first: Node) -> Node:
        """A function and its arguments; `first` is the array that a method is called on."""
        name = token.text if token.text in NAMES else OTHER_NAMES.get(token.text, token.text)
        if name not in NAMES and name not in WRITTEN_OUT:
            if name in self.known:
                raise refusal(token, f"{name} is not a function; write {name} * (...) or {name} @ (...)")
            advice = spellings.NOT_READ.get(name) or nearest(name, NAMES)
            advice = f"write d({name.rstrip(PRIME)}(x))/dx" if name.endswith(PRIME) else advice
            raise refusal(token, f"there is no function {name}; {advice}")
        self.expect("(", "")
        if name in DERIVATIVES:
            return self.derivative_call(token)
        args, options = self._arguments(")", f"{name}(...)", options=True)
        args = spellings.numpy_forms(name, (*first, *args), options)
        if name in spellings.TRIANGLES and (len(args) == 2 or "k" in options):
            return spellings.strict_triangle(token, name, args, options)
        spellings.check_call(token, name, args, options)
        if name in WRITTEN_OUT:
            return replace(WRITTEN_OUT[name].means(*args), column=token.column)
        axis, keepdims = options.get("axis"), bool(options.get("keepdims", False))
        return tree.Call(name, args, axis, keepdims, column=token.column)

    def _arguments(self, closing: str, what: str, options: bool = False) -> tuple[tuple[Node, ...], Options]:
        """Expressions up to the closing bracket, and the values of axis= and keepdims= among them."""
        args: list[Node] = []
        found: Options = {}
        while self.next.text != closing:
            if options and self.next.kind == "name" and self.peek(1).text == "=":
                self._option(found)
            else:
                args.append(self.enclosed("", self.expression))
            if not self.take(","):
                break
        self.expect(closing, f"to close {what}")
        return tuple(args), found

    def _option(self, found: Options) -> None:
        name, sign = spellings.OTHER_OPTIONS.get(self.next.text, self.next.text), 1
        self.at += 2
        if name not in ("axis", "keepdims", "k"):
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
            raise self.error(f"{name}= is a whole number such as 0, 1 or -1")
        found[name] = sign * int(self.next.text)
        self.at += 1
