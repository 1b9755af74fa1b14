"""What a function of the language is: one record that reading, shapes, numbers, symbols and hints all look into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, Literal, Protocol

from lmlab_derive.sizes import Shape, Size
from lmlab_derive.tree import Call, Node

Array = Any  # of numpy, with doubles, long decimals, fractions or polynomials; or a dual one
Formula = Callable[[Node, Node], Node]  # from the value v = f(u) and u itself
Computed = Callable[[Any, Any], Any]  # from the library (numpy, mpmath) and the argument


class Kink(Enum):
    """Where a function is not smooth: nowhere, at the edge of where it is defined, where it bends, where it jumps."""

    NONE = 0
    EDGE = 1
    BEND = 2
    JUMP = 3


class ShapeReader(Protocol):
    """What a shape rule may ask about the arguments of a call."""

    def of(self, node: Node) -> Shape:
        """The shape of an expression."""

    def size(self, node: Node) -> Size:
        """An expression used as a size."""


class Arithmetic(ABC):
    """The arithmetic of one kind of array. Meanings are NumPy's; operators are those of the arrays themselves."""

    library: Any  # numpy, for all of them
    notes_kinks: bool = False  # whether anyone listens to `near`
    way: str  # which of a record's ways of computing it takes: numpy, long or exact

    def wrap(self, value: Any) -> Array:
        """An array, where a library gives a bare number."""
        return value

    def near(self, distance: Array, edge: bool = False) -> None:  # noqa: B027
        """Take note of how far the nearest kink is (relu at 0, a tie of max); most arithmetic does not care."""

    @abstractmethod
    def number(self, value: Fraction | str) -> Array:
        """A scalar: an exact fraction, or "pi"."""

    @abstractmethod
    def from_numpy(self, raw: Any) -> Array:
        """An array of doubles, taken over exactly."""

    @abstractmethod
    def entrywise(self, function: Entrywise, value: Array) -> Array:
        """One function of every entry."""

    @abstractmethod
    def divide(self, left: Array, right: Array) -> Array:
        """left / right."""

    @abstractmethod
    def raise_to(self, left: Array, right: Array) -> Array:
        """left ** right with an array as exponent."""

    @abstractmethod
    def power(self, base: Array, exponent: Fraction) -> Array:
        """A power written as a number."""

    @abstractmethod
    def determinant(self, value: Array) -> Array:
        """Of a square matrix."""

    @abstractmethod
    def inverse(self, value: Array) -> Array:
        """Of a square matrix; nan when there is none."""

    @abstractmethod
    def cholesky(self, value: Array) -> Array:
        """The lower triangle L with L L.T = value; nan when there is none."""

    @abstractmethod
    def full(self, shape: tuple[int, ...], value: int) -> Array:
        """An array filled with one number."""

    @abstractmethod
    def eye(self, size: int) -> Array:
        """The identity matrix."""


class At(Protocol):
    """The point at which a call is computed."""

    ops: Any

    def evaluate(self, node: Node) -> Array:
        """The value of an expression."""

    def size(self, node: Node) -> int:
        """The value of an expression used as a size."""

    def is_counted(self, node: Node) -> bool:
        """Whether an expression is one number, made of indices and sizes alone."""

    def extents(self, node: Node) -> tuple[int, ...]:
        """The shape of an expression in numbers."""


@dataclass(frozen=True, eq=False)
class Function(ABC):
    """A function of the language. What is left out is not so: no axis, no kink, no usual slip."""

    name: str
    _: KW_ONLY
    arguments: int | None = 1  # None: one or more
    aliases: tuple[str, ...] = ()  # other spellings
    takes_axis: bool = False
    takes_keepdims: bool = False
    takes_sizes: bool = False  # its arguments are sizes, as in eye(n)
    is_method: bool = True  # x.name() is understood
    is_broadcast: bool = False  # entry i of the result is made of entry i of each argument, after broadcasting
    kink: Kink = Kink.NONE
    degree: Literal["same", "sum", "double"] | None = None  # of a polynomial of its arguments; "same": it is linear
    slope: Formula | None = None  # its derivative
    confused_with: tuple[str, ...] = ()  # what is written by mistake for it
    sign_slips: bool = False  # a sign inside is easily lost
    symbol: str = ""  # how mathematics writes its name

    @abstractmethod
    def shape(self, call: Call, shapes: ShapeReader) -> Shape:
        """The shape of the result; a `Refusal` when the arguments do not fit."""

    @abstractmethod
    def value(self, call: Call, at: At) -> Array:
        """The result at a point."""

    @property
    def is_linear(self) -> bool:
        """Whether the mean of f(x) is f of the mean of x, whatever x is."""
        return self.degree == "same"


@dataclass(frozen=True, eq=False)
class Entrywise(Function):
    """A function of every entry. Where nothing else is said, each library has it under its own name.

    For proofs: `means` writes it with other functions, `by_exp` does so where everything is brought to exp; `mirror` is
    f(-u) from v = f(u) and u; `at_zero` is its value there; `positive`: it is greater than 0 wherever it is defined.
    """

    _: KW_ONLY
    is_broadcast: bool = True
    numpy: Computed | None = None
    long: Computed | None = None  # of one long decimal
    exact: Computed | None = None  # of one fraction; None: it leaves the fractions
    lowest: float = float("-inf")  # long decimals below this have no value, and those larger than `largest`
    largest: float = float("inf")
    kink_distance: Computed = lambda library, x: x
    means: Callable[[Node], Node] | None = None
    by_exp: Callable[[Node], Node] | None = None
    mirror: Formula | None = None
    at_zero: int | None = None
    positive: bool = False
    steep: int = 0  # k: its terms grow or vanish like exp(u**k), so that the largest of them hides the others

    def shape(self, call: Call, shapes: ShapeReader) -> Shape:
        """That of the argument."""
        return shapes.of(call.args[0])

    def value(self, call: Call, at: At) -> Array:
        """As the arithmetic has it."""
        return at.ops.entrywise(self, at.evaluate(call.args[0]))

    def computed(self, way: str, library: Any, x: Any) -> Any:
        """The function by one of the ways: numpy (of arrays), long or exact (of one number)."""
        own: Computed | None = getattr(self, way)
        return own(library, x) if own else getattr(library, self.name)(x)
