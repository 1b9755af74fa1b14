"""What a repair may bring into a formula: chain factors of the functions in sight, names, sizes, and whole terms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import chain, product

from lmlab_derive.functions import FUNCTIONS
from lmlab_derive.hints.simplest import ShapeOf, simplest
from lmlab_derive.hints.slips import Edit, anew, edit, instead, paths, slips
from lmlab_derive.hints.throughout import axes_throughout, exchanges, replaced, turned_throughout
from lmlab_derive.sizes import Shape
from lmlab_derive.small_formulas import ONE, ZERO, call, minus, number, over, plus, power, times
from lmlab_derive.tree import (
    Binary,
    Call,
    Compare,
    Index,
    Letter,
    Name,
    Node,
    Number,
    Over,
    Table,
    Transpose,
    shown,
    walk,
)


@dataclass
class Pool:
    """Names in scope by shape, size names, and what the functions in sight give."""

    names: dict[str, Shape]
    sizes: list[str]
    slopes: dict[Node, tuple[str, Node]] = field(default_factory=dict)  # f'(u) -> (name of f, how f(u) is written)
    softmaxes: list[Node] = field(default_factory=list)
    values: dict[Node, list[Node]] = field(default_factory=dict)  # u -> every f(u) in sight
    parts: list[Node] = field(default_factory=list)  # every part of every formula
    products: list[Node] = field(default_factory=list)  # those that are matrix products, each once; the first few


def supplies(
    names: dict[str, Shape], sizes: list[str], formulas: list[tuple[Node, Node]], derived: frozenset[str]
) -> Pool:
    """Everything the formulas offer for repairs. Pairs: a formula, and how its value is written.

    Chain factors are those of the functions that the claim differentiates.
    """
    pool = Pool(names, sizes)
    for formula, written in formulas:
        for inner in walk(formula):
            pool.parts.append(inner)
            if isinstance(inner, Binary) and inner.op == "@" and inner not in pool.products and len(pool.products) < 8:
                pool.products.append(inner)
            if not isinstance(inner, Call):
                continue
            value = written if inner is formula else inner
            slope = FUNCTIONS[inner.function].slope if inner.function in derived else None
            if slope is not None and not isinstance(factor := slope(value, inner.args[0]), Number):
                pool.slopes.setdefault(factor, (inner.function, value))
            if inner.function == "softmax" and "softmax" in derived and value not in pool.softmaxes:
                pool.softmaxes.append(value)
            if len(inner.args) == 1:
                pool.values.setdefault(inner.args[0], []).append(value)
    return pool


RARE = 1.8  # what repairs by names that are missing cost at least


def everywhere(root: Node, pool: Pool, shape_of: ShapeOf, reshape: bool) -> Iterator[Edit]:
    """Every edit of the whole formula and of each part of it, with the way to that part.

    What is brought in must leave a part its shape, unless `reshape`: then the whole has the wrong shape as it is.
    """
    for path, node in paths(root):
        shape = shape_of(node)
        cost = 0.02 * len(path)
        for change in slips(node, bool(path), shape == ()):
            yield Edit(change.node, change.cost + cost, change.parts, path)
        if shape is not None and len(shape) > 2:
            turned = call("swapaxes", node, number(-1), number(-2))
            yield instead(turned, 1.2 + cost, "a transpose is missing", node, path)
        if (isinstance(node, Name) and shape == ()) or node == ONE:
            for size in pool.sizes:
                identity = call("eye", Name(size))
                diagonal = identity if node == ONE else times(node, identity)
                yield anew(diagonal, 1.6 + cost, "the identity matrix is missing", path)
        for change in _brought(node, pool, shape, shape_of):
            yield Edit(change.node, change.cost + cost, change.parts, path, None if reshape else shape)
    yield from _other_letters(root)
    yield from _other_entries(root, pool, shape_of)
    yield from exchanges(root)
    yield from turned_throughout(root)
    yield from axes_throughout(root)
    yield from _renamed_throughout(root, pool)


def _other_letters(root: Node) -> Iterator[Edit]:
    """p[j] where p[i] stands."""
    letters = [node for node in walk(root) if isinstance(node, Letter)]
    for node in walk(root):
        letters += [item for item in node.items if isinstance(item, Letter)] if isinstance(node, Index) else []
    for path, node in paths(root):
        for place, item in enumerate(node.items if isinstance(node, Index) else ()):
            for other in dict.fromkeys(letters) if isinstance(item, Letter) else ():
                if other != item and isinstance(node, Index):
                    changed = replace(node, items=(*node.items[:place], other, *node.items[place + 1 :]))
                    yield instead(changed, 1.1, "the index is wrong", node, path)


def _other_entries(root: Node, pool: Pool, shape_of: ShapeOf) -> Iterator[Edit]:
    """A sum of entries that ends one too early or too late, and x[i] where it is missing as a factor or a term."""
    for path, node in paths(root):
        if isinstance(node, Over) and node.start is not None and node.stop is not None:
            ends = [replace(node, stop=moved(node.stop, ONE)) for moved in (plus, minus)]
            starts = [replace(node, start=moved(node.start, ONE)) for moved in (plus, minus)]
            for changed in [simplest(one, shape_of) for one in ends + starts]:
                yield instead(changed, 1.2, "the range is wrong", node, path)
    ranges = zip(root.letters, shape_of(root) or (), strict=False) if isinstance(root, Table) else ()
    for ((letter, _), size), (name, shape) in product(ranges, pool.names.items()):
        if shape == (size,):
            whole, entry = root.children()[0], Index(Name(name), (letter,))
            for what, changes in (("factor", (times, over)), ("term", (plus, minus))):
                for changed in (change(whole, entry) for change in changes):
                    yield anew(changed, RARE, f"a {what} is missing", (0,))


def rarer(root: Node, pool: Pool, shape_of: ShapeOf, reshape: bool) -> Iterator[Edit]:
    """Names that may be missing as a factor or a term of any part: many, so they are made when they are needed."""
    for path, node in paths(root):
        if isinstance(node, Number):
            continue
        shape = shape_of(node)
        for change in chain(_named_factors(node, pool, shape, shape_of), _terms(node, pool)):
            yield Edit(change.node, change.cost + 0.02 * len(path), change.parts, path, None if reshape else shape)


def _renamed_throughout(root: Node, pool: Pool) -> Iterator[Edit]:
    """A name that stands for another of its shape at more than one place."""
    found = [node for node in walk(root) if isinstance(node, Name)]
    for node in dict.fromkeys(n for n in found if found.count(n) > 1):
        for change in _other_names(node, pool):
            yield Edit(replaced(root, node, change.node), 1.75, change.parts)


def _brought(node: Node, pool: Pool, shape: Shape | None, shape_of: ShapeOf) -> Iterator[Edit]:
    if isinstance(node, Number):
        return
    if isinstance(node, Name):
        yield from _other_names(node, pool)
    yield from _chain(node, pool, shape, shape_of)
    yield from _factors(node, pool)


def _misplaced(factor: Shape | None, shape: Shape | None) -> float:
    """What it costs to multiply an array by a factor of another shape, where a better place will be found."""
    return 0.0 if factor in ((), shape) else 0.25


def _other_names(node: Name, pool: Pool) -> Iterator[Edit]:
    shape = pool.names.get(node.name)
    for name, other in pool.names.items():
        if name != node.name and other == shape:
            yield edit(Name(name), 1.7, f"{shown(name)} in place of {shown(node.name)}")
    if shape is None:
        for size in pool.sizes:
            if size != node.name:
                yield edit(Name(size), 1.6, f"{size} in place of {node.name}")
        yield edit(minus(node, ONE), 1.24, f"{node.name} - 1 in place of {node.name}")


def _chain(node: Node, pool: Pool, shape: Shape | None, shape_of: ShapeOf) -> Iterator[Edit]:
    """Forgotten, wrong and needless derivatives of inner functions."""
    for factor, (function, value) in pool.slopes.items():
        slope = f"the derivative of {function}"
        cost = 1.3 + _misplaced(shape_of(factor), shape)
        yield edit(times(node, factor), cost, f"a chain factor is forgotten, {slope}: * ", factor)
        yield edit(factor, 1.5, f"the chain factor is wrong, {slope} is ", factor, ", not ", node)
        rest = _without(node, factor)
        if rest is not None:
            yield edit(rest, 1.2, f"a chain factor too many, {slope}: ", factor)
        for wrong in _mistaken(value, function):
            rest = None if wrong == factor else _without(node, wrong)
            if rest is not None:
                what = f"the chain factor is wrong, {slope} is "
                yield edit(times(rest, factor), 1.45, what, factor, ", not ", wrong)
    for value in pool.values.get(node, ()):
        yield edit(value, 1.6, value, " in place of ", node)
    for value in pool.softmaxes:
        inner = Call("sum", (times(node, value),), -1, True)
        whole = times(value, minus(node, inner))
        yield anew(whole, 1.5, "a chain factor is forgotten, the derivative of softmax")
        yield anew(minus(node, inner), 1.55, "a term of the derivative of softmax is missing")
        jacobian = minus(call("diag", value), call("outer", value, value))
        yield edit(jacobian, 1.6, "a term is missing, the derivative of softmax is ", jacobian)
        yield edit(times(node, value), 1.6, "a factor is missing, of the derivative of softmax: * ", value)
        rest = _without(node, times(value, minus(ONE, value)))
        if rest is not None:
            inner = Call("sum", (times(rest, value),), -1, True)
            whole = times(value, minus(rest, inner))
            yield edit(whole, 1.5, "a sum is missing, softmax is not elementwise: ", whole, ", not ", node)


def _mistaken(value: Node, function: str) -> list[Node]:
    """What people take for the derivative of a function with this value."""
    if function == "silu" and isinstance(value, Call):
        gate = call("sigmoid", *value.args)
        return [times(gate, minus(ONE, gate)), gate]
    rest, square = minus(ONE, value), power(value, 2)
    return [times(value, rest), minus(ONE, square), value, rest, square, Compare(">", value, ZERO)]


def _without(node: Node, factor: Node) -> Node | None:
    """A product with the factors of `factor` taken out, if they are all there."""
    remaining, wanted = _flat(node), _flat(factor)
    if len(remaining) <= len(wanted):
        return None
    for part in wanted:
        if part not in remaining:
            return None
        remaining.remove(part)
    return reduce(times, remaining)


def _flat(node: Node) -> list[Node]:
    if isinstance(node, Binary) and node.op == "*":
        return _flat(node.left) + _flat(node.right)
    return [node]


def _factors(node: Node, pool: Pool) -> Iterator[Edit]:
    for constant in (Fraction(2), Fraction(1, 2)):
        yield edit(times(number(constant), node), 1.5, f"a factor {constant} is missing: {constant} * ", node)
    for size in pool.sizes:
        yield anew(over(node, Name(size)), 1.5, f"a factor 1/{size} is missing")
        yield anew(times(Name(size), node), 1.55, f"a factor {size} is missing")
        yield anew(over(node, call("sqrt", Name(size))), 1.5, f"a factor 1/sqrt({size}) is missing")


def _named_factors(node: Node, pool: Pool, own: Shape | None, shape_of: ShapeOf) -> Iterator[Edit]:
    for part in pool.products:
        if own and shape_of(part) == own:
            yield edit(times(node, part), RARE + 0.05, "a factor (", part, ") is missing: ", times(node, part))
    for name, shape in pool.names.items():
        one, named, misplaced = Name(name), shown(name), _misplaced(shape, own)
        yield anew(times(node, one), 1.8 + misplaced, f"a factor {named} is missing")
        yield anew(over(node, one), 1.85 + misplaced, f"a factor 1/{named} is missing")
        yield anew(times(node, minus(ONE, one)), 1.85 + misplaced, f"a factor (1 - {named}) is missing")
        if not shape:
            continue
        if len(shape) == 1:
            turned = Transpose(node)
            yield anew(times(call("sum", one), node), 1.9, f"a factor sum({named}) is missing")
            yield anew(Transpose(over(turned, one)), 2.1, f"a factor 1/{named} for each row is missing")
            yield anew(Transpose(times(turned, one)), 2.1, f"a factor {named} for each row is missing")
        for factor, factor_text in ((one, named), (Transpose(one), f"{named}.T")):
            for multiplied in (Binary("@", node, factor), Binary("@", factor, node)):
                yield anew(multiplied, 2.0, f"a factor {factor_text} is missing")


def _terms(node: Node, pool: Pool) -> Iterator[Edit]:
    missing = "a term is missing"
    yield anew(minus(node, ONE), 1.8, missing)
    yield anew(plus(node, ONE), 1.8, missing)
    for name in pool.names:
        for op in "+-" if node != Name(name) else "+":
            yield anew(Binary(op, node, Name(name)), 1.8, missing)
    arrays = [name for name, shape in pool.names.items() if shape]
    for axis in (None, -1, 0):
        mean = Call("mean", (node,), axis, axis is not None)
        yield anew(minus(node, mean), 1.96, f"{missing}, the mean")
        for name in arrays:
            along = times(Name(name), Call("mean", (times(node, Name(name)),), axis, axis is not None))
            yield anew(minus(node, along), 1.95, f"{missing}, the part along {shown(name)}")
    for name in arrays:
        inner, square = (Call("sum", (times(one, Name(name)),), -1, True) for one in (node, Name(name)))
        along = minus(node, over(times(Name(name), inner), square))
        yield anew(along, 1.95, f"{missing}, the part along {shown(name)}")
    for name, shape in pool.names.items():
        if len(shape) == 1:
            yield anew(minus(node, call("outer", Name(name), Name(name))), 1.9, missing)
        if not shape:
            for size in pool.sizes:
                yield anew(plus(node, times(Name(name), call("eye", Name(size)))), 1.95, missing)
    yield anew(plus(node, Transpose(node)), 1.8, f"{missing}, the transpose")


def pieces(root: Node, pool: Pool, array: bool) -> list[Node]:
    """Small formulas a missing term may be made of: numbers, names, parts of the formula, and products of them."""
    found: list[Node] = [ONE, *(Name(name) for name in [*pool.names, *pool.sizes])]
    found += [node for node in walk(root) if not isinstance(node, Number)]
    found = list(dict.fromkeys(found))[:24]
    matrices = [n for n in found if isinstance(n, Name) and len(pool.names.get(n.name, ())) == 2]
    vectors = [n for n in found if isinstance(n, Name) and len(pool.names.get(n.name, ())) == 1]
    products: list[Node] = []
    if array:
        for matrix in matrices[:6]:
            for vector in [n for n in found if n != matrix][:14]:
                sides = [(vector, matrix), (matrix, vector), (vector, Transpose(matrix))]
                products += [Binary("@", a, b) for a, b in sides]
    else:
        products += [call("trace", matrix) for matrix in matrices]
        products += [Binary("@", a, b) for a in vectors[:5] for b in vectors[:5]]
    scalars = [n for n in found if isinstance(n, Name) and not pool.names.get(n.name, ())]
    for scalar in scalars[:8]:
        products += [over(ONE, scalar), power(scalar, 2), call("log", scalar)]
    return list(dict.fromkeys([*found, *products]))
