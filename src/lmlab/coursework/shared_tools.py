"""Small tools the checks share: formulas as text, estimates with their confidence, attention, and numbers as one reads them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import sympy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lmlab.interface import Learner

SIGMAS = 6.0  # half-width of every interval, in standard errors
CONFIDENCE = math.erf(SIGMAS / math.sqrt(2))
NOTE = f"(± is {SIGMAS:g} standard errors: confidence {100 * CONFIDENCE:.7f} %.)"
REAL = "gxz"  # letters of formulas that may be negative; all others stand for positive numbers


@cache
def letter(name: str) -> sympy.Symbol:
    """The symbol a formula under test means by this letter: real for γ, x and z, else positive."""
    return sympy.Symbol(name, real=True) if name in REAL else sympy.Symbol(name, positive=True)


def letters(names: str) -> tuple[sympy.Symbol, ...]:
    """Several letters."""
    return tuple(letter(name) for name in names.split())


def formula(text: str) -> sympy.Expr:
    """A formula under test, read as symbolic mathematics. N, E, S and I mean nothing special."""
    read = sympy.sympify(text, locals={name: sympy.Symbol(name) for name in "NESIQCO"})
    return read.subs({symbol: letter(symbol.name) for symbol in read.free_symbols})


def value(text: str, **sizes: Any) -> sympy.Expr:
    """A formula under test at given values, exactly when the values are exact."""
    return formula(text).subs({letter(name): size for name, size in sizes.items()})


def number(text: str, **sizes: Any) -> float:
    """A formula under test at given values, as a float."""
    return float(value(text, **sizes))


def identical(left: str | sympy.Expr, right: str | sympy.Expr) -> bool:
    """Whether two formulas are the same, symbolically."""
    first, second = (formula(side) if isinstance(side, str) else side for side in (left, right))
    return bool(sympy.simplify(first - second) == 0)


def agree(said: str, count: Callable[..., int], cases: Iterable[Mapping[str, int]]) -> tuple[bool, list[str]]:
    """Whether a formula gives what is counted at all these sizes, and both numbers at each."""
    lines, right = [], True
    for sizes in cases:
        found, claimed = count(**sizes), int(value(said, **sizes))
        right &= found == claimed
        at = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        lines.append(f"{at}: counted {found:,}, formula {claimed:,}")
    return right, lines


def order_of_a_weighted_mean() -> sympy.Expr:
    """What exchanging two of any number of (weight, value) pairs changes in their weighted mean, symbolically."""
    w1, w2, v1, v2, rest_v, rest_w = letters("w1 w2 v1 v2 R Z")
    mean = (w1 * v1 + w2 * v2 + rest_v) / (w1 + w2 + rest_w)
    return sympy.simplify(mean.subs({w1: w2, w2: w1, v1: v2, v2: v1}, simultaneous=True) - mean)


def blocks(names: str, signs: tuple[int, int] = (1, 1)) -> tuple[bool, str]:
    """Whether [A B][X; Y] is ±A X ± B Y with these signs, for blocks of any size as symbols, and the product."""
    sizes = sympy.symbols("n p q m", integer=True, positive=True)
    shapes = ((0, 1), (0, 2), (1, 3), (2, 3))
    a, b, x, y = (
        sympy.MatrixSymbol(name, sizes[i], sizes[j]) for name, (i, j) in zip(names.split(), shapes, strict=True)
    )
    product = sympy.block_collapse(sympy.BlockMatrix([[a, b]]) * sympy.BlockMatrix([[x], [y]]))
    said = signs[0] * a * x + signs[1] * b * y
    evidence = f"With blocks of any size as symbols: [{a} {b}][{x}; {y}] = {product}."
    return product in (said, sympy.BlockMatrix([[said]])), evidence


def orthogonal(size: int, seed: int) -> Tensor:
    """A random orthogonal matrix."""
    basis: Tensor = torch.linalg.qr(normals(seed, size, size))[0]
    return basis


def parameters(module: nn.Module) -> int:
    """Learned numbers in a module, tied ones once."""
    if isinstance(module, Learner):
        return module.parameters_count
    return sum(weight.numel() for weight in module.parameters())


def generator(seed: int) -> np.random.Generator:
    """Random numbers that are the same on every run."""
    return np.random.default_rng(seed)


def normals(seed: int, *shape: int) -> Tensor:
    """Standard normal float64 numbers, the same on every run."""
    return torch.from_numpy(generator(seed).standard_normal(shape))


def zeros(*shape: int) -> Tensor:
    """Float64 zeros."""
    return torch.zeros(*shape, dtype=torch.float64)


def eye(size: int) -> Tensor:
    """The float64 identity."""
    return torch.eye(size, dtype=torch.float64)


def seeded(make: Callable[[], Any], seed: int = 0) -> Any:
    """What `make` builds with torch's generator set to a seed, which is put back afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step of an optimizer down the gradient of a loss."""
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()


def attention(x_ND: Tensor, seed: int, heads: int = 1, causal: bool = False) -> Tensor:
    """Multi-head self-attention (bishop12 12.19) with fixed random weights and no positions, float64."""
    d = x_ND.shape[1]
    w = normals(seed, 4, d, d) / math.sqrt(d)
    q, k, v = (torch.stack((x_ND @ w[i]).chunk(heads, dim=1)) for i in range(3))
    out_HND = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return torch.cat(list(out_HND), dim=1) @ w[3]


def attention_weights(d: int, scale: float, draws: int, keys: int = 16) -> tuple[Tensor, Tensor]:
    """Softmax weights of standard normal queries over standard normal keys, and the keys."""
    q, k = normals(d, draws, 1, d), normals(d + 1, draws, keys, d)
    return torch.softmax((q @ k.mT)[:, 0] * scale, dim=1), k


@dataclass(frozen=True)
class Estimate:
    """A mean over independent samples with its interval at `CONFIDENCE`."""

    mean: float
    half_width: float

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.half_width

    def contains(self, number: float) -> bool:
        """Whether the number lies in the interval."""
        return self.low <= number <= self.high

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.half_width:.2g}"


def estimate(samples: NDArray[Any] | Tensor) -> Estimate:
    """The mean of independent samples and how far the true mean can be from it."""
    array = np.asarray(samples, dtype=np.float64).ravel()
    return Estimate(float(array.mean()), SIGMAS * float(array.std(ddof=1)) / math.sqrt(len(array)))


def gap(left: Tensor | NDArray[Any], right: Tensor | NDArray[Any]) -> float:
    """Largest absolute difference between two arrays."""
    return float(np.abs(np.asarray(left) - np.asarray(right)).max())


def in_greek(expression: sympy.Expr | str) -> str:
    """A formula in l, g and sigma with the letters the documents use: λ, γ and σ."""
    text = str(expression)
    for name, greek in (("l", "λ"), ("g", "γ"), ("sigma", "σ")):
        text = re.sub(rf"\b{name}\b", greek, text)
    return text


def yes(flag: object) -> str:
    """How evidence says whether something is so."""
    return "yes" if flag else "no"


def row(numbers: Iterable[Any], form: str = "{}") -> str:
    """Numbers side by side."""
    return ", ".join(form.format(number) for number in numbers)


def listed(pairs: Mapping[Any, Any] | Iterable[tuple[Any, Any]], form: str = "{}: {}") -> str:
    """Pairs as one readable line."""
    items = pairs.items() if isinstance(pairs, Mapping) else pairs
    return "; ".join(form.format(key, item) for key, item in items)
