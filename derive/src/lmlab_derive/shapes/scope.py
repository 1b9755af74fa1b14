"""The names a statement can see, and what happens when one is defined again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from lmlab_derive.limits import Refusal
from lmlab_derive.sizes import size_names
from lmlab_derive.small_formulas import call, number, plus, times
from lmlab_derive.tree import (
    Condition,
    Derivative,
    Expectation,
    Given,
    Index,
    Kind,
    Let,
    Name,
    Node,
    Over,
    Recursion,
    Slice,
    Table,
    Witness,
    names_in,
)

W = TypeVar("W", Witness, "Witness | None")

Definition = Given | Let


@dataclass(frozen=True)
class Macro:
    """let f(x, y) = value. `unknown`: f is any smooth function, tried as many of them with coefficients drawn at random."""

    parameters: tuple[str, ...]
    value: Node
    unknown: bool = False


def unknown_function(coefficients: str) -> Macro:
    """a + b x + c tanh(d x + e) + f sin(x + g): smooth, and of no special form."""
    x = Name("x~")
    a, b, c, d, e, f, g = (Index(Name(coefficients), (number(k),)) for k in range(7))
    bent = times(c, call("tanh", plus(times(d, x), e)))
    return Macro((x.name,), plus(plus(a, times(b, x)), plus(bent, times(f, call("sin", plus(x, g))))), unknown=True)


@dataclass(frozen=True)
class Scope:
    """The names a statement can use: definitions in order, and the sizes that occur in shapes."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    sizes: frozenset[str] = frozenset()
    conditions: tuple[Condition, ...] = ()
    functions: dict[str, Macro] = field(default_factory=dict)
    starts: dict[str, Node] = field(default_factory=dict)  # h[0] of recursions that are still to come
    locked: frozenset[str] = frozenset()  # names that keep their definition, as those of a grading key do

    @property
    def known(self) -> set[str]:
        """Everything that may be written in an expression."""
        return set(self.definitions) | self.sizes

    @property
    def recursive(self) -> set[str]:
        """Lets that are defined step by step: they have a row more than there are steps."""
        lets = {name: let for name, let in self.definitions.items() if isinstance(let, Let)}
        return {name for name, let in lets.items() if isinstance(let.value, Recursion)}

    def behind(self, name: str) -> set[str]:
        """The names that a let is made of, through other lets too; none for a given."""
        found: set[str] = set()
        pending = {name}
        while pending:
            definition = self.definitions.get(pending.pop())
            if isinstance(definition, Let):
                pending |= names_in(definition.value) - found
                found |= pending
        return found

    def is_locked(self, definition: Definition | None) -> bool:
        """Whether a definition is that of a grading key, which stays what it is."""
        return definition is not None and definition.name in self.locked

    def determined(self, let: Let) -> Scope:
        """The scope in which a given is no longer free: it is what the let says, and all that depends on it follows."""
        _refuse_letters(let)
        after = [name for name in self.definitions if let.name in self.behind(name)]
        wanted = names_in(let.value)
        if let.name in wanted or wanted & set(after):
            raise Refusal(
                f"{let.name} would be defined by itself; solve the equality for one name", code="given-by-itself"
            )
        before = {name: d for name, d in self.definitions.items() if name not in after and name != let.name}
        return replace(self, definitions=before | {let.name: let} | {name: self.definitions[name] for name in after})

    def define(self, definition: Definition) -> Scope:
        """A scope with one more name. A name defined again hides the old one, which older lets go on using."""
        definitions = dict(self.definitions)
        name = definition.name
        _refuse_letters(definition)
        if name in self.locked:
            return self
        if name in self.sizes:
            return self._hide_size(name, definition.line).define(definition)
        if name in definitions:
            hidden = f"{name}#{definitions[name].line}"
            definitions = {hidden if k == name else k: _renamed(v, name, hidden) for k, v in definitions.items()}
            definition = replace(_renamed(definition, name, hidden), name=name)  # let y = y + 1 means the old y
        definitions[name] = definition
        sizes = self.sizes
        if isinstance(definition, Given):
            sizes |= size_names(definition.shape)
        functions = self.functions
        if name in self.definitions:
            functions = {k: replace(f, value=rename(f.value, name, hidden)) for k, f in functions.items()}
        return replace(self, definitions=definitions, sizes=sizes, functions=functions)

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


