"""The functions and kinds of the derivation language, by family. What each computes is in `evaluate`; no torch here."""

from __future__ import annotations

ELEMENTWISE = frozenset(
    [
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "sigmoid",
        "tanh",
        "relu",
        "abs",
        "sign",
        "softplus",
        "silu",
        "erf",
        "log1p",
        "expm1",
        "square",
        "floor",
        "ceil",
        "round",
    ]
)
REDUCTIONS = frozenset(
    ["sum", "mean", "max", "min", "prod", "var", "std", "norm", "logsumexp"]
)  # over everything unless axis= is given
ALONG = frozenset(["softmax", "log_softmax", "cumsum"])  # keep the shape; along the last axis unless axis= is given
PAIRWISE = frozenset(["maximum", "minimum"])
MATRIX = frozenset(["trace", "det", "inv", "diag", "outer", "kron", "transpose", "dot", "vec", "tril", "triu"])
BUILDERS = frozenset(["ones", "zeros", "eye", "concat", "stack", "reshape", "shape"])
DERIVATIVES = frozenset(["jacobian", "grad", "hessian"])

ARITY: dict[str, int] = (
    dict.fromkeys(ELEMENTWISE | REDUCTIONS | ALONG, 1)
    | dict.fromkeys(PAIRWISE, 2)
    | {"trace": 1, "det": 1, "inv": 1, "diag": 1, "outer": 2, "kron": 2, "transpose": 1, "dot": 2, "vec": 1, "shape": 1}
    | {"where": 3, "eye": 1, "jacobian": 2, "grad": 2, "hessian": 2}
    | {"tril": 1, "triu": 1, "swapaxes": 3, "expand_dims": 1}
)
FUNCTIONS = frozenset(ARITY) | BUILDERS
TAKES_AXIS = REDUCTIONS | ALONG | {"concat", "expand_dims"}
TAKES_KEEPDIMS = REDUCTIONS

KINDS = frozenset(
    [
        "positive",
        "nonzero",
        "fraction",
        "unit",
        "simplex",
        "onehot",
        "symmetric",
        "orthogonal",
        "permutation",
        "integer",
        "binary",
        "definite",
    ]
)
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
