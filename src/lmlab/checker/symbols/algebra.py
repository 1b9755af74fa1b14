"""Rules that simplify sums of indexed products: deltas, kinds of givens, rows that sum to one, powers."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from lmlab.checker.limits import Deadline
from lmlab.checker.shapes.setting import Setting
from lmlab.checker.sizes import Size
from lmlab.checker.symbols.terms import (
    PLACE,
    ZERO,
    Factor,
    NoProof,
    Sum,
    Term,
    collect,
    hash_text,
    make_term,
    number,
    product,
    reindexed,
    shifted,
    single,
    size_sum,
)

POSITIVE_FUNCTIONS = ("exp", "sigmoid", "softplus", "cosh")


class Algebra:
    """Arithmetic on normal forms. Functions and powers of sums are factors; `inside` remembers what they are of."""

    def __init__(self, setting: Setting, deadline: Deadline) -> None:
        self.setting = setting
        self.deadline = deadline
        self.inside: dict[str, tuple[str, Sum]] = {}  # label -> (function name, argument with free indices 0, 1, ...)
        self.kinds = {name: {kind.name for kind in given.kinds} for name, given in setting.givens.items()}
        self.extents: dict[str, tuple[Size, ...]] = {}  # sizes of the indices of a label's argument
        self.last_index = 1_000  # free indices from here on are made up on the way and summed over again

    # -- building -----------------------------------------------------------------------------------------------------

    def normal(self, terms: Iterable[Term]) -> Sum:
        """Simplify every term until nothing changes, and collect."""
        done: list[Term] = []
        pending = list(terms)
        while pending:
            self.deadline.check()
            term = pending.pop()
            step = self._simplify(term)
            if step is None:
                done.append(term)
            else:
                pending += step
            if len(done) + len(pending) > 4_000:
                raise NoProof
        return collect(done)

    def add(self, *sums: Sum) -> Sum:
        """The sum of sums."""
        return self.normal(term for s in sums for term in s.terms)

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

    def opened(self, term: Term) -> tuple[Sum, list[tuple[int, Size]]]:
        """A term with its dummies made free, and what to sum over afterwards to close it again."""
        lifted = {i: self.fresh() for i, _ in term.dummies}
        open_ = reindexed(make_term(term.coefficient, term.powers, {}), lifted)
        return Sum((open_,)), [(lifted[i], size) for i, size in term.dummies]

    def closed(self, sum_: Sum, indices: list[tuple[int, Size]]) -> Sum:
        """Sum over indices that were opened."""
        for index, size in indices:
            sum_ = self.contract(sum_, index, size)
        return sum_

    def contract(self, sum_: Sum, index: int, size: Size) -> Sum:
        """Sum over a free index; where it does not occur, that is a factor of its size."""
        terms: list[Term] = []
        for term in sum_.terms:
            if any(index in factor.idx for factor, _ in term.factors):
                fresh = min([0, *(i for i, _ in term.dummies)]) - 1
                moved = reindexed(term, {index: fresh})
                terms.append(make_term(moved.coefficient, moved.powers, dict(moved.dummies) | {fresh: size}))
            else:
                terms += [product(term, t) for t in size_sum(size).terms]
        return self.normal(terms)

    def delta(self, i: int, j: int) -> Sum:
        """1 where two indices are equal."""
        return number(1) if i == j else single(Factor("d", "", (min(i, j), max(i, j))))

    def wrapped(self, kind: str, function: str, argument: Sum, sizes: dict[int, Size]) -> Factor:
        """A factor that holds a whole sum, with indices in the order of their occurrence made compact."""
        used = sorted(argument.free)
        compact = shifted(argument, {i: k for k, i in enumerate(used)})
        compact = collect(compact.terms)
        label = f"{function}<{hash_text(compact.key)}>"
        self.inside[label] = (function, compact)
        self.extents[label] = tuple(sizes[i] for i in used)
        return Factor(kind, label, tuple(used))

    def argument(self, factor: Factor) -> Sum:
        """What a factor is a function of, at the factor's own indices (negative ones included)."""
        _, inner = self.inside[factor.label]
        return self.placed(inner, dict(enumerate(factor.idx)))

    def placed(self, inner: Sum, mapping: dict[int, int]) -> Sum:
        """A sum with its free indices sent elsewhere, its own dummies kept apart from where they land."""
        lowest = min([0, *mapping.values()])
        terms = []
        for term in inner.terms:
            away = {i: lowest - 1 - k for k, (i, _) in enumerate(term.dummies)}
            terms.append(reindexed(reindexed(term, away), mapping))
        return Sum(tuple(terms))

    # -- powers -------------------------------------------------------------------------------------------------------

    def power(self, base: Sum, exponent: Fraction, sizes: dict[int, Size]) -> Sum:
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

    def _split_power(self, term: Term, exponent: Fraction, sizes: dict[int, Size]) -> Sum | None:
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
        return self.normal([make_term(coefficient, powers, {})])

    def positive(self, factor: Factor) -> bool:
        """Whether a factor is greater than 0 wherever it is defined."""
        if factor.kind == "t":
            return factor.label in self.setting.shapes.sizes or bool(
                self.kinds.get(factor.label, set()) & {"positive", "fraction", "simplex"}
            )
        if factor.kind == "p":
            return True
        return factor.kind == "f" and self.inside[factor.label][0] in POSITIVE_FUNCTIONS

    # -- simplification -----------------------------------------------------------------------------------------------

    def _simplify(self, term: Term) -> list[Term] | None:
        """One step, or None when there is nothing to do."""
        for rule in (self._deltas, self._places, self._expand, self._same_kind, self._sums_to_one, self._orthogonal):
            result = rule(term)
            if result is not None:
                return result
        return None

    def _deltas(self, term: Term) -> list[Term] | None:
        powers = term.powers
        for factor, _ in term.factors:
            if factor.kind != "d":
                continue
            i, j = factor.idx
            del powers[factor]
            if i >= PLACE and j >= PLACE and i != j:
                return []
            if j >= PLACE > i >= 0:
                picked = Factor("c", str(j - PLACE), (i,))
                return [make_term(term.coefficient, powers | {picked: Fraction(1)}, dict(term.dummies))]
            if i == j:
                return [make_term(term.coefficient, powers, dict(term.dummies))]
            dummies = dict(term.dummies)
            gone, kept = (i, j) if i < 0 else (j, i)
            if gone < 0:
                dummies.pop(gone)
                rest = make_term(term.coefficient, powers, dummies)
                return [reindexed(rest, {gone: kept})]
            if term.powers[factor] != 1:
                return [make_term(term.coefficient, powers | {factor: Fraction(1)}, dummies)]
            moved = reindexed(
                make_term(term.coefficient, powers, dummies), {j: i}
            )  # both free: write everything with i
            again = make_term(moved.coefficient, moved.powers | {factor: Fraction(1)}, dict(moved.dummies))
            if again.shape_key != term.shape_key:
                return [again]
            powers = term.powers
        return None

    def _places(self, term: Term) -> list[Term] | None:
        """A factor that picks one place of an index sends that index there."""
        powers = term.powers
        for factor, exponent in term.factors:
            if factor.kind != "c":
                continue
            (i,) = factor.idx
            place = PLACE + int(factor.label)
            if i >= PLACE:
                del powers[factor]
                return [make_term(term.coefficient, powers, dict(term.dummies))] if i == place else []
            if i < 0:
                del powers[factor]
                dummies = dict(term.dummies)
                dummies.pop(i)
                return [reindexed(make_term(term.coefficient, powers, dummies), {i: place})]
            others = [f for f in powers if f.kind == "c" and f.idx == (i,) and f != factor]
            if others:
                return []
            if exponent != 1:
                return [make_term(term.coefficient, powers | {factor: Fraction(1)}, dict(term.dummies))]
            if any(i in f.idx for f in powers if f != factor):
                del powers[factor]
                moved = reindexed(make_term(term.coefficient, powers, dict(term.dummies)), {i: place})
                return [make_term(moved.coefficient, moved.powers | {factor: Fraction(1)}, dict(moved.dummies))]
        return None

    def _expand(self, term: Term) -> list[Term] | None:
        """A held sum to a power of 1 or more is multiplied out."""
        for factor, exponent in term.factors:
            if factor.kind == "b" and exponent >= 1:
                rest = make_term(term.coefficient, term.powers | {factor: exponent - 1}, dict(term.dummies))
                inner = self.argument(factor)
                return [product(rest, t) for t in inner.terms]
        return None

    def _same_kind(self, term: Term) -> list[Term] | None:
        """Symmetric indices in order; entries that are 0 or 1 are their own powers, and meet at one place of a row."""
        powers = term.powers
        for factor, exponent in term.factors:
            kinds = self.kinds.get(factor.label, set()) if factor.kind == "t" else set()
            if "symmetric" in kinds and factor.idx != tuple(sorted(factor.idx)):
                del powers[factor]
                ordered = factor._replace(idx=tuple(sorted(factor.idx)))
                powers[ordered] = powers.get(ordered, Fraction(0)) + exponent
                return [make_term(term.coefficient, powers, dict(term.dummies))]
            if (kinds & {"onehot", "permutation", "binary"} or self._is_step(factor)) and exponent > 1:
                return [make_term(term.coefficient, powers | {factor: Fraction(1)}, dict(term.dummies))]
            if kinds & {"onehot", "permutation"} and exponent == 1:
                met = self._meeting(term, factor, kinds)
                if met is not None:
                    return met
        return None

    def _is_step(self, factor: Factor) -> bool:
        return factor.kind == "f" and self.inside[factor.label][0] == "step"

    def _meeting(self, term: Term, factor: Factor, kinds: set[str]) -> list[Term] | None:
        for other, exponent in term.factors:
            if other == factor or other.label != factor.label or other.kind != "t" or exponent != 1:
                continue
            for place in range(len(factor.idx)) if "permutation" in kinds else [len(factor.idx) - 1]:
                rest = [k for k in range(len(factor.idx)) if k != place]
                if all(factor.idx[k] == other.idx[k] for k in rest) and self._full(factor):
                    powers = term.powers
                    del powers[other]
                    pair = Factor("d", "", tuple(sorted((factor.idx[place], other.idx[place]))))
                    powers[pair] = powers.get(pair, Fraction(0)) + 1
                    return [make_term(term.coefficient, powers, dict(term.dummies))]
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
            kinds = self.kinds.get(factor.label, set()) if factor.kind == "t" else set()
            last = bool(factor.idx) and factor.idx[-1] == i and factor.idx.count(i) == 1
            row = (factor.kind == "p") or bool(kinds & {"simplex", "onehot"} and self._full(factor))
            whole = exponent == 1 and ((last and row) or ("permutation" in kinds and factor.idx.count(i) == 1))
            if whole or (exponent == 2 and last and "unit" in kinds and self._full(factor)):
                powers, dummies = term.powers, dict(term.dummies)
                del powers[factor], dummies[i]
                return [make_term(term.coefficient, powers, dummies)]
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
                powers, dummies = term.powers, dict(term.dummies)
                del dummies[i]
                for factor in {uses[0][0], uses[1][0]}:
                    del powers[factor]
                rest = make_term(term.coefficient, powers, dummies)
                return [product(rest, t) for t in self.delta(*pair).terms]
        return None

    def _pair_delta(self, a: Factor, b: Factor, i: int) -> tuple[int, int] | None:
        place_a, place_b = a.idx.index(i), b.idx.index(i)
        if a.kind == b.kind == "t" and a.label == b.label and place_a == place_b:
            kinds = self.kinds.get(a.label, set())
            shape = self.setting.shapes.names[a.label]
            square = shape[0] == shape[1]
            if kinds & {"orthogonal", "permutation"} and (place_a == 0 or square):
                return a.idx[1 - place_a], b.idx[1 - place_b]
        for x, y in ((a, b), (b, a)):
            if x.kind == "i" and y.kind == "t" and self.inside[x.label][1].key == self._plain(y.label):
                places = (x.idx.index(i), y.idx.index(i))
                if places in ((1, 0), (0, 1)):
                    return x.idx[1 - places[0]], y.idx[1 - places[1]]
        return None

    def _plain(self, name: str) -> str:
        return collect(single(Factor("t", name, (0, 1))).terms).key


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
        sums.append(make_term(Fraction(1), dict(group), {i: sizes[i] for i in reached}))
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
