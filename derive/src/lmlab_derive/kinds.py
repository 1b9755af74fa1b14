"""The words for the kinds that the values of a given may be of."""

from __future__ import annotations

from lmlab_derive.distributions import DISTRIBUTIONS

KINDS = frozenset(["positive", "nonzero", "fraction", "unit", "simplex", "onehot", "symmetric", "orthogonal"])
KINDS |= {"permutation", "integer", "binary", "definite"}
KIND_WORDS = KINDS | frozenset(DISTRIBUTIONS)
# kinds before a bracket alone
ALSO_NAMES = frozenset(["beta", "gamma", "laplace", "poisson", "dirichlet", "exponential"])
