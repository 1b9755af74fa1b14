"""Rules that simplify sums of indexed products: deltas, kinds of givens, rows that sum to one, powers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from lmlab_derive.functions import FUNCTIONS, Entrywise
from lmlab_derive.limits import Deadline
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.sizes import Size
from lmlab_derive.symbols import terms
from lmlab_derive.symbols.terms import PLACE, ZERO, Factor, NoProof, Sum, Term, number, product, reindexed, single

Extents = dict[int, Size]  # the size of each free index


class Algebra:
    """Arithmetic on normal forms. Functions and powers of sums are factors; `inside` remembers what they are of.

    `expanded`: sin(v)**2 is written 1 - cos(v)**2, and functions (see `calculus`) with exp.
    """

    def __init__(self, setting: Setting, deadline: Deadline, expanded: bool) -> None:
        self.setting = setting
        self.deadline = deadline
        self.expanded = expanded
        self.inside: dict[str, tuple[str, Sum]] = {}  # label -> (function name, argument with free indices 0, 1, ...)
        self.kinds = {name: setting.kinds(name) for name in setting.givens}
        self.extents: dict[str, tuple[Size, ...]] = {}  # sizes of the indices of a label's argument
        self.letter_sizes: Extents = {}
        self.last_index = 1_000  # free indices from here on are made up on the way and summed over again
        rules = [self._deltas, self._places, self._expand, self._same_kind, self._sums_to_one, self._orthogonal]
        self.rules = [self._squared_sine, *rules] if expanded else rules

    def function(self, factor: Factor) -> str:
        """The name of the function that a factor is a value of; "" when it is none."""
        return self.inside[factor.label][0] if factor.kind == "f" else ""

    def kinds_of(self, factor: Factor) -> set[str]:
        """The kinds of the given that a factor is an entry of."""
        return self.kinds.get(factor.label, set()) if factor.kind == "t" else set()

    # -- building -----------------------------------------------------------------------------------------------------

    def normal(self, given: Iterable[Term]) -> Sum:
        """Simplify every term until nothing changes, and collect."""
        done: list[Term] = []
        pending = list(given)
        while pending:
            self.deadline.check()
            term = pending.pop()
            step = next((found for rule in self.rules if (found := rule(term)) is not None), None)
            if step is None:
                done.append(term)
            else:
                pending += step
            if len(done) + len(pending) > 4_000:
                raise NoProof
        return terms.collect(done)

    def add(self, *sums: Sum) -> Sum:
        """The sum of sums."""
        return self.normal(term for s in sums for term in s.terms)

    def minus(self, left: Sum, right: Sum) -> Sum:
        """left - right."""
        return self.add(left, self.scale(-1, right))

    def scale(self, value: Fraction | int, sum_: Sum) -> Sum:
        """A number times a sum."""
        return Sum(tuple(Term(t.coefficient * value, t.factors, t.dummies) for t in sum_.terms)) if value else ZERO

    def times(self, left: Sum, right: Sum) -> Sum:
        """The product of two sums."""
        if len(left.terms) * len(right.terms) > 4_000:
            raise NoProof
        return self.normal(product(a, b) for a in left.terms for b in right.terms)

    def fresh(self) -> int:
        """A free index that occurs nowhere else."""
        self.last_index += 1
        return self.last_index

    def by_terms(self, sum_: Sum, change: Callable[[Term], Sum]) -> Sum:
        """A sum changed term by term: each has its dummies free meanwhile, and what it becomes is summed over them."""
        total: list[Term] = []
        for term in sum_.terms:
            self.deadline.check()
            lifted = {i: self.fresh() for i, _ in term.dummies}
            found = change(reindexed(Term(term.coefficient, term.factors), lifted))
            for i, size in term.dummies:
                found = self.contract(found, lifted[i], size)
            total += found.terms
        return self.normal(total)

    def contract(self, sum_: Sum, index: int, size: Size) -> Sum:
        """Sum over a free index; where it does not occur, that is a factor of its size."""
        out: list[Term] = []
        for term in sum_.terms:
            if any(index in factor.idx for factor, _ in term.factors):
                fresh = min([0, *(i for i, _ in term.dummies)]) - 1
                moved = reindexed(term, {index: fresh})
                out.append(Term(moved.coefficient, moved.factors, (*moved.dummies, (fresh, size))))
            else:
                out += [product(term, t) for t in terms.size_sum(size).terms]
        return self.normal(out)

    def delta(self, i: int, j: int) -> Sum:
        """1 where two indices are equal."""
        return number(1) if i == j else single(Factor("d", "", (min(i, j), max(i, j))))

    def wrapped(self, kind: str, function: str, argument: Sum, sizes: Extents) -> Factor:
        """A factor that holds a whole sum, with indices in the order of their occurrence made compact."""
        used = sorted(argument.free)
        compact = terms.shifted(argument, {i: k for k, i in enumerate(used)})
        compact = terms.collect(compact.terms)
        label = f"{function}<{terms.hash_text(compact.key)}>"
        self.inside[label] = (function, compact)
        self.extents[label] = tuple(self.extent(i, sizes) for i in used)
        return Factor(kind, label, tuple(used))

    def extent(self, index: int, sizes: Extents) -> Size:
        """The size of an index: of an axis, or of a letter such as i."""
        return sizes[index] if index in sizes else self.letter_sizes[index]

    def argument(self, factor: Factor) -> Sum:
        """What a factor is a function of, at the factor's own indices (negative ones included)."""
        _, inner = self.inside[factor.label]
        return self.placed(inner, dict(enumerate(factor.idx)))

    def placed(self, inner: Sum, mapping: dict[int, int]) -> Sum:
        """A sum with its free indices sent elsewhere, its own dummies kept apart from where they land."""
        lowest = min([0, *mapping.values()])
        out = []
        for term in inner.terms:
            away = {i: lowest - 1 - k for k, (i, _) in enumerate(term.dummies)}
            out.append(reindexed(reindexed(term, away), mapping))
        return Sum(tuple(out))

    # -- powers -------------------------------------------------------------------------------------------------------

    def power(self, base: Sum, exponent: Fraction, sizes: Extents) -> Sum:
        """A power of a sum: multiplied out when whole and small, split over positive factors, or held as it is."""
        constant = base.constant
        if constant is not None and (exponent.denominator == 1 and (constant or exponent > 0)):
            return number(constant ** int(exponent))
        if exponent.denominator == 1 and 0 <= exponent <= 8:
            out = number(1)
            for _ in range(int(exponent)):
                out = self.times(out, base)
            return out
        if len(base.terms) == 1:
            split = self._split_power(base.terms[0], exponent, sizes)
            if split is not None:
                return split
        return self.normal(single(self.wrapped("b", "sum", base, sizes), exponent).terms)

    def _split_power(self, term: Term, exponent: Fraction, sizes: Extents) -> Sum | None:
        """(c f g)**e as c**e f**e g**e, where that is allowed: whole e, or everything positive."""
        whole = exponent.denominator == 1
        if not whole and not all(self.positive(f) for f, _ in term.factors):
            return None
        coefficient = _root(term.coefficient, exponent)
        if coefficient is None:
            return None
        plain, sums = components(term)
        if len(sums) == 1 and not plain and term.coefficient == 1:
            return None  # a single sum: held as it is
        powers = {f: e * exponent for f, e in plain.items()}
        for part in sums:
            held = self.wrapped("b", "sum", Sum((part,)), sizes)
            powers[held] = powers.get(held, Fraction(0)) + exponent
        return self.normal([terms.make_term(coefficient, powers, {})])

    def positive(self, factor: Factor) -> bool:
        """Whether a factor is greater than 0 wherever it is defined."""
        if factor.kind == "t":
            kinds = self.kinds_of(factor) & {"positive", "fraction", "simplex"}
            return factor.label in self.setting.shapes.sizes or bool(kinds)
        if factor.kind == "b":
            inner = self.inside[factor.label][1]
            return all(t.coefficient > 0 and all(self.positive(f) for f, _ in t.factors) for t in inner.terms)
        function = FUNCTIONS.get(self.function(factor))
        return factor.kind == "p" or (isinstance(function, Entrywise) and function.positive)

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
            base = self._denominator(sum_)
            if base is None:
                break
            exponents = [t.powers.get(base, Fraction(0)) for t in sum_.terms]
            raised = [t.changed({base: e - min(exponents)}) for t, e in zip(sum_.terms, exponents, strict=True)]
            sum_ = self.normal(raised)
        return not sum_.terms

    def _denominator(self, sum_: Sum) -> Factor | None:
        """A held sum that divides something and does not run along a dummy."""
        for term in sum_.terms:
            for factor, exponent in term.factors:
                if factor.kind == "b" and exponent < 0 and all(i >= 0 for i in factor.idx):
                    return factor
        return None

    # -- rules: each gives the terms that a term is replaced by, or None ------------------------------------------------

    def _deltas(self, term: Term) -> list[Term] | None:
        for factor, exponent in term.factors:
            if factor.kind != "d":
                continue
            i, j = factor.idx
            if i >= PLACE and j >= PLACE and i != j:
                return []
            if j >= PLACE > i >= 0:
                return [term.changed({factor: 0, Factor("c", str(j - PLACE), (i,)): 1})]
            if i == j:
                return [term.changed({factor: 0})]
            gone, kept = (i, j) if i < 0 else (j, i)
            if gone < 0:
                return [reindexed(term.changed({factor: 0}, summed=gone), {gone: kept})]
            if exponent != 1:
                return [term.changed({factor: 1})]
            again = reindexed(term.changed({factor: 0}), {j: i}).changed({factor: 1})  # both free: all with i
            if again.shape_key != term.shape_key:
                return [again]
        return None

    def _places(self, term: Term) -> list[Term] | None:
        """A factor that picks one place of an index sends that index there."""
        for factor, exponent in term.factors:
            if factor.kind != "c":
                continue
            (i,) = factor.idx
            place = PLACE + int(factor.label)
            if i >= PLACE:
                return [term.changed({factor: 0})] if i == place else []
            if i < 0:
                return [reindexed(term.changed({factor: 0}, summed=i), {i: place})]
            others = [f for f, _ in term.factors if i in f.idx and f != factor]
            if any(f.kind == "c" for f in others):
                return []
            if exponent != 1:
                return [term.changed({factor: 1})]
            if others:
                return [reindexed(term.changed({factor: 0}), {i: place}).changed({factor: 1})]
        return None

    def _expand(self, term: Term) -> list[Term] | None:
        """A held sum to a power of 1 or more is multiplied out."""
        for factor, exponent in term.factors:
            if factor.kind == "b" and exponent >= 1:
                rest = term.changed({factor: exponent - 1})
                return [product(rest, t) for t in self.argument(factor).terms]
        return None

    def _squared_sine(self, term: Term) -> list[Term] | None:
        """sin(v)**2 is 1 - cos(v)**2."""
        for factor, exponent in term.factors:
            if exponent >= 2 and self.function(factor) == "sin":
                rest = term.changed({factor: exponent - 2})
                sizes = dict(enumerate(self.extents[factor.label]))
                cosine = self.wrapped("f", "cos", self.inside[factor.label][1], sizes)._replace(idx=factor.idx)
                return [rest, product(rest, terms.make_term(Fraction(-1), {cosine: Fraction(2)}, {}))]
        return None

    def _same_kind(self, term: Term) -> list[Term] | None:
        """Symmetric indices in order; entries that are 0 or 1 are their own powers, and meet at one place of a row."""
        for factor, exponent in term.factors:
            kinds = self.kinds_of(factor)
            if "symmetric" in kinds and factor.idx != tuple(sorted(factor.idx)):
                ordered = factor._replace(idx=tuple(sorted(factor.idx)))
                return [term.changed({factor: 0, ordered: term.powers.get(ordered, 0) + exponent})]
            zero_or_one = kinds & {"onehot", "permutation", "binary"} or self.function(factor) == "step"
            if zero_or_one and exponent > 1:
                return [term.changed({factor: 1})]
            if kinds & {"onehot", "permutation"} and exponent == 1:
                met = self._meeting(term, factor, kinds)
                if met is not None:
                    return met
        return None

    def _meeting(self, term: Term, factor: Factor, kinds: set[str]) -> list[Term] | None:
        for other, exponent in term.factors:
            if other == factor or other.label != factor.label or other.kind != "t" or exponent != 1:
                continue
            for place in range(len(factor.idx)) if "permutation" in kinds else [len(factor.idx) - 1]:
                rest = [k for k in range(len(factor.idx)) if k != place]
                if all(factor.idx[k] == other.idx[k] for k in rest) and self._full(factor):
                    pair = Factor("d", "", tuple(sorted((factor.idx[place], other.idx[place]))))
                    return [term.changed({other: 0, pair: term.powers.get(pair, 0) + 1})]
        return None

    def _full(self, factor: Factor) -> bool:
        """Whether a given shows all its axes (one of size 1 has no index, and its rows are not to be told apart)."""
        shape = self.setting.shapes.names[factor.label]
        return bool(shape) and shape[-1].number != 1

    def _sums_to_one(self, term: Term) -> list[Term] | None:
        """A sum over a row of a softmax, a simplex, a onehot or a permutation; of squares over a unit row."""
        for i, _ in term.dummies:
            uses = [(f, e) for f, e in term.factors if i in f.idx]
            if len(uses) != 1:
                continue
            factor, exponent = uses[0]
            kinds = self.kinds_of(factor)
            last = factor.idx[-1] == i and factor.idx.count(i) == 1
            row = factor.kind == "p" or (kinds & {"simplex", "onehot"} and self._full(factor))
            whole = exponent == 1 and ((last and row) or ("permutation" in kinds and factor.idx.count(i) == 1))
            if whole or (exponent == 2 and last and "unit" in kinds and self._full(factor)):
                return [term.changed({factor: 0}, summed=i)]
        return None

    def _orthogonal(self, term: Term) -> list[Term] | None:
        """Columns (of a square matrix, rows too) that meet in a sum give a delta; a matrix and its inverse as well."""
        for i, _ in term.dummies:
            uses = [(f, e) for f, e in term.factors if i in f.idx]
            if len(uses) == 1 and uses[0][1] == 2:
                uses = [(uses[0][0], Fraction(1))] * 2
            if len(uses) != 2 or any(e != 1 or f.idx.count(i) != 1 or len(f.idx) != 2 for f, e in uses):
                continue
            pair = self._pair_delta(uses[0][0], uses[1][0], i)
            if pair is not None:
                rest = term.changed({f: 0 for f, _ in uses}, summed=i)
                return [product(rest, t) for t in self.delta(*pair).terms]
        return None

    def _pair_delta(self, a: Factor, b: Factor, i: int) -> tuple[int, int] | None:
        place_a, place_b = a.idx.index(i), b.idx.index(i)
        left = a.idx[1 - place_a], b.idx[1 - place_b]  # the two indices that are not summed over
        if a.kind == b.kind == "t" and a.label == b.label and place_a == place_b:
            shape = self.setting.shapes.names[a.label]
            if self.kinds_of(a) & {"orthogonal", "permutation"} and (place_a == 0 or shape[0] == shape[1]):
                return left
        if {a.kind, b.kind} == {"i", "t"} and place_a != place_b:
            inverse, matrix = (a, b) if a.kind == "i" else (b, a)
            plain = terms.collect(single(Factor("t", matrix.label, (0, 1))).terms).key
            return left if self.inside[inverse.label][1].key == plain else None
        return None


