"""Text to statements: given, let, claim and derive, each with the names it can see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lmlab.config import nearest
from lmlab.prove.expressions import (
    RELATIONS,
    ExpressionParser,
    constant_value,
    shallow,
    sizes_in_builders,
    splits_claim,
)
from lmlab.prove.functions import DISTRIBUTIONS, KIND_WORDS, KINDS
from lmlab.prove.lexer import KEYWORDS, RawStatement, Token, split_statements, tokenize
from lmlab.prove.limits import MAX_LITERAL_SIZE, MAX_RANK, Refusal
from lmlab.prove.sizes import ONE, Shape, Size
from lmlab.prove.syntax import (
    Claim,
    Condition,
    Derivative,
    Expectation,
    Given,
    Index,
    Kind,
    Let,
    Mistake,
    Name,
    Node,
    Slice,
    Step,
)

Definition = Given | Let
RESERVED = frozenset(KEYWORDS) | {"where", "True", "False"} | KIND_WORDS


@dataclass(frozen=True)
class Scope:
    """The names a statement can use: definitions in order, and the sizes that occur in shapes."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    sizes: frozenset[str] = frozenset()
    conditions: tuple[Condition, ...] = ()
    locked: frozenset[str] = frozenset()  # names that keep their definition, as those of a grading key do

    @property
    def known(self) -> set[str]:
        """Everything that may be written in an expression."""
        return set(self.definitions) | self.sizes

    def define(self, definition: Definition) -> Scope:
        """A scope with one more name. A name defined again hides the old one, which older lets go on using."""
        definitions = dict(self.definitions)
        name = definition.name
        if name in self.locked:
            return self
        if name in self.sizes:
            return self._hide_size(name, definition.line).define(definition)
        if name in definitions:
            hidden = f"{name}#{definitions[name].line}"
            definitions = {hidden if k == name else k: _renamed(v, name, hidden) for k, v in definitions.items()}
        definitions[name] = definition
        sizes = self.sizes
        if isinstance(definition, Given):
            sizes |= {size for axis in definition.shape for size in axis.names}
        return replace(self, definitions=definitions, sizes=sizes)

    def _hide_size(self, name: str, line: int) -> Scope:
        """The scope with a size renamed, because a given or let takes its name from here on."""
        hidden = f"{name}#{line}"
        definitions = {}
        for key, definition in self.definitions.items():
            renamed = _renamed(definition, name, hidden)
            if isinstance(renamed, Given):
                renamed = replace(renamed, shape=tuple(axis.renamed(name, hidden) for axis in renamed.shape))
            definitions[key] = renamed
        return replace(self, definitions=definitions, sizes=self.sizes - {name} | {hidden})


@dataclass(frozen=True)
class ScopedClaim:
    """A claim with everything it can see."""

    claim: Claim
    scope: Scope


@dataclass(frozen=True)
class Sheet:
    """A parsed text: its claims and its mistakes in the order of the lines, and the final scope."""

    entries: tuple[ScopedClaim | Mistake, ...]
    scope: Scope
    notes: tuple[str, ...] = ()


def rename(node: Node, old: str, new: str) -> Node:
    """The expression with one name replaced by another."""
    if isinstance(node, Name):
        return replace(node, name=new) if node.name == old else node
    inner = tuple(rename(child, old, new) for child in node.children())
    if isinstance(node, Derivative):
        node = replace(node, by=tuple(new if name == old else name for name in node.by))
    elif isinstance(node, Expectation):
        node = replace(node, fixed=tuple(new if name == old else name for name in node.fixed))
    elif isinstance(node, Index):
        node = replace(node, items=tuple(_renamed_item(item, old, new) for item in node.items))
    return node.rebuild(inner) if inner else node


def _renamed_item(item: Node | Slice, old: str, new: str) -> Node | Slice:
    if isinstance(item, Slice):
        bounds = [None if bound is None else rename(bound, old, new) for bound in (item.start, item.stop)]
        return Slice(*bounds)
    return rename(item, old, new)


def _renamed(definition: Definition, old: str, new: str) -> Definition:
    if isinstance(definition, Let):
        name = new if definition.name == old else definition.name
        return replace(definition, name=name, value=rename(definition.value, old, new))
    kinds = tuple(_renamed_kind(kind, old, new) for kind in definition.kinds)
    return replace(definition, name=new if definition.name == old else definition.name, kinds=kinds)


