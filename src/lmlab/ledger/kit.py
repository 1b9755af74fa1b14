"""Small tools the checks share: formulas as text, estimates with their confidence, and derivations put to the checker."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
import torch
from torch import Tensor, nn

SIGMAS = 6.0  # half-width of every interval, in standard errors
CONFIDENCE = math.erf(SIGMAS / math.sqrt(2))
NOTE = f"(± is {SIGMAS:g} standard errors: confidence {100 * CONFIDENCE:.7f} %.)"


def formula(text: str) -> sympy.Expr:
    """A formula under test, read as symbolic mathematics. All letters are symbols: N, E, S and I mean nothing special."""
    letters = {name: sympy.Symbol(name) for name in ("N", "E", "S", "I", "Q", "C", "O")}
    return sympy.sympify(text, locals=letters)


def value(text: str, **sizes: Any) -> sympy.Expr:
    """A formula under test at given values, exactly when the values are exact."""
    return formula(text).subs({sympy.Symbol(name): size for name, size in sizes.items()})


def identical(left: str | sympy.Expr, right: str | sympy.Expr) -> bool:
    """Whether two formulas are the same, symbolically."""
    first = formula(left) if isinstance(left, str) else left
    second = formula(right) if isinstance(right, str) else right
    return sympy.simplify(first - second) == 0


def parameters(module: nn.Module) -> int:
    """Learned numbers in a module, tied ones once."""
    return sum(weight.numel() for weight in module.parameters())


def generator(seed: int) -> np.random.Generator:
    """Random numbers that are the same on every run."""
    return np.random.default_rng(seed)


def normals(seed: int, *shape: int) -> Tensor:
    """Standard normal float64 numbers, the same on every run."""
    return torch.from_numpy(generator(seed).standard_normal(shape))


@dataclass(frozen=True)
class Estimate:
    """A mean over independent samples with its interval at `CONFIDENCE`."""

    mean: float
    half_width: float
    samples: int

    def contains(self, number: float) -> bool:
        """Whether the number lies in the interval."""
        return abs(number - self.mean) <= self.half_width

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.half_width:.2g}"


def estimate(samples: np.ndarray | Tensor) -> Estimate:
    """The mean of independent samples and how far the true mean can be from it."""
    array = np.asarray(samples, dtype=np.float64).ravel()
    return Estimate(float(array.mean()), SIGMAS * float(array.std(ddof=1)) / math.sqrt(len(array)), len(array))


def gap(left: Tensor | np.ndarray, right: Tensor | np.ndarray) -> float:
    """Largest absolute difference between two arrays."""
    return float(np.abs(np.asarray(left) - np.asarray(right)).max())


def in_greek(expression: sympy.Expr | str) -> str:
    """A formula in l, g and sigma with the letters the documents use: λ, γ and σ."""
    text = str(expression)
    for name, letter in (("l", "λ"), ("g", "γ"), ("sigma", "σ")):
        text = re.sub(rf"\b{name}\b", letter, text)
    return text


def yes(flag: object) -> str:
    """How evidence says whether something is so."""
    return "yes" if flag else "no"


def listed(pairs: Mapping[Any, Any] | Iterable[tuple[Any, Any]], form: str = "{}: {}") -> str:
    """Pairs as one readable line."""
    items = pairs.items() if isinstance(pairs, Mapping) else pairs
    return "; ".join(form.format(key, item) for key, item in items)