def components(term: Term) -> tuple[dict[Factor, Fraction], list[Term]]:
    """A term as the factors outside its sums, and each of its sums by itself (factors tied by dummies together)."""
    plain = {f: e for f, e in term.factors if all(i >= 0 for i in f.idx)}
    rest = [(f, e) for f, e in term.factors if f not in plain]
    sizes = dict(term.dummies)
    sums: list[Term] = []
    while rest:
        group = [rest.pop()]
        reached = {i for i in group[0][0].idx if i < 0}
        grown = True
        while grown:
            near = [(f, e) for f, e in rest if reached & set(f.idx)]
            grown = bool(near)
            group += near
            rest = [pair for pair in rest if pair not in near]
            reached |= {i for f, _ in near for i in f.idx if i < 0}
        sums.append(terms.make_term(Fraction(1), dict(group), {i: sizes[i] for i in reached}))
    return plain, sums


def _root(value: Fraction, exponent: Fraction) -> Fraction | None:
    """A power of a fraction when it is a fraction again."""
    if exponent.denominator == 1:
        return value ** int(exponent) if value else None
    if value <= 0:
        return None
    parts = []
    for part in (value.numerator, value.denominator):
        root = round(part ** (1 / exponent.denominator))
        if root**exponent.denominator != part:
            return None
        parts.append(root)
    return Fraction(parts[0], parts[1]) ** exponent.numerator


def negative_first(sum_: Sum) -> bool:
    """Whether a sum should be written as minus another: its first term has a negative coefficient."""
    return bool(sum_.terms) and sum_.terms[0].coefficient < 0