def _refuse_letters(definition: Definition) -> None:
    """A letter has a value inside a claim alone: a definition has them all, in an array."""
    value = definition.value if isinstance(definition, Let) else None
    nodes = [node for kind in definition.kinds for node in kind.nodes] if isinstance(definition, Given) else [value]
    if letters := sorted({letter for node in nodes if node is not None for letter in node.free_letters}):
        by_entries = value is not None and not isinstance(value, Recursion)
        wanted = f"let {definition.name}[{', '.join(letters)}] = ..." if by_entries else "it with whole arrays"
        raise Refusal(
            f"{' and '.join(letters)} can be any position in what defines {definition.name}; write {wanted}",
            code="letters-without-place",
        )


def rename(node: Node, old: str, new: str) -> Node:
    """The expression with one name replaced by another."""
    if isinstance(node, Name):
        return replace(node, name=new) if node.name == old else node
    inner = tuple(rename(child, old, new) for child in node.children())
    if isinstance(node, Derivative):
        node = replace(node, by=tuple(new if name == old else name for name in node.by))
    elif isinstance(node, Expectation):
        node = replace(node, fixed=tuple(new if name == old else name for name in node.fixed))
    elif isinstance(node, Over):
        bounds = [None if bound is None else rename(bound, old, new) for bound in (node.start, node.stop)]
        node = replace(node, start=bounds[0], stop=bounds[1], witness=_renamed_witness(node.witness, old, new))
    elif isinstance(node, Table):
        letters = tuple((letter, _renamed_witness(witness, old, new)) for letter, witness in node.letters)
        node = replace(node, letters=letters)
    elif isinstance(node, Recursion):
        node = replace(
            node, name=new if node.name == old else node.name, witness=_renamed_witness(node.witness, old, new)
        )
    elif isinstance(node, Index):
        node = replace(node, items=tuple(_renamed_item(item, old, new) for item in node.items))
    return node.rebuild(inner)


def substituted(node: Node, values: dict[str, Node]) -> Node:
    """The expression with the parameters of a function replaced by what it is called with."""
    if isinstance(node, Name):
        return values.get(node.name, node)
    inner = tuple(substituted(child, values) for child in node.children())
    if isinstance(node, Index):
        items = tuple(item if isinstance(item, Slice) else substituted(item, values) for item in node.items)
        node = replace(node, items=items)
    return node.rebuild(inner)


def renamed_scope(scope: Scope, names: Mapping[str, str]) -> Scope:
    """The scope with names for others that it knows as well: what they are defined as is left to those."""
    definitions = {name: d for name, d in scope.definitions.items() if name not in names}
    conditions = scope.conditions
    for old, new in names.items():
        definitions = {name: _renamed(d, old, new) for name, d in definitions.items()}
        conditions = tuple(
            replace(c, left=rename(c.left, old, new), right=rename(c.right, old, new)) for c in conditions
        )
    return replace(scope, definitions=definitions, conditions=conditions, sizes=scope.sizes - set(names))


def _renamed_witness(witness: W, old: str, new: str) -> W:
    if witness is None:
        return witness
    less = _renamed_witness(witness.less, old, new)
    return replace(witness, operand=rename(witness.operand, old, new), less=less)


def _renamed_item(item: Node | Slice, old: str, new: str) -> Node | Slice:
    if isinstance(item, Slice):
        bounds = [None if bound is None else rename(bound, old, new) for bound in (item.start, item.stop)]
        return Slice(*bounds)
    return rename(item, old, new)


def _renamed(definition: Definition, old: str, new: str) -> Definition:
    name = new if definition.name == old else definition.name
    if isinstance(definition, Let):
        return replace(definition, name=name, value=rename(definition.value, old, new))
    return replace(definition, name=name, kinds=tuple(_renamed_kind(kind, old, new) for kind in definition.kinds))


def _renamed_kind(kind: Kind, old: str, new: str) -> Kind:
    outcomes = tuple((rename(v, old, new), None if w is None else rename(w, old, new)) for v, w in kind.outcomes)
    return replace(kind, arguments=tuple(rename(a, old, new) for a in kind.arguments), outcomes=outcomes)
