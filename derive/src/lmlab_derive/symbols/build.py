"""Expressions as sums of indexed products: every operation of the language that index notation can hold."""

from __future__ import annotations

from fractions import Fraction

from lmlab_derive import small_formulas, tree
from lmlab_derive.functions import FUNCTIONS, Entrywise
from lmlab_derive.functions.shapes import swapped_axes
from lmlab_derive.limits import Deadline
from lmlab_derive.shapes.infer import scalar_like
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.sizes import ONE, Shape, Size
from lmlab_derive.symbols import terms
from lmlab_derive.symbols.algebra import Algebra, Extents
from lmlab_derive.symbols.calculus import Calculus, Tensor, extents
from lmlab_derive.symbols.derivatives import Differentiator
from lmlab_derive.symbols.expectations import Averages
from lmlab_derive.symbols.signs import at_least_zero
from lmlab_derive.symbols.substitution import Substitution
from lmlab_derive.symbols.terms import PLACE, Factor, NoProof, Sum, number, shifted, single
from lmlab_derive.tree import (
    Binary,
    Call,
    Compare,
    Derivative,
    Index,
    Name,
    Node,
    Slice,
    Stack,
    constant_value,
)


class Builder:
    """Turns expressions into indexed sums. Lets are written out; `opaque` names stand for themselves."""

    def __init__(self, setting: Setting, deadline: Deadline, expanded: bool) -> None:
        self.setting, self.deadline = setting, deadline
        self.algebra = Algebra(setting, deadline, expanded)
        self.calculus = Calculus(self.algebra)
        self.opaque: set[str] = set()
        self.letters: dict[str, int] = {}
        self.memo: dict[tuple[int, frozenset[str]], tuple[Node, Tensor]] = {}

    def build(self, node: Node) -> Tensor:
        """The expression as an indexed sum."""
        key = (id(node), frozenset(self.opaque))
        found = self.memo.get(key)
        if found is None:
            self.deadline.check()
            found = self.memo[key] = (node, self._build(node))
        return found[1]

    def _build(self, node: Node) -> Tensor:
        shape = self.setting.shape(node)
        match node:
            case tree.Number():
                return Tensor((), number(node.value))
            case Name():
                return self._name(node, shape)
            case tree.Negate():
                return Tensor(shape, self.algebra.scale(-1, self.build(node.operand).sum))
            case tree.Transpose():
                return self._transposed(self.build(node.operand))
            case Binary(op="+" | "-" | "*"):
                left, right = self._aligned(node.left, node.right, shape)
                if node.op == "*":
                    return Tensor(shape, self.algebra.times(left, right))
                return Tensor(shape, self.algebra.add(left, right if node.op == "+" else self.algebra.scale(-1, right)))
            case Binary(op="/"):
                left, right = self._aligned(node.left, node.right, shape)
                return Tensor(shape, self.algebra.times(left, self.algebra.power(right, Fraction(-1), extents(shape))))
            case Binary(op="**"):
                return self._power(node, shape)
            case Binary(op="@"):
                return self._matmul(node.left, node.right)
            case Compare():
                return self._compare(node, shape)
            case Stack():
                return self._stack(node, shape)
            case Index():
                return self._index(node, shape)
            case Call():
                return self._call(node, shape)
            case Derivative():
                return self._derivative(node, shape)
            case tree.Over():
                return self._over(node, shape)
            case tree.Table():
                return self._table(node, shape)
            case tree.Expectation():
                return Averages(self.algebra, self.build).of(node)
        raise NoProof

    def _name(self, node: Name, shape: Shape) -> Tensor:
        name = node.name
        if name in self.setting.lets and name not in self.opaque:
            return self.build(self.setting.lets[name].value)
        return Tensor(shape, self.algebra.normal(single(Factor("t", name, tuple(extents(shape)))).terms))

    def _transposed(self, value: Tensor) -> Tensor:
        rank = len(value.shape)
        return Tensor(value.shape[::-1], self._moved(value.sum, {k: rank - 1 - k for k in range(rank)}))

    def _moved(self, sum_: Sum, mapping: dict[int, int]) -> Sum:
        """The sum with its indices sent elsewhere."""
        return self.algebra.normal(shifted(sum_, mapping).terms)

    def _aligned(self, left: Node, right: Node, shape: Shape) -> tuple[Sum, Sum]:
        """Both operands with their axes counted from the back, as broadcasting does."""
        return self._lift(self.build(left), len(shape)), self._lift(self.build(right), len(shape))

    def _lift(self, value: Tensor, rank: int) -> Sum:
        offset = rank - len(value.shape)
        return shifted(value.sum, {k: k + offset for k in range(len(value.shape))}) if offset else value.sum

    def _power(self, node: Binary, shape: Shape) -> Tensor:
        exponent = constant_value(node.right)
        sizes = extents(shape)
        if exponent is not None:
            return Tensor(shape, self.algebra.power(self.build(node.left).sum, exponent, sizes))
        base, power = self._aligned(node.left, node.right, shape)
        if not at_least_zero(self.algebra, base, strict=True):
            raise NoProof
        return Tensor(shape, self.calculus.exp(self.algebra.times(power, self.calculus.log(base, sizes)), sizes))

    def _matmul(self, left_node: Node, right_node: Node) -> Tensor:
        left, right = self.build(left_node), self.build(right_node)
        if len(left.shape) > 2 or len(right.shape) > 2:
            raise NoProof
        a, inner = len(left.shape) - 1, left.shape[-1]
        total = a + max(0, len(right.shape) - 1)
        moved_left = shifted(left.sum, {a: total})  # the inner index goes last
        moved_right = shifted(right.sum, {0: total} if len(right.shape) == 1 else {0: total, 1: a})
        together = self.algebra.times(moved_left, moved_right)
        shape = left.shape[:-1] + right.shape[1:]
        if inner == ONE:
            return Tensor(shape, together)
        return Tensor(shape, self.algebra.contract(together, total, inner))

    def _letter(self, letter: tree.Letter, witness: tree.Witness) -> tuple[int, Size]:
        """An index of its own for a letter."""
        size = self.setting.shapes.range_of(witness)
        index = self.algebra.fresh()
        if size == ONE:
            raise NoProof
        self.algebra.letter_sizes[index] = size
        self.letters[letter.name] = index
        return index, size

    def _over(self, node: tree.Over, shape: Shape) -> Tensor:
        """A sum over all of an axis."""
        if node.function != "sum" or node.witness is None:
            raise NoProof
        size = self.setting.shapes.range_of(node.witness)
        if node.start is not None and node.stop is not None:
            ends = self.setting.shapes.size(node.start), self.setting.shapes.size(node.stop)
            if ends != (Size.of(node.letter.first), size + Size.of(node.letter.first - 1)):
                raise NoProof
        outer = dict(self.letters)
        index, size = self._letter(node.letter, node.witness)
        value = self.build(node.operand)
        self.letters = outer
        return Tensor(shape, self.algebra.contract(value.sum, index, size))

    def _table(self, node: tree.Table, shape: Shape) -> Tensor:
        """Letters become axes."""
        outer = dict(self.letters)
        found = [self._letter(letter, witness)[0] for letter, witness in node.letters]
        value = self.build(node.operand)
        self.letters = outer
        if value.shape:
            raise NoProof
        return Tensor(shape, self._moved(value.sum, {index: axis for axis, index in enumerate(found)}))

    def _compare(self, node: Compare, shape: Shape) -> Tensor:
        if node.op == "==" and isinstance(node.left, tree.Letter) and isinstance(node.right, tree.Letter):
            return Tensor((), self.algebra.delta(self.letters[node.left.name], self.letters[node.right.name]))
        left, right = self._aligned(node.left, node.right, shape)
        if node.op not in (">", "<", ">=", "<="):
            raise NoProof
        if node.op in ("<", ">="):
            left, right = right, left
        step = self.calculus.step(self.algebra.minus(left, right), extents(shape))
        return Tensor(shape, step if node.op in (">", "<") else self.algebra.minus(number(1), step))

    def _stack(self, node: Stack, shape: Shape) -> Tensor:
        """Items picked by the first index."""
        total = number(0)
        for k, item in enumerate(node.items):
            value = self.build(item)
            moved = shifted(value.sum, {i: i + 1 for i in range(len(value.shape))})
            here = single(Factor("c", str(k), (0,))) if shape[0] != ONE else number(1)
            total = self.algebra.add(total, self.algebra.times(here, moved))
        return Tensor(shape, total)

    def _index(self, node: Index, shape: Shape) -> Tensor:
        """Places written as numbers; stretches are beyond this notation, except whole axes."""
        value = self.build(node.operand)
        mapping: dict[int, int] = {}
        kept = 0
        for axis in range(len(value.shape)):
            item = node.items[axis] if axis < len(node.items) else Slice(None, None)
            if isinstance(item, Slice):
                if item.start is not None or item.stop is not None:
                    raise NoProof
                mapping[axis] = kept
                kept += 1
                continue
            if isinstance(item, tree.Letter) and value.shape[axis] != ONE:
                mapping[axis] = self.letters[item.name]
                continue
            if item.free_letters:
                raise NoProof
            place = self.setting.shapes.size(item).number
            if place is None or place < 0:
                raise NoProof
            mapping[axis] = PLACE + place
        return Tensor(shape, self._moved(value.sum, mapping))

    def _opaque(self, node: Call, shape: Shape) -> Tensor:
        """A maximum, a determinant: equal when what it is taken of is equal, and nothing more is known."""
        value = self.build(node.args[0])
        rank = len(value.shape)
        axes = range(rank) if node.axis is None else [node.axis % max(rank, 1)]
        kept = [k for k in range(rank) if k not in axes]
        label = f"{node.function}{sorted(axes)}<{terms.hash_text(terms.collect(value.sum.terms).key)}>"
        self.algebra.inside[label] = (node.function, value.sum)
        idx = tuple(k for k in kept if value.shape[k] != ONE)
        self.algebra.extents[label] = tuple(value.shape[k] for k in idx)
        place = {k: (k if node.keepdims else i) for i, k in enumerate(kept)}
        return Tensor(shape, single(Factor("o", label, tuple(place[k] for k in idx))))

    def _call(self, node: Call, shape: Shape) -> Tensor:
        name = node.function
        if isinstance(FUNCTIONS[name], Entrywise):
            return Tensor(shape, self.calculus.apply(name, self.build(node.args[0]).sum, extents(shape)))
        if name in ("ones", "zeros"):
            return Tensor(shape, number(int(name == "ones")))
        if name == "eye":
            return Tensor(shape, self.algebra.delta(0, 1) if shape[0] != ONE else number(1))
        if name in ("sum", "mean", "norm", "var", "std", "logsumexp"):
            return self._reduction(node, shape)
        if name in ("max", "min", "prod", "det"):
            return self._opaque(node, shape)
        if name == "where" and isinstance(node.args[0], Compare):
            choice, yes, no = node.args
            return self.build(_either(choice, yes, no))
        value = self.build(node.args[0])
        match name:
            case "softmax" | "log_softmax":
                axis = (-1 if node.axis is None else node.axis) % len(shape)
                soft = self.calculus.softmax(value, axis)
                return Tensor(shape, soft if name == "softmax" else self.calculus.log(soft, value.sizes))
            case "transpose":
                return self._transposed(value)
            case "outer":
                return self._outer(value, self.build(node.args[1]), shape)
            case "dot":
                product = value.shape and self.setting.shape(node.args[1])
                return self._matmul(*node.args) if product else self.build(small_formulas.times(*node.args))
            case "diag":
                return self._diag(value, shape)
            case "trace":
                return self._trace(value)
            case "inv":
                return self._inverse(value)
            case "swapaxes":
                first, second = swapped_axes(node, value.shape)
                return Tensor(shape, self._moved(value.sum, {first: second, second: first}))
            case "reshape" | "vec" | "expand_dims":
                return self._reshaped(value, shape)
        raise NoProof

    def _reduction(self, node: Call, shape: Shape) -> Tensor:
        value = self.build(node.args[0])
        rank = len(value.shape)
        axes = list(range(rank)) if node.axis is None else [node.axis % rank]
        total = self._reduce(node.function, value, axes)
        if not node.keepdims:
            kept = [k for k in range(rank) if k not in axes]
            total = self._moved(total, {k: i for i, k in enumerate(kept)})
        return Tensor(shape, total)

    def _reduce(self, name: str, value: Tensor, axes: list[int]) -> Sum:
        sizes = value.sizes
        if name == "logsumexp":
            long = [axis for axis in axes if axis in sizes]
            if len(long) > 1:
                raise NoProof
            return self.calculus.logsumexp(value, long[0]) if long else value.sum
        if name == "sum":
            return self._total(value.sum, sizes, axes)
        squares = self._total(self.algebra.times(value.sum, value.sum), sizes, axes) if name != "mean" else number(0)
        if name == "norm":
            return self.algebra.power(squares, Fraction(1, 2), sizes)
        count = number(1)
        for axis in axes:
            count = self.algebra.times(count, terms.size_sum(value.shape[axis]))
        share = self.algebra.power(count, Fraction(-1), {})
        mean = self.algebra.times(share, self._total(value.sum, sizes, axes))
        if name == "mean":
            return mean
        variance = self.algebra.minus(self.algebra.times(share, squares), self.algebra.times(mean, mean))
        return variance if name == "var" else self.algebra.power(variance, Fraction(1, 2), sizes)

    def _total(self, sum_: Sum, sizes: Extents, axes: list[int]) -> Sum:
        for axis in axes:
            if axis in sizes:
                sum_ = self.algebra.contract(sum_, axis, sizes[axis])
        return sum_

    def _outer(self, left: Tensor, right: Tensor, shape: Shape) -> Tensor:
        """Of vectors, or of arrays with one axis longer than 1."""
        parts = []
        for value, place in ((left, 0), (right, 1)):
            if len(value.sizes) > 1:
                raise NoProof
            parts.append(shifted(value.sum, dict.fromkeys(value.sizes, place)))
        return Tensor(shape, self.algebra.times(parts[0], parts[1]))

    def _diag(self, value: Tensor, shape: Shape) -> Tensor:
        if len(value.shape) == 1:
            spread = self.algebra.times(value.sum, self.algebra.delta(0, 1)) if shape[0] != ONE else value.sum
            return Tensor(shape, spread)
        return Tensor(shape, self._moved(value.sum, {1: 0}))

    def _trace(self, value: Tensor) -> Tensor:
        if value.shape[0] == ONE:
            return Tensor((), value.sum)
        return Tensor((), self.algebra.contract(self._moved(value.sum, {1: 0}), 0, value.shape[0]))

    def _inverse(self, value: Tensor) -> Tensor:
        if value.shape[0] == ONE:
            return Tensor(value.shape, self.algebra.power(value.sum, Fraction(-1), {}))
        if value.sum.free != {0, 1}:
            raise NoProof
        factor = self.algebra.wrapped("i", "inv", value.sum, value.sizes)
        return Tensor(value.shape, single(factor))

    def _reshaped(self, value: Tensor, shape: Shape) -> Tensor:
        """Only axes of size 1 may come and go."""
        old, new = value.sizes, extents(shape)
        if list(old.values()) != list(new.values()):
            raise NoProof
        return Tensor(shape, self._moved(value.sum, dict(zip(old, new, strict=True))))

    def _derivative(self, node: Derivative, shape: Shape) -> Tensor:
        """A let one differentiates by stands for itself meanwhile, and is written out afterwards."""
        name = node.by[-1]
        before = set(self.opaque)
        if name in self.setting.lets:
            self.opaque.add(name)
        try:
            top = node.operand if len(node.by) == 1 else Derivative(node.operand, node.by[:-1], node.strict)
            value = self.build(top)
        finally:
            self.opaque = before
        rank = 0 if not node.strict and scalar_like(value.shape) else len(value.shape)
        axes = tuple(rank + k for k in extents(self.setting.shapes.names[name]))
        slope = Differentiator(self.calculus).of(value.sum, name, axes)
        if name in self.setting.lets and name not in self.opaque:
            slope = Substitution(self.calculus, name, self.build(self.setting.lets[name].value)).of(slope)
        return Tensor(shape, slope)


def _either(choice: Node, yes: Node, no: Node) -> Node:
    """choice * yes + (1 - choice) * no."""
    rest = small_formulas.times(small_formulas.minus(small_formulas.ONE, choice), no)
    return small_formulas.plus(small_formulas.times(choice, yes), rest)