def _renamed_kind(kind: Kind, old: str, new: str) -> Kind:
    outcomes = tuple((rename(v, old, new), None if w is None else rename(w, old, new)) for v, w in kind.outcomes)
    return replace(kind, arguments=tuple(rename(a, old, new) for a in kind.arguments), outcomes=outcomes)


class StatementParser(ExpressionParser):
    """Parses the part of a statement that follows its keyword."""

    def __init__(self, tokens: Sequence[Token], scope: Scope, text: str) -> None:
        super().__init__(tokens, scope.known)
        self.scope = scope
        self.text = text

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
        while self.next.text == "," and self.peek(1).kind == "name" and self.peek(2).text in (",", ":", ""):
            self.at += 1
            names.append(self.new_name())
        shape: Shape = ()
        kinds: tuple[Kind, ...] = ()
        if self.take(":"):
            shape = self.shape()
            kinds = self.kinds()
        group = []
        for name in names:
            given = Given(name=name, shape=shape, kinds=kinds, line=line, text=self.text)
            says_nothing = not shape and all(kind.name in ("integer", "positive", "nonzero") for kind in kinds)
            if name in self.scope.sizes and (says_nothing or name in self.scope.locked):
                continue  # `given n: integer` for a size
            if any(name in axis.names for axis in shape):
                raise Refusal(f"{name} cannot be a size of its own shape; choose another name")
            self.learn(given)
            group.append(given)
        return group

    def new_name(self) -> str:
        """A name to define."""
        token = self.next
        if token.kind != "name":
            raise self.error("a name is expected here")
        if token.text in RESERVED:
            raise self.error(f"{token.text} is a word of the language; choose another name")
        self.at += 1
        return token.text

    def shape(self) -> Shape:
        """Sizes separated by commas, possibly in brackets; none for a scalar."""
        bracket = self.take("(")
        axes: list[Size] = []
        while self.next.kind in ("name", "number", "symbol") and self.next.text not in KIND_WORDS | {",", ")"}:
            start = self.at
            if axes and not bracket and self._starts_item():
                self.at = start - 1
                break
            axis = self.size()
            if axes and not bracket and self.next.text in RELATIONS:
                self.at = start - 1  # a condition of a where clause, not a size
                break
            self._check_axis(axis)
            axes.append(axis)
            if not self.take(","):
                break
        if bracket:
            self.expect(")", "to close the shape")
        if len(axes) > MAX_RANK:
            raise Refusal(f"a shape has at most {MAX_RANK} axes, not {len(axes)}")
        return tuple(axes)

    def _starts_item(self) -> bool:
        """Whether a new `name:` or `name =` follows, rather than one more size."""
        return self.next.kind == "name" and self.peek(1).text in (":", "=")

    def _check_axis(self, axis: Size) -> None:
        if axis.number is not None and not 1 <= axis.number <= MAX_LITERAL_SIZE:
            raise Refusal(
                f"the size {axis} is not allowed; a size written as a number is 1 to {MAX_LITERAL_SIZE}, any other is a name"
            )
        if any(abs(count) > MAX_LITERAL_SIZE or len(monomial) > 4 for monomial, count in axis.terms):
            raise Refusal(f"the size {axis} is too large; use a name for it")

    def size(self) -> Size:
        """A size: numbers and names with + - and *."""
        total = self._size_product()
        while token := self.take("+", "-"):
            term = self._size_product()
            total = total + (term if token.text == "+" else -term)
        return total

    def _size_product(self) -> Size:
        product = self._size_atom()
        while self.take("*"):
            product = product * self._size_atom()
        return product

    def _size_atom(self) -> Size:
        token = self.next
        if self.take("("):
            self._deeper()
            inner = self.size()
            self.depth -= 1
            self.expect(")", "to close the bracket")
            return inner
        if token.kind == "number":
            if not token.text.isdigit() or len(token.text) > 20:
                raise self.error(f"a size is a whole number up to {MAX_LITERAL_SIZE} or a name")
            self.at += 1
            return Size.of(int(token.text))
        if token.kind != "name" or token.text in RESERVED:
            raise self.error("a size is a name or a whole number")
        self.at += 1
        return self._size_name(token)

    def _size_name(self, token: Token) -> Size:
        """A name as a size. A scalar given becomes a size; a let of a whole number is that number."""
        definition = self.scope.definitions.get(token.text)
        if isinstance(definition, Let):
            value = constant_value(definition.value)
            if value is None or value.denominator != 1:
                raise Refusal(
                    f"column {token.column}: {token.text} is a let; a size is a name of its own or a whole number"
                )
            return Size.of(int(value))
        if isinstance(definition, Given):
            if definition.shape:
                raise Refusal(
                    f"column {token.column}: {token.text} is an array; a size is a name of its own or a whole number"
                )
            rest = {k: v for k, v in self.scope.definitions.items() if k != token.text}
            self.scope = replace(self.scope, definitions=rest, sizes=self.scope.sizes | {token.text})
        return Size.of(token.text)

    def kinds(self) -> tuple[Kind, ...]:
        """Kind words, separated by spaces."""
        found: list[Kind] = []
        while self.next.kind == "name" and self.next.text not in ("where",):
            token = self.next
            if token.text not in KIND_WORDS:
                raise Refusal(
                    f"column {token.column}: there is no kind {token.text!r}; {nearest(token.text, KIND_WORDS)}"
                )
            self.at += 1
            found.append(self._kind(token))
        names = [kind.name for kind in found]
        if len(set(names)) < len(names):
            raise Refusal("a kind is named twice")
        return tuple(found)

    def _kind(self, token: Token) -> Kind:
        name = token.text
        arguments: tuple[Node, ...] = ()
        outcomes: tuple[tuple[Node, Node | None], ...] = ()
        if name in DISTRIBUTIONS and self.take("("):
            arguments, _ = self._arguments(")", f"{name}(...)")
        elif name in ("uniform", "finite") and self.take("{"):
            outcomes = self._outcomes(name)
        allowed = DISTRIBUTIONS.get(name, (0,))
        if len(arguments) not in allowed:
            raise Refusal(
                f"column {token.column}: {name} takes {' or '.join(map(str, allowed))} arguments, not {len(arguments)}"
            )
        if name == "normal" and len(arguments) != 2:
            raise Refusal(f"column {token.column}: write normal(mean, standard deviation)")
        if name in ("uniform", "finite") and not arguments and not outcomes:
            raise Refusal(f"column {token.column}: write uniform{{1, 2, 3}}, uniform(a, b) or finite{{1: 1/3, 2: 2/3}}")
        assert name in KINDS or name in DISTRIBUTIONS
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

    def let(self) -> Let:
        """name = value."""
        line, name = self.next.line, self.new_name()
        self.expect("=", f"after let {name}")
        value = shallow(self.expression())
        self.end()
        return Let(name=name, value=value, line=line, text=self.text)

    def end(self) -> None:
        """Refuse anything left over."""
        if self.next.kind != "end":
            raise self.error("the statement should end here")

    def where(self) -> tuple[Given | Let | Condition, ...]:
        """The items of a where clause: givens, lets and conditions."""
        items: list[Given | Let | Condition] = []
        while True:
            if self._is_given_item():
                items += self.given_group()
            elif self.next.kind == "name" and self.peek(1).text == "=" and self.next.text not in self.known:
                name = self.new_name()
                self.at += 1
                let = Let(name=name, value=shallow(self.sum_of_products()), line=self.next.line, text=self.text)
                self.learn(let)
                items.append(let)
            else:
                items.append(self._condition())
            if not self.take(","):
                break
        self.end()
        return tuple(items)

    def _is_given_item(self) -> bool:
        ahead = 0
        while self.peek(ahead).kind == "name" and self.peek(ahead + 1).text == ",":
            ahead += 2
        return self.peek(ahead).kind == "name" and self.peek(ahead + 1).text == ":"

    def _condition(self) -> Condition:
        left = self.sum_of_products()
        token = self.next
        if token.text in ("=", "=="):
            raise self.error(
                "an equality in a where clause names something new, like `where t = a + b`; conditions use < > <= >="
            )
        if not self.take("<", ">", "<=", ">="):
            raise self.error("a where clause holds `name: shape kind`, `name = value` or a condition like x > 0")
        return Condition(left=left, relation=token.text, right=self.sum_of_products())

    def steps(self) -> tuple[Step, ...]:
        """Expressions tied by relations."""
        steps: list[Step] = []
        relation, line = "", self.next.line
        while True:
            first = self.at
            value = shallow(self.sum_of_products())
            text = _source(self.tokens[first : self.at])
            steps.append(Step(relation=relation, value=value, line=line, text=text))
            if self.next.text == "!=":
                raise self.error("a claim says ==, <=, >=, < or >")
            token = self.take(*RELATIONS)
            if token is None:
                break
            relation, line = ("==" if token.text == "=" else token.text), token.line
        self.end()
        return tuple(steps)


