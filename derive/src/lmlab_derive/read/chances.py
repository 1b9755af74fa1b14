"""Probabilities, entropies and divergences: P[x > 0], H(p), KL(p, q)."""

from __future__ import annotations

from lmlab_derive import tree
from lmlab_derive.distributions import log_density, random_kind
from lmlab_derive.limits import Refusal
from lmlab_derive.read.cursor import refusal
from lmlab_derive.read.expressions import RELATIONS, ExpressionParser
from lmlab_derive.read.ranks import rank_of
from lmlab_derive.read.tokens import Token
from lmlab_derive.shapes.scope import Scope
from lmlab_derive.small_formulas import ONE, TWO, ZERO, call, minus, over, plus, times
from lmlab_derive.tree import Compare, Expectation, Given, Name, Negate, Node, names_in, walk

_COMPARISONS = (*RELATIONS, "!=")


class ChanceParser(ExpressionParser):
    """Expressions with events, and with the densities of random names."""

    scope: Scope

    def _event(self) -> Node | None:
        """x > 0, a < x <= b, and several of them with `and` or a comma; None where no comparison follows."""
        found: Node | None = None
        while True:
            left = self.sum_of_products()
            if self.next.text not in _COMPARISONS:
                alone = found is None and isinstance(left, Compare | tree.Binary | Name)
                if alone and self.next.text in ("]", ")", "|"):
                    return left if any(isinstance(part, Compare) for part in walk(left)) else None
                return None
            while self.next.text in _COMPARISONS:
                op = "==" if self.next.text == "=" else self.next.text
                self.at += 1
                right = self.sum_of_products()
                part = Compare(op, left, right)
                found, left = (part if found is None else times(found, part)), right
            if not self.take("and", ","):
                return found

    def condition(self) -> Node | None:
        """The event after a bar, if it is one; the cursor stays where it is otherwise."""
        start, stops = self.at, self.stops
        self.stops = (*stops, "and")
        try:
            found = self._event()
        except Refusal:
            found = None
        self.stops = stops
        if found is None:
            self.at = start
        return found

    def _probability(self) -> Node:
        """P[event], P[event | event], P[event | names]."""
        token, closing = self.next, "]" if self.peek(1).text == "[" else ")"
        self.at += 2
        stops, self.stops = self.stops, (*self.stops, "and")
        event = self.enclosed("|", self._event)
        self.stops = stops
        if event is None:
            raise refusal(token, "P[...] takes an event, such as P[x > 0] or P[a < x < b]")
        return self.averaged(token, "E", event, closing)

    def _information(self, token: Token) -> Node:
        """KL(p, q) and H(p) of rows of probabilities, or of random givens; H(p, q) is the cross-entropy."""
        self.at += 2
        args, _ = self._arguments(")", f"{token.text}(...)")
        random = [self._random(arg) for arg in args]
        if len(args) not in ((2,) if token.text == "KL" else (1, 2)):
            raise refusal(token, f"write {'KL(p, q)' if token.text == 'KL' else 'H(p) or H(p, q)'}")
        if any(random):
            if not all(random):
                raise refusal(token, f"{token.text} takes random givens or rows of probabilities, not one of each")
            logs = [self._log_density(token, given, args[0]) for given in random if given is not None]
            inside = minus(logs[0], logs[-1]) if token.text == "KL" else Negate(logs[-1])
            assert isinstance(args[0], Name)
            return Expectation(inside, "E", column=token.column) if args[0].name in names_in(inside) else inside
        p, q = args[0], args[-1]
        inside = times(p, call("log", over(p, q) if token.text == "KL" else q))
        total = call("sum", inside)
        return total if token.text == "KL" else Negate(total)

    def _random(self, node: Node) -> Given | None:
        """A random given with a density; a dirichlet row is a row of probabilities itself."""
        given = self.scope.definitions.get(node.name) if isinstance(node, Name) else None
        kind = random_kind(given) if isinstance(given, Given) else None
        return given if isinstance(given, Given) and kind is not None and kind.name != "dirichlet" else None

    def _log_density(self, token: Token, given: Given, x: Node) -> Node:
        kind = random_kind(given)
        assert kind is not None
        matrix = rank_of(kind.arguments[1], self.scope) if kind.name == "normal" else 0
        if matrix == 2 and len(given.shape) == 1:
            away, spread = minus(x, kind.arguments[0]), kind.arguments[1]
            square = tree.Binary("@", tree.Binary("@", away, call("inv", spread)), away)
            size = call("sum", plus(times(ZERO, x), ONE))
            constant = plus(call("log", call("det", spread)), times(size, call("log", times(TWO, tree.Constant("pi")))))
            return Negate(over(plus(square, constant), TWO))
        found = log_density(kind, x)
        if found is None:
            raise refusal(token, f"{token.text} does not know the density of {kind.name}")
        return call("sum", found) if given.shape and kind.name != "onehot" else found
