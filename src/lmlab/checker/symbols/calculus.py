"""Functions of indexed sums: what the normal form of `terms` does not know by itself."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from lmlab.checker.limits import Deadline
from lmlab.checker.shapes.setting import Setting
from lmlab.checker.sizes import ONE, Shape, Size
from lmlab.checker.symbols.algebra import Algebra, components, negative_first
from lmlab.checker.symbols.terms import Factor, NoProof, Sum, Term, collect, make_term, number, product, shifted, single

_AT_ZERO = {"exp": 1, "sin": 0, "cos": 1, "tanh": 0, "sinh": 0, "cosh": 1, "relu": 0, "abs": 0}
OPAQUE = frozenset({"sin", "cos", "sinh", "cosh", "tanh", "sigmoid", "softplus"})


@dataclass(frozen=True)
class Tensor:
    """An array in symbols: entry (i0, i1, ...) is the sum at free indices 0, 1, ...; axes of size 1 have no index."""

    shape: Shape
    sum: Sum

    @property
    def sizes(self) -> dict[int, Size]:
        """The size of each index."""
        return {k: size for k, size in enumerate(self.shape) if size != ONE}


class Calculus(Algebra):
    """Adds functions. `expanded`: write sigmoid, tanh, softmax and the like with exp."""

    def __init__(self, setting: Setting, deadline: Deadline, expanded: bool) -> None:
        super().__init__(setting, deadline)
        self.expanded = expanded

    # -- functions ----------------------------------------------------------------------------------------------------

    def apply(self, name: str, u: Sum, sizes: dict[int, Size]) -> Sum:
        """A function of every entry."""
        if u.constant == 0 and name in _AT_ZERO:
            return number(_AT_ZERO[name])
        match name:
            case "exp":
                return self.exp(u, sizes)
            case "log":
                return self.log(u, sizes)
            case "sqrt":
                return self.power(u, Fraction(1, 2), sizes)
            case "square":
                return self.times(u, u)
            case "relu":
                return self.times(u, self.step(u, sizes))
            case "abs":
                minus = self.scale(-1, u)
                return self.add(self.times(u, self.step(u, sizes)), self.times(minus, self.step(minus, sizes)))
            case "silu":
                return self.times(u, self.apply("sigmoid", u, sizes))
            case "log1p":
                return self.log(self.add(number(1), u), sizes)
            case "expm1":
                return self.add(self.exp(u, sizes), number(-1))
            case "tan":
                return self.times(
                    self.apply("sin", u, sizes), self.power(self.apply("cos", u, sizes), Fraction(-1), sizes)
                )
        if self.expanded and name in ("sin", "cos"):
            return self._angles(name, u, sizes)
        if self.expanded and name in ("sigmoid", "tanh", "softplus", "sinh", "cosh"):
            return self._with_exp(name, u, sizes)
        if name in OPAQUE:
            return self._mirrored(name, u, sizes)
        raise NoProof

    def _with_exp(self, name: str, u: Sum, sizes: dict[int, Size]) -> Sum:
        down = self.exp(self.scale(-1, u), sizes)
        one = number(1)
        if name == "sigmoid":
            return self.power(self.add(one, down), Fraction(-1), sizes)
        if name == "softplus":
            return self.log(self.add(one, self.exp(u, sizes)), sizes)
        if name == "tanh":
            twice = self.times(down, down)
            below = self.power(self.add(one, twice), Fraction(-1), sizes)
            return self.times(self.add(one, self.scale(-1, twice)), below)
        sign = -1 if name == "sinh" else 1
        return self.scale(Fraction(1, 2), self.add(self.exp(u, sizes), self.scale(sign, down)))

    def _angles(self, name: str, u: Sum, sizes: dict[int, Size]) -> Sum:
        """sin and cos of a sum of angles, by those of its terms; sin(v)**2 is 1 - cos(v)**2."""
        sine, cosine = number(0), number(1)
        for term in u.terms:
            if abs(term.coefficient) > 4 or term.coefficient.denominator != 1:
                angle, times = Sum((Term(abs(term.coefficient), term.factors, term.dummies),)), 1
            else:
                angle, times = Sum((Term(Fraction(1), term.factors, term.dummies),)), int(abs(term.coefficient))
            sign = 1 if term.coefficient > 0 else -1
            for _ in range(times):
                s = self.scale(sign, single(self.wrapped("f", "sin", angle, sizes)))
                c = single(self.wrapped("f", "cos", angle, sizes))
                sine, cosine = (
                    self.add(self.times(sine, c), self.times(cosine, s)),
                    self.add(self.times(cosine, c), self.scale(-1, self.times(sine, s))),
                )
        return sine if name == "sin" else cosine

    def _simplify(self, term: Term) -> list[Term] | None:
        """Also sin(v)**2, once everything is written with sines and cosines."""
        if self.expanded:
            for factor, exponent in term.factors:
                if factor.kind == "f" and exponent >= 2 and self.inside[factor.label][0] == "sin":
                    rest = make_term(term.coefficient, term.powers | {factor: exponent - 2}, dict(term.dummies))
                    _, argument = self.inside[factor.label]
                    sizes = dict(enumerate(self.extents[factor.label]))
                    cosine = self.wrapped("f", "cos", argument, sizes)._replace(idx=factor.idx)
                    square = make_term(Fraction(-1), {cosine: Fraction(2)}, {})
                    return [rest, product(rest, square)]
        return super()._simplify(term)

    def _mirrored(self, name: str, u: Sum, sizes: dict[int, Size]) -> Sum:
        """f(-u) by f(u), so that both are written alike."""
        if not negative_first(u):
            return single(self.wrapped("f", name, u, sizes))
        v = self.scale(-1, u)
        f = single(self.wrapped("f", name, v, sizes))
        match name:
            case "sigmoid":
                return self.add(number(1), self.scale(-1, f))
            case "softplus":
                return self.add(f, self.scale(-1, v))
            case "cos" | "cosh":
                return f
        return self.scale(-1, f)

    def step(self, u: Sum, sizes: dict[int, Size]) -> Sum:
        """1 where u > 0, else 0."""
        constant = u.constant
        if constant is not None:
            return number(int(constant > 0))
        gated = self._gated(u)
        if gated is not None:
            return single(gated)
        return single(self.wrapped("f", "step", u, sizes))

    def _gated(self, u: Sum) -> Factor | None:
        """The step inside relu(v) = v * step(v): where relu(v) > 0 is where v > 0."""
        shared = set(u.terms[0].powers)
        for term in u.terms:
            shared &= set(term.powers)
        for factor in shared:
            if factor.kind == "f" and self.inside[factor.label][0] == "step":
                rest = [make_term(t.coefficient, t.powers | {factor: Fraction(0)}, dict(t.dummies)) for t in u.terms]
                if collect(rest).key == self.normal(self.argument(factor).terms).key:
                    return factor
        return None

    def exp(self, u: Sum, sizes: dict[int, Size]) -> Sum:
        """exp of a sum is the product of the exps of its terms; exp(c log v) is v**c."""
        out = number(1)
        for term in u.terms:
            base = Term(Fraction(1), term.factors, term.dummies)
            only = term.factors[0] if len(term.factors) == 1 and not term.dummies else None
            if only and only[1] == 1 and only[0].kind == "f" and self.inside[only[0].label][0] == "log":
                part = self.power(self.argument(only[0]), term.coefficient, sizes)
            else:
                part = single(self.wrapped("f", "exp", Sum((base,)), sizes), term.coefficient)
            out = self.times(out, part)
        return out

    def log(self, u: Sum, sizes: dict[int, Size]) -> Sum:
        """log of a product of positive factors is a sum; log(1 + exp v) is softplus(v)."""
        if u.constant == 1:
            return number(0)
        if len(u.terms) == 1:
            term = u.terms[0]
            if term.coefficient > 0 and all(self.positive(f) for f, _ in term.factors):
                plain, sums = components(term)
                parts = [self._log_number(term.coefficient)]
                parts += [self.scale(e, self._log_factor(f, sizes)) for f, e in plain.items()]
                parts += [single(self.wrapped("f", "log", Sum((part,)), sizes)) for part in sums]
                return self.add(*parts)
        if not self.expanded and (soft := self._soft(u, sizes)) is not None:
            return soft
        return single(self.wrapped("f", "log", u, sizes))

    def positive(self, factor: Factor) -> bool:
        """Also held sums of positive terms."""
        if factor.kind == "b":
            inner = self.inside[factor.label][1]
            return all(t.coefficient > 0 and all(self.positive(f) for f, _ in t.factors) for t in inner.terms)
        return super().positive(factor)

    def _log_number(self, value: Fraction) -> Sum:
        """By prime factors, so that log 6 is log 2 + log 3."""
        out = number(0)
        for part, sign in ((value.numerator, 1), (value.denominator, -1)):
            for prime, count in _primes(part).items():
                out = self.add(out, self.scale(sign * count, single(self.wrapped("f", "log", number(prime), {}))))
        return out

    def _log_factor(self, factor: Factor, sizes: dict[int, Size]) -> Sum:
        if factor.kind == "p":
            argument = self.argument(factor)
            return self.add(argument, self.scale(-1, self._partition(factor)))
        if factor.kind == "b":
            return single(self.wrapped("f", "log", self.argument(factor), sizes))
        if factor.kind == "f":
            name = self.inside[factor.label][0]
            if name == "exp":
                return self.argument(factor)
            if name == "sigmoid":
                argument = self.argument(factor)
                return self.add(argument, self.scale(-1, self._mirrored("softplus", argument, sizes)))
        return single(self.wrapped("f", "log", single(factor), sizes))

    def _soft(self, u: Sum, sizes: dict[int, Size]) -> Sum | None:
        """log(1 + exp v) and log(1 - sigmoid(v))."""
        if len(u.terms) != 2:
            return None
        one, other = sorted(u.terms, key=lambda t: len(t.factors))
        if one.factors or one.dummies or one.coefficient != 1 or other.dummies:
            return None
        if other.coefficient == 1 and all(f.kind == "f" and self.inside[f.label][0] == "exp" for f, _ in other.factors):
            v = self.add(*(self.scale(e, self.argument(f)) for f, e in other.factors))
            return self._mirrored("softplus", v, sizes)
        if other.coefficient == -1 and len(other.factors) == 1:
            factor, exponent = other.factors[0]
            if exponent == 1 and factor.kind == "f" and self.inside[factor.label][0] == "sigmoid":
                return self.scale(-1, self._mirrored("softplus", self.argument(factor), sizes))
        return None

    # -- softmax ------------------------------------------------------------------------------------------------------

    def softmax(self, u: Tensor, axis: int) -> Sum:
        """softmax along an axis; what does not vary along it does not matter."""
        if u.shape[axis] == ONE:
            return number(1)
        if self.expanded:
            raised = self.exp(u.sum, u.sizes)
            total = self.contract(raised, axis, u.shape[axis])
            return self.times(raised, self.power(total, Fraction(-1), u.sizes))
        moving, _ = self._parted(u.sum, axis)
        if not moving.terms:
            raise NoProof
        return single(self._along("p", moving, axis, u.sizes))

    def logsumexp(self, u: Tensor, axis: int) -> Sum:
        """log sum exp along an axis; what does not vary along it comes out."""
        if u.shape[axis] == ONE:
            return u.sum
        if self.expanded:
            return self.log(self.contract(self.exp(u.sum, u.sizes), axis, u.shape[axis]), u.sizes)
        moving, still = self._parted(u.sum, axis)
        if not moving.terms:
            raise NoProof
        return self.add(still, single(self._cut(self._along("p", moving, axis, u.sizes))))

    def _parted(self, sum_: Sum, axis: int) -> tuple[Sum, Sum]:
        moving = [t for t in sum_.terms if any(axis in f.idx for f, _ in t.factors)]
        return Sum(tuple(moving)), Sum(tuple(t for t in sum_.terms if t not in moving))

    def _along(self, kind: str, argument: Sum, axis: int, sizes: dict[int, Size]) -> Factor:
        """A factor whose last index is the axis that is summed inside."""
        used = [*sorted(argument.free - {axis}), axis]
        compact = collect(shifted(argument, {i: k for k, i in enumerate(used)}).terms)
        plain = self.wrapped(kind, "softmax", compact, {k: sizes[i] for k, i in enumerate(used)})
        return (
            Factor(kind, f"{plain.label}/{len(used) - 1}", tuple(used)) if self._learn(plain, len(used) - 1) else plain
        )

    def _learn(self, plain: Factor, last: int) -> bool:
        label = f"{plain.label}/{last}"
        self.inside[label] = self.inside[plain.label]
        self.extents[label] = self.extents[plain.label]
        return True

    def _cut(self, softmax: Factor) -> Factor:
        """The log-sum-exp that belongs to a softmax."""
        return Factor("l", softmax.label, softmax.idx[:-1])

    def _partition(self, softmax: Factor) -> Sum:
        return single(self._cut(softmax))

    # -- questions ----------------------------------------------------------------------------------------------------

    def mentions(self, factor: Factor, name: str) -> bool:
        """Whether a factor depends on a given."""
        if factor.kind == "t":
            return factor.label == name
        if factor.kind in "dc":
            return False
        return any(self.mentions(f, name) for t in self.inside[factor.label][1].terms for f, _ in t.factors)

    def vanishes(self, sum_: Sum) -> bool:
        """Whether a sum is zero, if need be after multiplying by its denominators."""
        for _ in range(6):
            if not sum_.terms:
                return True
            base = self._denominator(sum_)
            if base is None:
                return False
            lowest = min(t.powers.get(base, Fraction(0)) for t in sum_.terms)
            raised = [
                make_term(t.coefficient, t.powers | {base: t.powers.get(base, Fraction(0)) - lowest}, dict(t.dummies))
                for t in sum_.terms
            ]
            sum_ = self.normal(raised)
        return not sum_.terms

    def _denominator(self, sum_: Sum) -> Factor | None:
        """A held sum that divides something and does not run along a dummy."""
        for term in sum_.terms:
            for factor, exponent in term.factors:
                if factor.kind == "b" and exponent < 0 and all(i >= 0 for i in factor.idx):
                    return factor
        return None


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
