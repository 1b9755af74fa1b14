"""Functions of indexed sums: what the normal form of `terms` does not know by itself."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from lmlab_derive import tree
from lmlab_derive.functions import FUNCTIONS, Entrywise
from lmlab_derive.sizes import ONE, Shape
from lmlab_derive.symbols.algebra import Algebra, Extents, components, negative_first
from lmlab_derive.symbols.terms import Factor, NoProof, Sum, Term, collect, number, shifted, single
from lmlab_derive.tree import Binary, Name, Node

_U, _V = Name("u"), Name("v")  # the argument and the value of a function in the formulas of its record


@dataclass(frozen=True)
class Tensor:
    """An array in symbols: entry (i0, i1, ...) is the sum at free indices 0, 1, ...; axes of size 1 have no index."""

    shape: Shape
    sum: Sum

    @property
    def sizes(self) -> Extents:
        """The size of each index."""
        return extents(self.shape)


def extents(shape: Shape) -> Extents:
    """The size of each index of an array of this shape."""
    return {k: size for k, size in enumerate(shape) if size != ONE}


class Calculus:
    """Functions in an algebra: what their records say of them, and the rules of exp, log and softmax."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra

    # -- functions ----------------------------------------------------------------------------------------------------

    def apply(self, name: str, u: Sum, sizes: Extents) -> Sum:
        """A function of every entry."""
        function = FUNCTIONS[name]
        assert isinstance(function, Entrywise)
        if u.constant == 0 and function.at_zero is not None:
            return number(function.at_zero)
        if name == "exp":
            return self.exp(u, sizes)
        if name == "log":
            return self.log(u, sizes)
        if function.means is not None:
            return self._formula(function.means(_U), u, u, sizes)
        if self.algebra.expanded and name in ("sin", "cos"):
            return self._angles(name, u, sizes)
        if self.algebra.expanded and function.by_exp is not None:
            return self._formula(function.by_exp(_U), u, u, sizes)
        if function.mirror is None:
            raise NoProof
        if not negative_first(u):
            return single(self.algebra.wrapped("f", name, u, sizes))
        minus_u = self.algebra.scale(-1, u)  # f(-u) by f(u), so that both are written alike
        value = single(self.algebra.wrapped("f", name, minus_u, sizes))
        return self._formula(function.mirror(_V, _U), minus_u, value, sizes)

    def slope(self, name: str, u: Sum, v: Sum, sizes: Extents) -> Sum:
        """The derivative of a function at u, where its value is v."""
        if name == "step":
            return number(0)
        slope = FUNCTIONS[name].slope
        assert slope is not None
        return self._formula(slope(_V, _U), u, v, sizes)

    def _formula(self, node: Node, u: Sum, v: Sum, sizes: Extents) -> Sum:
        """A formula of a record, in which the names u and v stand for sums."""

        def of(node: Node) -> Sum:
            return self._formula(node, u, v, sizes)

        match node:
            case tree.Number():
                return number(node.value)
            case Name():
                return u if node == _U else v
            case tree.Negate():
                return self.algebra.scale(-1, of(node.operand))
            case Binary(op="+"):
                return self.algebra.add(of(node.left), of(node.right))
            case Binary(op="-"):
                return self.algebra.minus(of(node.left), of(node.right))
            case Binary(op="*"):
                return self.algebra.times(of(node.left), of(node.right))
            case Binary(op="/"):
                return self.algebra.times(of(node.left), self.algebra.power(of(node.right), Fraction(-1), sizes))
            case Binary(op="**", right=tree.Number(value=exponent)):
                return self.algebra.power(of(node.left), exponent, sizes)
            case tree.Compare(op=">"):
                return self.step(self.algebra.minus(of(node.left), of(node.right)), sizes)
            case tree.Call():
                return self.apply(node.function, of(node.args[0]), sizes)
        raise NoProof

    def _angles(self, name: str, u: Sum, sizes: Extents) -> Sum:
        """sin and cos of a sum of angles, by those of its terms; sin(v)**2 is 1 - cos(v)**2."""
        sine, cosine = number(0), number(1)
        for term in u.terms:
            if abs(term.coefficient) > 4 or term.coefficient.denominator != 1:
                angle, times = Sum((Term(abs(term.coefficient), term.factors, term.dummies),)), 1
            else:
                angle, times = Sum((Term(Fraction(1), term.factors, term.dummies),)), int(abs(term.coefficient))
            sign = 1 if term.coefficient > 0 else -1
            for _ in range(times):
                s = self.algebra.scale(sign, single(self.algebra.wrapped("f", "sin", angle, sizes)))
                c = single(self.algebra.wrapped("f", "cos", angle, sizes))
                sine, cosine = (
                    self.algebra.add(self.algebra.times(sine, c), self.algebra.times(cosine, s)),
                    self.algebra.minus(self.algebra.times(cosine, c), self.algebra.times(sine, s)),
                )
        return sine if name == "sin" else cosine

    def step(self, u: Sum, sizes: Extents) -> Sum:
        """1 where u > 0, else 0."""
        constant = u.constant
        if constant is not None:
            return number(int(constant > 0))
        gated = self._gated(u)
        if gated is not None:
            return single(gated)
        return single(self.algebra.wrapped("f", "step", u, sizes))

    def _gated(self, u: Sum) -> Factor | None:
        """The step inside relu(v) = v * step(v): where relu(v) > 0 is where v > 0."""
        shared = set.intersection(*(set(term.powers) for term in u.terms))
        for factor in shared:
            if self.algebra.function(factor) == "step":
                rest = collect(t.changed({factor: 0}) for t in u.terms)
                if rest.key == self.algebra.normal(self.algebra.argument(factor).terms).key:
                    return factor
        return None

    def exp(self, u: Sum, sizes: Extents) -> Sum:
        """exp of a sum is the product of the exps of its terms; exp(c log v) is v**c."""
        out = number(1)
        for term in u.terms:
            base = Term(Fraction(1), term.factors, term.dummies)
            only = term.factors[0] if len(term.factors) == 1 and not term.dummies else None
            if only and only[1] == 1 and self.algebra.function(only[0]) == "log":
                part = self.algebra.power(self.algebra.argument(only[0]), term.coefficient, sizes)
            else:
                part = single(self.algebra.wrapped("f", "exp", Sum((base,)), sizes), term.coefficient)
            out = self.algebra.times(out, part)
        return out

    def log(self, u: Sum, sizes: Extents) -> Sum:
        """log of a product of positive factors is a sum; log(1 + exp v) is softplus(v)."""
        if u.constant == 1:
            return number(0)
        if len(u.terms) == 1:
            term = u.terms[0]
            if term.coefficient > 0 and all(self.algebra.positive(f) for f, _ in term.factors):
                plain, sums = components(term)
                parts = [self._log_number(term.coefficient)]
                parts += [self.algebra.scale(e, self._log_factor(f, sizes)) for f, e in plain.items()]
                parts += [single(self.algebra.wrapped("f", "log", Sum((part,)), sizes)) for part in sums]
                return self.algebra.add(*parts)
        if not self.algebra.expanded and (soft := self._soft(u, sizes)) is not None:
            return soft
        return single(self.algebra.wrapped("f", "log", u, sizes))

    def _log_number(self, value: Fraction) -> Sum:
        """By prime factors, so that log 6 is log 2 + log 3."""
        out = number(0)
        for part, sign in ((value.numerator, 1), (value.denominator, -1)):
            for prime, count in _primes(part).items():
                out = self.algebra.add(
                    out, self.algebra.scale(sign * count, single(self.algebra.wrapped("f", "log", number(prime), {})))
                )
        return out

    def _log_factor(self, factor: Factor, sizes: Extents) -> Sum:
        if factor.kind == "p":
            return self.algebra.minus(self.algebra.argument(factor), single(_partition(factor)))
        if factor.kind == "b":
            return single(self.algebra.wrapped("f", "log", self.algebra.argument(factor), sizes))
        name = self.algebra.function(factor)
        if name == "exp":
            return self.algebra.argument(factor)
        if name == "sigmoid":
            argument = self.algebra.argument(factor)
            return self.algebra.minus(argument, self.apply("softplus", argument, sizes))
        return single(self.algebra.wrapped("f", "log", single(factor), sizes))

    def _soft(self, u: Sum, sizes: Extents) -> Sum | None:
        """log(1 + exp v) and log(1 - sigmoid(v))."""
        if len(u.terms) != 2:
            return None
        one, other = sorted(u.terms, key=lambda t: len(t.factors))
        if one.factors or one.dummies or one.coefficient != 1 or other.dummies:
            return None
        if other.coefficient == 1 and all(self.algebra.function(f) == "exp" for f, _ in other.factors):
            v = self.algebra.add(*(self.algebra.scale(e, self.algebra.argument(f)) for f, e in other.factors))
            return self.apply("softplus", v, sizes)
        if other.coefficient == -1 and len(other.factors) == 1:
            factor, exponent = other.factors[0]
            if exponent == 1 and self.algebra.function(factor) == "sigmoid":
                return self.algebra.scale(-1, self.apply("softplus", self.algebra.argument(factor), sizes))
        return None

    # -- softmax ------------------------------------------------------------------------------------------------------

    def softmax(self, u: Tensor, axis: int) -> Sum:
        """softmax along an axis; what does not vary along it does not matter."""
        if u.shape[axis] == ONE:
            return number(1)
        if self.algebra.expanded:
            raised = self.exp(u.sum, u.sizes)
            total = self.algebra.contract(raised, axis, u.shape[axis])
            return self.algebra.times(raised, self.algebra.power(total, Fraction(-1), u.sizes))
        moving, _ = self._parted(u.sum, axis)
        return single(self._along(moving, axis, u.sizes))

    def logsumexp(self, u: Tensor, axis: int) -> Sum:
        """log sum exp along an axis; what does not vary along it comes out."""
        if u.shape[axis] == ONE:
            return u.sum
        if self.algebra.expanded:
            return self.log(self.algebra.contract(self.exp(u.sum, u.sizes), axis, u.shape[axis]), u.sizes)
        moving, still = self._parted(u.sum, axis)
        return self.algebra.add(still, single(_partition(self._along(moving, axis, u.sizes))))

    def _parted(self, sum_: Sum, axis: int) -> tuple[Sum, Sum]:
        """The terms that vary along an axis, of which there must be some, and the others."""
        moving = [t for t in sum_.terms if any(axis in f.idx for f, _ in t.factors)]
        if not moving:
            raise NoProof
        return Sum(tuple(moving)), Sum(tuple(t for t in sum_.terms if t not in moving))

    def _along(self, argument: Sum, axis: int, sizes: Extents) -> Factor:
        """A softmax: its last index is the axis that is summed inside."""
        used = [*sorted(argument.free - {axis}), axis]
        compact = collect(shifted(argument, {i: k for k, i in enumerate(used)}).terms)
        plain = self.algebra.wrapped(
            "p", "softmax", compact, {k: self.algebra.extent(i, sizes) for k, i in enumerate(used)}
        )
        label = f"{plain.label}/{len(used) - 1}"
        self.algebra.inside[label] = self.algebra.inside[plain.label]
        self.algebra.extents[label] = self.algebra.extents[plain.label]
        return Factor("p", label, tuple(used))


def _partition(softmax: Factor) -> Factor:
    """The log-sum-exp that belongs to a softmax."""
    return Factor("l", softmax.label, softmax.idx[:-1])


def _primes(value: int) -> dict[int, int]:
    """Prime factors, as far as small ones go."""
    found: dict[int, int] = {}
    divisor = 2
    while divisor * divisor <= value and divisor < 10_000:
        while value % divisor == 0:
            found[divisor] = found.get(divisor, 0) + 1
            value //= divisor
        divisor += 1
    if value > 1:
        found[value] = found.get(value, 0) + 1
    return found
