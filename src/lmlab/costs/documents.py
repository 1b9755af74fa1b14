"""The counts of the course documents, as written there, beside ours: what they leave out is computed, why is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy

from lmlab.costs.symbolic import read_formula
from lmlab.formulas import EMBEDDING, Part, weights

WHOLE = "all of it"


@dataclass(frozen=True)
class Written:
    """A formula of a document for a part of one of our models."""

    source: str
    part: str  # a name of `Part`, or WHOLE
    formula: str
    lacks: str  # what the document leaves out, in words; empty: nothing


BEGIN = "the vector of the begin symbol, which stands before the first word"
WRITTEN: dict[str, list[Written]] = {
    "feedforward": [
        Written("week2 E1", "hidden layer", "((N-1)*d + 1)*d_h", ""),
        Written("week2 E1", WHOLE, "V*(d + d_h) + ((N-1)*d + 1)*d_h", BEGIN),
    ],
    "attention": [
        Written("week2 E3", "attention", "2*d_k*d + d_v*d", ""),
        Written("week2 E4", "hidden layer", "(d_v + 1)*d_h", ""),
        Written("week2 E4", WHOLE, "V*(d + d_h) + 2*d_k*d + d_v*d + (d_v + 1)*d_h", BEGIN),
    ],
    "bert": [
        Written("bishop12 12.16", EMBEDDING, "V*D", "begin, end and mask, which stand beside the vocabulary here"),
        Written("bishop12 12.16", "attention", "4*D**2", "biases (4096 for BERT-Large, as it says) and the norm"),
        Written("bishop12 12.16", "feed-forward", "2*D*F + F + D", "the norm"),
        Written(
            "bishop12 12.16",
            WHOLE,
            "V*D + L*(4*D**2 + 2*D*F + F + D)",
            "biases of attention, all norms, the pooler, and positions and segments, which BERT learns",
        ),
    ],
    "gpt": [Written("bishop12 12.6", "attention", "3*D**2", "the matrix behind the heads, and the norm")],
}


@dataclass(frozen=True)
class Beside:
    """What a document counts, and what of ours it leaves out."""

    source: str
    part: str
    formula: str
    left_out: str  # ours less theirs, as a formula; "0": nothing
    why: str


def beside(model: str, parts: Sequence[Part]) -> list[Beside]:
    """The documents' formulas for a model whose parts, in symbols, are these."""
    found = []
    for said in WRITTEN.get(model, []):
        one_of = {part.name: part.weights for part in parts} | {WHOLE: weights(parts)}
        rest = sympy.factor_terms(sympy.expand(one_of[said.part] - read_formula(said.formula)))
        why = said.lacks + ("; and learned positions" if said.lacks == BEGIN and "positions" in one_of else "")
        found.append(Beside(said.source, said.part, said.formula, sympy.sstr(rest), why if rest != 0 else ""))
    return found


def table_entries(vocab_size: int, order: int) -> tuple[int, int]:
    """(entries, free numbers) of a whole table of p(x_n | history), bishop12 12.12: V^n and V^(n-1) (V - 1)."""
    entries, free = read_formula("V**n"), read_formula("V**(n-1)*(V-1)")
    at = {symbol: {"V": vocab_size, "n": order}[symbol.name] for symbol in free.free_symbols}
    return int(entries.subs(at)), int(free.subs(at))
