"""Counts as textbooks write them, beside ours: what they leave out is computed, why is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy

from lmlab.costs.symbolic import read_formula
from lmlab.formulas import EMBEDDING, HEAD, Part, weights

WHOLE = "all of it"
TEXTBOOK = "textbook"
QUERIES_KEYS_VALUES = "3*D**2"  # weights of self-attention without the matrix behind the heads
BENGIO = "Bengio 2003"  # without its direct connections and its output biases


@dataclass(frozen=True)
class Written:
    """A textbook formula for a part of one of our models."""

    source: str
    part: str  # a name of `Part`, or WHOLE
    formula: str
    lacks: str  # what the formula leaves out, in words; empty: nothing
    shared: str | None = (
        None  # the letter of heads that share keys and values, where the formula has some for every head
    )


BEGIN = "the vector of the begin symbol, which stands before the first word"
WRITTEN: dict[str, list[Written]] = {
    "feedforward": [
        Written(BENGIO, EMBEDDING, "V*d", BEGIN),
        Written(BENGIO, "hidden layer", "((N-1)*d + 1)*d_h", ""),
        Written(BENGIO, HEAD, "V*d_h", ""),
        Written(BENGIO, WHOLE, "V*(d + d_h) + ((N-1)*d + 1)*d_h", BEGIN),
    ],
    "attention": [
        Written(TEXTBOOK, "attention", "2*d_k*d + d_v*d", ""),
        Written(TEXTBOOK, "hidden layer", "(d_v + 1)*d_h", ""),
        Written(TEXTBOOK, WHOLE, "V*(d + d_h) + 2*d_k*d + d_v*d + (d_v + 1)*d_h", BEGIN),
    ],
    "bert": [
        Written(TEXTBOOK, EMBEDDING, "V*D", "begin, end and mask, which stand beside the vocabulary here"),
        Written(TEXTBOOK, "attention", "4*D**2", "biases (4096 for BERT-Large) and the norm"),
        Written(TEXTBOOK, "feed-forward", "2*D*F + F + D", "the norm"),
        Written(
            TEXTBOOK,
            WHOLE,
            "V*D + L*(4*D**2 + 2*D*F + F + D)",
            "biases of attention, all norms, the pooler, and positions and segments, which BERT learns",
        ),
    ],
    "gpt": [Written(TEXTBOOK, "attention", QUERIES_KEYS_VALUES, "the matrix behind the heads, and the norm", "K")],
}


@dataclass(frozen=True)
class Beside:
    """What a textbook formula counts, and what of ours it leaves out."""

    source: str
    part: str
    formula: str
    number: int | None  # that it gives here; None: it has a letter that this model has not
    left_out: str  # ours less theirs, as a formula; "0": nothing
    left_out_number: int | None
    why: str


def beside(model: str, parts: Sequence[Part], values: Mapping[sympy.Symbol, int]) -> list[Beside]:
    """The textbook formulas for a model whose parts, in symbols, are these. values: what the symbols stand for."""
    found, letters = [], {letter.name for letter in values}
    for said in WRITTEN.get(model, []):
        one_of = {part.name: part.weights for part in parts} | {WHOLE: weights(parts)}
        theirs = read_formula(said.formula)
        rest = sympy.factor_terms(sympy.expand(one_of[said.part] - theirs))
        why = said.lacks + ("; and learned positions" if said.lacks == BEGIN and "positions" in one_of else "")
        why += "; it has keys and values for every head" if said.shared in letters else ""
        numbers = [number.subs(values) for number in (theirs, rest)]
        number, left_out = (int(n) if n.is_Integer else None for n in numbers)
        found.append(
            Beside(said.source, said.part, said.formula, number, sympy.sstr(rest), left_out, why if rest != 0 else "")
        )
    return found


def as_dense(width: int, tokens: int) -> str:
    """A sentence: what self-attention saves beside a dense layer over all vectors."""
    dense, shared = read_formula("N**2*D**2"), read_formula(QUERIES_KEYS_VALUES)
    at = {symbol: {"N": tokens, "D": width}[symbol.name] for symbol in dense.free_symbols}
    return (
        f"{TEXTBOOK}: a dense layer from all {tokens:,} vectors to all would have {dense} = {int(dense.subs(at)):,}"
        f" parameters and as many biases as outputs; queries, keys and values have {shared} = {int(shared.subs(at)):,},"
        " however long the text"
    )


def whole_tables(vocab_size: int, order: int) -> list[str]:
    """Sentences: the tables that an n-gram model would fill if every n-gram occurred."""

    def number(formula: str) -> int:
        read = read_formula(formula)
        return int(
            read.subs({symbol: {"V": vocab_size, "n": order, "L": order}[symbol.name] for symbol in read.free_symbols})
        )

    entries, free = "V**n", "V**(n-1)*(V-1)"
    whole, shorter = "V**L - 1", "V**(L-1) - 1"
    return [
        f"{TEXTBOOK}: a whole table of p(x_n | {order - 1} tokens) would have {entries} = {number(entries):,} entries,"
        f" {free} = {number(free):,} of them free; it leaves out what is needed at the beginning of a text, where fewer"
        " tokens come before",
        f"{TEXTBOOK}: stored as p_L and p_(L-1) it would be {whole} = {number(whole):,} and {shorter} ="
        f" {number(shorter):,} numbers; it leaves out that only n-grams that occur have to be stored, and what backing off"
        " weighs them with",
    ]
