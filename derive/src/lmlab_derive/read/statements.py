"""Tokens to statements: what follows given, let, claim and derive."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from lmlab_derive.distributions import DISTRIBUTIONS
from lmlab_derive.kinds import KIND_WORDS
from lmlab_derive.limits import Refusal
from lmlab_derive.read.cursor import refusal, shallow
from lmlab_derive.read.expressions import CONDITIONS, RELATIONS
from lmlab_derive.read.shapes import RESERVED, ShapeParser
from lmlab_derive.read.subscripts import entries
from lmlab_derive.read.sums import witness_of
from lmlab_derive.read.tokens import Token
from lmlab_derive.shapes.scope import Definition, Macro, rename, unknown_function
from lmlab_derive.shapes.setting import drawn_shape
from lmlab_derive.shared.mistakes import nearest
from lmlab_derive.sizes import Shape, Size, size_names
from lmlab_derive.small_formulas import call, number
from lmlab_derive.tree import (
    Compare,
    Condition,
    Given,
    Kind,
    Let,
    Letter,
    Name,
    Node,
    Recursion,
    Step,
    Table,
)

PLAIN = ("scalar", "real", "number")


class StatementParser(ShapeParser):
    """Parses the part of a statement that follows its keyword."""

    def learn(self, definition: Definition) -> None:
        """Add a definition to what this statement sees."""
        self.scope = self.scope.define(definition)
        self.known = self.scope.known

    def givens(self) -> list[Given]:
        """names: shape kinds [, names: shape kinds]..."""
        found: list[Given] = []
        while True:
            found += self.given_group()
            if not self.take(","):
                break
        if self.next.kind != "end":
            raise self.error("the shape or kind is not understood here; write it like `given y: 1, Dy onehot`")
        return found

    def given_group(self) -> list[Given]:
        """One or more names that share a shape and kinds."""
        line = self.next.line
        names = [self.new_name()]
        while self.next.text == "," and self.peek(1).kind == "name" and self.peek(2).text in (",", ":", "~", ""):
            self.at += 1
            names.append(self.new_name())
        shape: Shape = ()
        kinds: tuple[Kind, ...] = ()
        if self.take(":", "~"):
            if self.take("function"):
                return self._unknown_functions(names, line)
            scalar = self.take(*PLAIN)
            shape = self.shape()
            self._check_words(shape)
            sizes = self.scope.sizes | size_names(shape)  # normal(0, 1/sqrt(n)) may use them
            self.scope = replace(self.scope, sizes=sizes)
            self.known = self.scope.known
            self.take("~")  # x: n ~ normal(0, 1)
            kinds = self.kinds()
            if not shape and not scalar:
                shape = drawn_shape(kinds, self.scope)
        group = []
        for name in names:
            given = Given(name=name, shape=shape, kinds=kinds, line=line)
            says_nothing = not shape and all(kind.name in ("integer", "positive", "nonzero") for kind in kinds)
            if name in self.scope.sizes and (says_nothing or name in self.scope.locked):
                continue  # `given n: integer` for a size
            if name in size_names(shape):
                raise Refusal(
                    f"{name} cannot be a size of its own shape; choose another name", code="size-of-its-own-shape"
                )
            self.learn(given)
            group.append(given)
        return group

    def _unknown_functions(self, names: list[str], line: int) -> list[Given]:
        """Any smooth function: a family with coefficients that are drawn like any given."""
        found = []
        for name in names:
            coefficients = Given(name=f"{name}~", shape=(Size.of(7),), kinds=(), line=line)
            self.learn(coefficients)
            functions = {**self.scope.functions, name: unknown_function(coefficients.name)}
            self.scope = replace(self.scope, functions=functions)
            found.append(coefficients)
        return found

    def _check_words(self, shape: Shape) -> None:
        """Refuse a misspelt kind that would pass for a size: `given x: postive`."""
        if shape and self.next.text == "(" and "N" in shape[-1].names:
            raise self.error("some read N(m, v) with a variance; write normal(mean, standard deviation)")
        for size in size_names(shape) - self.scope.known:
            if size in ("vector", "matrix", "array"):
                raise self.error(f"{size} has sizes: write `given x: n` for a vector, `given A: n, m` for a matrix")
            close = difflib.get_close_matches(size, KIND_WORDS, n=1, cutoff=0.8)
            if close and len(size) > 4:
                raise self.error(f"there is no kind {size!r}; did you mean {close[0]!r}?")

    def new_name(self) -> str:
        """A name to define."""
        token = self.next
        if token.kind != "name":
            raise self.error("a name is expected here")
        if token.text in RESERVED:
            raise self.error(f"{token.text} is a word of the language; choose another name")
        self.at += 1
        return token.text

    def kinds(self) -> tuple[Kind, ...]:
        """Kind words, separated by spaces."""
        found: list[Kind] = []
        while self.next.kind == "name" and self.next.text not in self.stops:
            token = self.next
            if token.text not in KIND_WORDS:
                raise refusal(token, f"there is no kind {token.text!r}; {nearest(token.text, KIND_WORDS)}")
            self.at += 1
            found.append(self._kind(token))
        names = [kind.name for kind in found]
        if len(set(names)) < len(names):
            raise Refusal("a kind is named twice", code="kind-twice")
        if "definite" in names:  # `positive definite` says nothing of the entries
            rest = [kind for kind in found if kind.name not in ("positive", "symmetric")]
            return (*rest, Kind("symmetric", (), ()))
        return tuple(found)

    def _kind(self, token: Token) -> Kind:
        name = token.text
        arguments: tuple[Node, ...] = ()
        outcomes: tuple[tuple[Node, Node | None], ...] = ()
        if name in DISTRIBUTIONS and self.take("("):
            arguments, _ = self._arguments(")", f"{name}(...)")
        elif name in ("uniform", "finite") and self.take("{"):
            outcomes = self._outcomes(name)
        record = DISTRIBUTIONS.get(name)
        empty = name in ("uniform", "finite") and not arguments and not outcomes
        if record is not None and (empty or len(arguments) not in record.arguments):
            wanted = " or ".join(map(str, record.arguments))
            raise refusal(token, f"{name} takes {wanted} arguments, not {len(arguments)}; write {record.written}")
        return Kind(name, arguments, outcomes)

    def _outcomes(self, name: str) -> tuple[tuple[Node, Node | None], ...]:
        outcomes: list[tuple[Node, Node | None]] = []
        while self.next.text != "}":
            value = self.sum_of_products()
            weight = self.sum_of_products() if self.take(":") else None
            if (weight is None) == (name == "finite"):
                raise self.error("write uniform{1, 2, 3} for equally likely values, finite{1: 1/3, 2: 2/3} for others")
            outcomes.append((value, weight))
            if not self.take(","):
                break
        self.expect("}", "to close the values")
        return tuple(outcomes)

    def let(self) -> Let | None:
        """name = value, or f(x) = value, h[0] = value, h[t] = value; None where that is no value yet."""
        self._entry_by_letters()
        line, name = self.next.line, self.new_name()
        if self.next.text == "(":
            self._function(name)
            return None
        letters = self._places(name)
        self.expect("=", f"after let {name}")
        if letters == ["0"]:
            start = shallow(self.expression())
            self.end()
            if start.free_letters:
                raise Refusal(f"{name}[0] is one row; no letter stands in it", code="letter-in-first-row")
            self.scope = replace(self.scope, starts={**self.scope.starts, name: start})
            return None
        start_row = self._start(name) if letters else None
        if start_row is not None:
            self.known = self.scope.known | {name}
        value = shallow(self.expression())
        self.end()
        if start_row is not None:
            value = self._recursion(name, letters, start_row, value)
        elif letters:
            (value,) = self.tabled([value])
            if not isinstance(value, Table) or [letter.name for letter, _ in value.letters] != sorted(letters):
                raise Refusal(
                    f"write {name}[{', '.join(letters)}] with the letters that stand on the right",
                    code="letters-differ",
                )
            order = [[letter.name for letter, _ in value.letters].index(letter) for letter in letters]
            value = replace(value, letters=tuple(value.letters[k] for k in order))
        return Let(name=name, value=value, line=line)

    def _entry_by_letters(self) -> None:
        """Make p[i] of p_i, where i is a letter of the right side."""
        base, _, letters = self.next.text.partition("_")
        mentioned = {token.text for token in self.tokens if token.kind == "name"}.difference(self.known)
        if letters and set(letters) <= {*self.letters, *mentioned} and self.next.text not in self.known:
            self.tokens = entries(self.tokens, {*self.known, base})

    def _places(self, name: str) -> list[str]:
        """The letters of let p[i] = ..., or 0."""
        found: list[str] = []
        if self.take("["):
            while self.next.kind in ("name", "number"):
                found.append(self.next.text)
                self.at += 1
                if not self.take(","):
                    break
            self.expect("]", f"after the letters of {name}")
            self.letters |= dict.fromkeys((letter for letter in found if not letter.isdigit()), 1)
        return found

    def _start(self, name: str) -> Node | None:
        """h[0], or a name h_0 where h stands on the right side of its own definition."""
        pairs = zip(self.tokens[self.at :], self.tokens[self.at + 1 :], strict=False)
        if f"{name}_0" in self.scope.definitions and any(a.text == name and b.text == "[" for a, b in pairs):
            return self.scope.starts.get(name, Name(f"{name}_0"))
        return self.scope.starts.get(name)

    def _recursion(self, name: str, letters: list[str], start: Node, value: Node) -> Node:
        (letter,) = letters if len(letters) == 1 else ("",)
        witness = witness_of(value, letter, besides=[name])
        if not letter or witness is None:
            raise Refusal(
                f"write let {name}[t] = ... with an array that has a row for every t, as in x[t]",
                code="recursion-not-over-rows",
            )
        rows = f"{name}#"  # the rows so far; the name itself is all of them
        return Recursion(rename(value, name, rows), rows, start, Letter(letter), witness)

    def _function(self, name: str) -> None:
        """f(x, y) = value: written out wherever it is called."""
        self.expect("(", "")
        parameters: list[str] = []
        while True:
            parameters.append(self.new_name())
            if not self.take(","):
                break
        self.expect(")", f"after the arguments of {name}")
        self.expect("=", f"after let {name}(...)")
        hidden = {parameter: f"{parameter}~" for parameter in parameters}
        self.tokens = [replace(t, text=hidden.get(t.text, t.text)) if t.kind == "name" else t for t in self.tokens]
        self.known = self.scope.known | set(hidden.values())
        value = shallow(self.expression())
        self.end()
        macro = Macro(tuple(hidden.values()), value)
        self.scope = replace(self.scope, functions={**self.scope.functions, name: macro})

    def end(self) -> None:
        """Refuse anything left over."""
        if self.next.kind != "end":
            raise self.error("the statement should end here")

    def where(self) -> tuple[Condition, ...]:
        """The conditions of a where clause; its givens and lets enter the scope, also those behind a condition."""
        conditions: list[Condition] = []
        self.stops = ("where", "and")
        waiting: tuple[int, Refusal] | None = None  # a condition on what is named behind it
        while True:
            if self._is_given_item():
                self.given_group()
            elif self.next.kind == "name" and self.peek(1).text == "=" and self.next.text not in self.known:
                name = self.new_name()
                self.at += 1
                self.learn(Let(name=name, value=shallow(self.sum_of_products()), line=self.next.line))
            elif self._says_what_a_given_is():
                name = self.next.text
                self.at += 2
                value = shallow(self.sum_of_products())
                given = self.scope.definitions[name]
                self.scope = self.scope.determined(Let(name=name, value=value, line=self.next.line))
                if isinstance(given, Given) and {kind.name for kind in given.kinds} & {"positive"}:
                    conditions.append(Condition(left=Name(name), relation=">", right=number(0)))
            else:
                start = self.at
                try:
                    conditions += self._conditions()
                except Refusal as error:
                    if waiting or not self._skipped(start):
                        raise
                    waiting = start, error
            if not self.take(",", "and"):
                break
        self.end()
        if waiting:
            end, self.at = self.at, waiting[0]
            conditions += self._conditions()
            if self.next.text not in (",", "and"):
                raise waiting[1]
            self.at = end
        return tuple(conditions)

    def _says_what_a_given_is(self) -> bool:
        """Whether `a = b + 1` follows, with a given that is not random and has no kind but a sign."""
        given = self.scope.definitions.get(self.next.text)
        plain = isinstance(given, Given) and {kind.name for kind in given.kinds} <= {"positive", "nonzero"}
        return (
            plain and self.next.kind == "name" and self.peek(1).text in ("=", "==") and not self.scope.is_locked(given)
        )

    def _skipped(self, start: int) -> bool:
        """Go to the end of the item that starts here; whether another one follows."""
        self.at, depth = start, 0
        while self.next.kind != "end" and (depth or self.next.text not in (",", "and")):
            depth += self.next.nesting
            self.at += 1
        return self.next.kind != "end"

    def _is_given_item(self) -> bool:
        ahead = 0
        while self.peek(ahead).kind == "name" and self.peek(ahead + 1).text == ",":
            ahead += 2
        return self.peek(ahead).kind == "name" and self.peek(ahead + 1).text in (":", "~")

    def _conditions(self) -> list[Condition]:
        """x > 0, or a chain such as 0 <= x <= 1."""
        found = [self._condition(self.sum_of_products())]
        while self.next.text in CONDITIONS:
            found.append(self._condition(found[-1].right))
        return found

    def _condition(self, left: Node) -> Condition:
        token = self.next
        if token.text in ("=", "=="):
            raise self.error(
                "an equality in a where clause says what a name is, like `where t = a + b`; solve this one for a name"
            )
        if not self.take(*CONDITIONS):
            raise self.error("a where clause holds `name: shape kind`, `name = value` or a condition like x > 0")
        return Condition(left=left, relation=token.text, right=self.sum_of_products())

    def steps(self, masks: Sequence[Condition] = ()) -> tuple[Step, ...]:
        """Expressions tied by relations; entries that a mask leaves out are set so that the relation holds there."""
        values: list[Node] = []
        signs: list[tuple[str, int]] = []
        texts: list[str] = []
        relation, line = "", self.next.line
        while True:
            start = self.at
            values.append(shallow(self.sum_of_products()))
            signs.append((relation, line))
            texts.append(source(self.tokens[start : self.at]))
            if self.next.text == "!=":
                raise self.error("a claim says ==, <=, >=, < or >")
            token = self.take(*RELATIONS)
            if token is None:
                break
            relation, line = ("==" if token.text == "=" else token.text), token.line
        self.end()
        bounds = any(sign not in ("", "==") for sign, _ in signs)
        if masks and len({sign for sign, _ in signs}) > 2:
            raise Refusal(
                "a condition on indices goes with one relation; write one claim for each", code="condition-beside-chain"
            )
        values = [_masked(value, masks, i, signs[-1][0]) for i, value in enumerate(values)]
        sides = zip(signs, self.tabled(values, bounds), texts, strict=True)
        return tuple(
            Step(relation=relation, value=value, line=line, text=text) for (relation, line), value, text in sides
        )

    def conditions(self) -> tuple[Condition, ...]:
        """What follows assume: conditions, separated by commas or `and`."""
        self.stops = ("where", "and")
        found: list[Condition] = []
        while True:
            found += self._conditions()
            if not self.take(",", "and"):
                break
        self.end()
        sides = [self.tabled([condition.left, condition.right], bounds=True) for condition in found]
        return tuple(replace(c, left=left, right=right) for c, (left, right) in zip(found, sides, strict=True))


def _masked(value: Node, masks: Sequence[Condition], place: int, relation: str) -> Node:
    """A side of a claim where the masks hold; elsewhere 0, or 1 on the larger side of a bound, which is far from broken."""
    larger = relation in (("<", "<=") if place else (">", ">="))
    for mask in masks:
        value = call("where", Compare(mask.relation, mask.left, mask.right), value, number(int(larger)))
    return value


def source(tokens: Sequence[Token]) -> str:
    """The tokens as they were written, spaces reduced to one."""
    parts = [("" if token.glued else " ") + token.text for token in tokens]
    return "".join(parts).strip()
