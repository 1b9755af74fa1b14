"""What a claim stands on: its givens, lets and sizes, their shapes, and which name depends on which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeVar

from lmlab_derive.distributions import DISTRIBUTIONS, Distribution, random_kind
from lmlab_derive.limits import Refusal
from lmlab_derive.shapes.infer import Shapes
from lmlab_derive.shapes.scope import Scope
from lmlab_derive.sizes import Shape, broadcast, shape_text, size_names
from lmlab_derive.tree import Condition, Derivative, Expectation, Given, Kind, Let, Name, Node, names_in, shown, walk

T = TypeVar("T")


@dataclass
class Setting:
    """A scope made ready for evaluation. A let whose shapes do not fit is remembered in `broken`, with the reason."""

    givens: dict[str, Given]
    lets: dict[str, Let]
    shapes: Shapes
    conditions: tuple[Condition, ...]
    uses: dict[str, frozenset[str]] = field(default_factory=dict)  # names a let depends on, through other lets too
    broken: dict[str, str] = field(default_factory=dict)
    opens: dict[str, frozenset[str]] = field(default_factory=dict)  # the `open_names` of a let
    counted: dict[int, tuple[Node, bool]] = field(default_factory=dict)  # by identity; the node is kept alive beside it
    slopes: dict[int, tuple[Node, bool]] = field(default_factory=dict)  # likewise
    found: dict[str, Any] = field(default_factory=dict)  # what others work out once of a setting, by what they call it

    def kept(self, what: str, work_out: Callable[[Setting], T]) -> T:
        """What is worked out of a setting, once."""
        if what not in self.found:
            self.found[what] = work_out(self)
        found: T = self.found[what]
        return found

    def shape(self, node: Node) -> Shape:
        """The shape of an expression; a Refusal also when it uses a broken let."""
        for name in sorted(names_in(node)):
            if name in self.broken:
                raise Refusal(self.broken[name], code="let-does-not-fit")
        return self.shapes.of(node)

    def is_counted(self, node: Node) -> bool:
        """Whether an expression has no axes and is made of indices, sizes and numbers alone."""
        found = self.counted.get(id(node))
        if found is None:
            found = self.counted[id(node)] = (node, names_in(node) <= self.shapes.sizes and not self.shape(node))
        return found[1]

    def differentiates(self, node: Node) -> bool:
        """Whether there are derivatives in an expression, or in the lets that it depends on. Asked at every point."""
        found = self.slopes.get(id(node))
        if found is None:
            found = self.slopes[id(node)] = (node, any(isinstance(n, Derivative) for n in self.opened(node)))
        return found[1]

    def depends(self, node: Node) -> frozenset[str]:
        """Every name the expression depends on, through lets; a mean depends on the parameters of what it averages."""
        found: frozenset[str] = frozenset()
        for name in names_in(node):
            found |= {name} | self.uses.get(name, frozenset())
        for inner in walk(node):
            if isinstance(inner, Expectation):
                for name in self.random_names(inner.operand) - set(inner.fixed):
                    found = found.union(*map(self.depends, self.family(name)[1].nodes))
        return found

    def opened(self, *nodes: Node) -> list[Node]:
        """Everything inside the expressions, and inside the lets that they depend on."""
        found = [inner for node in nodes for inner in walk(node)]
        used = frozenset[str]().union(*map(self.depends, nodes))
        return found + [inner for name in self.lets if name in used for inner in walk(self.lets[name].value)]

    def needed(self, nodes: list[Node]) -> tuple[list[str], list[str]]:
        """The givens, in order, and the sizes that must have values before these expressions do."""
        names: set[str] = set()
        for node in nodes:
            names |= self.depends(node)
        pending = [name for name in names if name in self.givens]
        while pending:
            for kind in self.givens[pending.pop()].kinds:
                for node in kind.nodes:
                    fresh = self.depends(node) - names
                    names |= fresh
                    pending += [name for name in fresh if name in self.givens]
        givens = [name for name in self.givens if name in names]
        shapes = [self.givens[name].shape for name in givens]
        shapes += [self.shapes.names.get(name, ()) for name in names & set(self.lets)]
        sizes = names & self.shapes.sizes | {size for shape in shapes for size in size_names(shape)}
        return givens, sorted(sizes)

    def kinds(self, name: str) -> set[str]:
        """The names of the kinds of a given; none for a let or a size."""
        return {kind.name for kind in self.givens[name].kinds} if name in self.givens else set()

    def distribution(self, name: str) -> Kind | None:
        """The kind that makes a given random, if it has one."""
        return random_kind(self.givens[name])

    def family(self, name: str) -> tuple[Distribution, Kind]:
        """The distribution of a random given, and how it was written."""
        kind = self.distribution(name)
        assert kind is not None
        return DISTRIBUTIONS[kind.name], kind

    def covaries(self, name: str) -> bool:
        """Whether a given is a normal vector with a covariance: its second argument is a matrix."""
        family, kind = self.family(name)
        return family.name == "normal" and len(self.givens[name].shape) < len(self.shapes.of(kind.arguments[1]))

    def random_names(self, node: Node) -> frozenset[str]:
        """The random givens an expression depends on, through lets and the parameters of other random givens."""
        found: set[str] = set()
        pending = [name for name in self.open_names(node) if name in self.givens]
        while pending:
            name = pending.pop()
            kind = self.distribution(name)
            if kind is None or name in found:
                continue
            found.add(name)
            for part in kind.nodes:
                pending += [n for n in self.depends(part) if n in self.givens]
        return frozenset(found)

    def open_names(self, node: Node) -> frozenset[str]:
        """Names that occur outside inner expectations (an inner expectation has averaged its own away)."""
        if isinstance(node, Expectation):
            return frozenset(node.fixed)
        if isinstance(node, Name):
            if node.name not in self.lets:
                return frozenset({node.name})
            if node.name not in self.opens:  # once for each let: lets of lets would double with every one
                self.opens[node.name] = self.open_names(self.lets[node.name].value)
            return self.opens[node.name]
        inner = [Name(name) for name in node.by] if isinstance(node, Derivative) else []
        return frozenset[str]().union(*map(self.open_names, [*inner, *node.children()]))


def build(scope: Scope) -> Setting:
    """Infer the shape of every definition and check that every kind fits its shape."""
    givens = {k: v for k, v in scope.definitions.items() if isinstance(v, Given)}
    lets = {k: v for k, v in scope.definitions.items() if isinstance(v, Let)}
    shapes = Shapes({k: v.shape for k, v in givens.items()}, scope.sizes, frozenset(scope.recursive))
    setting = Setting(givens, lets, shapes, scope.conditions)
    for name, definition in scope.definitions.items():
        try:
            if isinstance(definition, Let):
                setting.uses[name] = setting.depends(definition.value)
                shapes.names[name] = setting.shape(definition.value)
            else:
                _check_kinds(definition, setting)
        except Refusal as refusal:
            known = str(refusal) in setting.broken.values()
            setting.broken[name] = str(refusal) if known else f"line {definition.line}, {shown(name)}: {refusal}"
    return setting


def drawn_shape(kinds: tuple[Kind, ...], scope: Scope) -> Shape:
    """The shape of a random given for which none is written: that of its parameters together."""
    kind = next((kind for kind in kinds if kind.name in DISTRIBUTIONS), None)
    if kind is None or kind.name == "categorical" or not any(names_in(node) for node in kind.arguments):
        return ()
    setting = build(scope)
    shapes = [setting.shape(node) for node in kind.arguments]
    if kind.name == "normal" and len(shapes[0]) < 2 == len(shapes[1]) and shapes[1][0] == shapes[1][1]:
        shapes[1] = shapes[1][:1]  # a covariance
    return reduce(broadcast, shapes)


_SQUARE = ("definite", "symmetric", "permutation")
_CLASHES = [{"simplex", "onehot"}, {"orthogonal", "positive"}, {"orthogonal", "unit"}, {"fraction", "integer"}]
_CLASHES += [{"simplex", "integer"}, {"unit", "integer"}, {"unit", "simplex"}, {"unit", "fraction"}]


def _check_kinds(given: Given, setting: Setting) -> None:
    names, shape = {kind.name for kind in given.kinds}, given.shape
    if random_kind(given) and len(names) > 1:
        raise Refusal(
            f"{' '.join(sorted(names))}: a random given has one kind, its distribution", code="kinds-of-a-random-given"
        )
    for name in _SQUARE:
        if name in names and not (len(shape) == 2 and shape[0] == shape[1]):
            raise Refusal(
                f"a {name} given is a square matrix, not {shape_text(shape)}", code="kind-needs-square-matrix"
            )
    for name, beside in (("permutation", set[str]()), ("binary", {"symmetric"}), ("definite", {"symmetric"})):
        if name in names and len(names - beside) > 1:
            raise Refusal(f"{name} is a kind by itself", code="kind-by-itself")
    if "orthogonal" in names and len(shape) != 2:
        raise Refusal(f"an orthogonal given is a matrix, not {shape_text(shape)}", code="orthogonal-needs-matrix")
    for name, written in (("unit", ""), ("simplex", ""), ("onehot", ""), ("dirichlet", "(alpha)")):
        if name in names and not shape:
            raise Refusal(
                f"a {name} given is a vector or has rows; write its size, as in `given a: n {name}{written}`",
                code="kind-needs-vector",
            )
    for clash in _CLASHES:
        if clash <= names:
            raise Refusal(f"{' and '.join(sorted(clash))} do not go together", code="kinds-do-not-go-together")
    for kind in given.kinds:
        _check_arguments(given, kind, setting)


def _check_arguments(given: Given, kind: Kind, setting: Setting) -> None:
    """Parameters of a distribution broadcast to its given; probabilities line up with a row."""
    for node in kind.nodes:
        shape = setting.shape(node)
        if kind.name in ("categorical", "onehot"):
            if len(shape) != 1 or (kind.name == "onehot" and shape != given.shape[-1:]):
                wanted = "a vector of probabilities, one for each outcome"
                raise Refusal(
                    f"{kind.name}(p) needs {wanted}; p is {shape_text(shape)}", code="distribution-parameter-shape"
                )
        elif kind.name == "dirichlet" and shape != given.shape[-1:]:
            raise Refusal(
                f"dirichlet(alpha) needs a vector, one number for each entry; alpha is {shape_text(shape)}",
                code="dirichlet-parameter-shape",
            )
        elif shape == given.shape * 2 and len(shape) == 2 and kind.name == "normal" and node is kind.arguments[1]:
            continue  # a covariance
        elif shape not in ((), given.shape, given.shape[-1:]):
            misfit = f"{shape_text(shape)}, which does not fit {shape_text(given.shape)}"
            raise Refusal(f"a parameter of {kind.name} is {misfit}", code="distribution-parameter-random")
