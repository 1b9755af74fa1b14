"""The formulas of a model: its own arithmetic (`Learner.parts`), given symbols instead of numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import sympy

from lmlab.formulas import Part, Shape, Size
from lmlab.interface import CountModel, Learner

VOCABULARY, ROWS, TOKENS = "V", "B", "T"  # what formulas call these


def symbol(name: str) -> sympy.Symbol:
    """A size: a whole number from 1 up."""
    return sympy.Symbol(name, integer=True, positive=True)


def read_formula(text: str) -> sympy.Expr:
    """A formula as it is typed, every name in it a size."""
    names = {name: symbol(name) for name in map(str, sympy.sympify(text, locals=_NO_CONSTANTS).free_symbols)}
    return sympy.sympify(text, locals=names)


_NO_CONSTANTS = {name: sympy.Symbol(name) for name in "BCDEFHIKLMNOQSTVXN"}  # sympy has meanings of its own for some


def written(expression: Size) -> sympy.Expr:
    """A formula as one would write it: what all terms share stands outside."""
    return sympy.factor_terms(sympy.sympify(expression))


def shortened(expression: sympy.Expr) -> tuple[sympy.Expr, dict[sympy.Symbol, sympy.Expr]]:
    """A formula with a letter for each smallest-of and rounded-up in it, and what these letters stand for."""
    letters: dict[sympy.Symbol, sympy.Expr] = {}
    for letter in "pqrs":
        inner = [found for found in expression.atoms(sympy.Min, sympy.ceiling) if not found.args[0].atoms(sympy.Min)]
        if not inner:
            break
        found = min(inner, key=sympy.default_sort_key)
        letters[symbol(letter)] = found
        expression = expression.subs(found, symbol(letter))
    return written(expression), letters


def is_size(value: object) -> bool:
    """Whether a setting is a number of things, rather than a choice or a share."""
    return isinstance(value, int) and not isinstance(value, bool)


def with_symbols(config: Any, letters: Mapping[str, str]) -> SimpleNamespace:
    """The config with a symbol (or what a document writes, such as N - 1) for every size; choices stay."""
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    return SimpleNamespace(
        **{name: read_formula(letters.get(name, name)) if is_size(value) else value for name, value in values.items()}
    )


def symbolic_parts(cls: type[Learner], config: Any) -> list[Part]:
    """The parts of a model of this config, in symbols, and what one row of T tokens costs."""
    return cls.parts(with_symbols(config, cls.letters), symbol(VOCABULARY), Shape(1, symbol(TOKENS)))


def symbolic_stored(cls: type[CountModel], config: Any, order: int) -> list[Part]:
    """What a model that counts stores, in symbols: c_k is how many different k-grams the text has."""
    return cls.stored(config, symbol(VOCABULARY), [symbol(f"c_{k}") for k in range(1, order + 1)])


def values_of(config: Any, letters: Mapping[str, str], vocab_size: int, shape: Shape) -> dict[sympy.Symbol, int]:
    """What every symbol of a model's formulas stands for."""
    found = {symbol(VOCABULARY): vocab_size, symbol(ROWS): shape.rows, symbol(TOKENS): shape.tokens}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if not is_size(value):
            continue
        expression = read_formula(letters.get(field.name, field.name))
        (letter,) = expression.free_symbols
        found[letter] = value - int(expression.subs(letter, 0))  # N - 1 is 4: N is 5
    return found