def _source(tokens: Sequence[Token]) -> str:
    """The tokens as they were written, spaces reduced to one."""
    parts = [("" if token.glued else " ") + token.text for token in tokens]
    return "".join(parts).strip()


def parse_claim(raw: RawStatement, tokens: list[Token], scope: Scope) -> ScopedClaim:
    """claim or derive: the where clause is read first, since the sides use its names."""
    keyword, body = tokens[0].text, tokens[1:]
    depth, cut = 0, len(body) - 1
    for i, token in enumerate(body):
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth == 0 and splits_claim(body, i):
            cut = i
            break
    stop = _next_step(body, cut) if cut < len(body) - 1 else len(body) - 1
    end = body[-1]
    where: tuple[Given | Let | Condition, ...] = ()
    if cut < len(body) - 1:
        reader = StatementParser([*body[cut + 1 : stop], end], scope, raw.text)
        where = reader.where()
        scope = reader.scope
    conditions = tuple(item for item in where if isinstance(item, Condition))
    scope = replace(scope, conditions=scope.conditions + conditions)
    scope = replace(scope, sizes=scope.sizes | sizes_in_builders(body, scope.known))
    sides = StatementParser([*body[:cut], *body[stop:]], scope, raw.text).steps()
    if len(sides) < 2:
        wanted = (
            "steps on lines of their own, each starting with ="
            if keyword == "derive"
            else "a relation: ==, <=, >=, < or >"
        )
        raise Refusal(f"the {keyword} has only one side; it needs {wanted}")
    text = f"{keyword} " + _source(body[:cut] + body[stop:-1])
    claim = Claim(steps=sides, where=where, line=raw.line, text=text, derive=keyword == "derive")
    return ScopedClaim(claim, scope)


