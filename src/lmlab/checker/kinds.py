"""The kinds that the values of a given may be of, and the distributions of random ones."""

from __future__ import annotations

KINDS = frozenset(["positive", "nonzero", "fraction", "unit", "simplex", "onehot", "symmetric", "orthogonal"])
KINDS |= {"permutation", "integer", "binary", "definite"}
DISTRIBUTIONS: dict[str, tuple[int, ...]] = {  # how many arguments each may take
    "normal": (2,),
    "uniform": (0, 2),  # uniform{1, 2, 3} or uniform(a, b)
    "finite": (0,),  # finite{value: probability, ...}
    "bernoulli": (1,),
    "categorical": (1,),
    "rademacher": (0,),
    "onehot": (0, 1),  # onehot(p): a random row that is 1 at one place, with probabilities p
}
KIND_WORDS = KINDS | frozenset(DISTRIBUTIONS)