def _next_step(body: Sequence[Token], cut: int) -> int:
    """Where the steps of a derivation go on after a where clause on its first line."""
    for i in range(cut + 1, len(body) - 1):
        if body[i].text in RELATIONS and body[i].line != body[i - 1].line:
            return i
    return len(body) - 1


def parse(text: str, scope: Scope | None = None, locked: frozenset[str] = frozenset()) -> Sheet:
    """Parse a whole text. A statement that is not understood becomes a `Mistake`; the rest is still read.

    `scope` holds definitions from before, such as the setting that a grading key lays down; the `locked` ones among
    them stay what they are, and a statement that would change one is noted.
    """
    scope = replace(scope or Scope(), locked=locked)
    entries: list[ScopedClaim | Mistake] = []
    notes: list[str] = []
    broken: dict[str, int] = {}
    for raw in split_statements(text):
        name: str | None = None
        try:
            tokens = tokenize(raw)
            keyword = tokens[0].text
            if keyword not in KEYWORDS:
                raise Refusal(f"a statement starts with {', '.join(KEYWORDS)}; {keyword!r} does not")
            name = tokens[1].text if keyword in ("given", "let") else None
            if keyword in ("given", "let"):
                scope = _define(keyword, tokens, raw, scope, notes)
            else:
                entries.append(parse_claim(raw, tokens, scope))
        except Refusal as refusal:
            reason = _blame(str(refusal), broken)
            entries.append(Mistake(line=raw.line, text=raw.text, reason=reason, name=name))
            if name:
                broken[name] = raw.line
    return Sheet(tuple(entries), scope, tuple(notes))


def _define(keyword: str, tokens: list[Token], raw: RawStatement, scope: Scope, notes: list[str]) -> Scope:
    """The scope after a given or a let."""
    if keyword == "given":
        reader = StatementParser(tokens[1:], scope, raw.text)
        for given in reader.givens():
            old = scope.definitions.get(given.name)
            same = isinstance(old, Given) and (old.shape, old.kinds) == (given.shape, given.kinds)
            if given.name in scope.locked and not same:
                notes.append(f"line {raw.line} defines {given.name} anew; the key's definition is used")
        return reader.scope
    wider = replace(scope, sizes=scope.sizes | sizes_in_builders(tokens, scope.known))
    let = StatementParser(tokens[1:], wider, raw.text).let()
    if let.name in scope.locked:
        old = scope.definitions.get(let.name)
        if not isinstance(old, Let) or old.value != let.value:
            notes.append(f"line {raw.line} defines {let.name} anew; the key's definition is used")
        return scope
    return wider.define(let)


def _blame(reason: str, broken: dict[str, int]) -> str:
    """Point at the broken definition when a missing name comes from one."""
    for name, line in broken.items():
        if f" {name} is not defined" in reason:
            return f"{name} is not defined, because line {line} is not understood"
    return reason


__all__ = ["ONE", "Scope", "ScopedClaim", "Sheet", "parse"]
