"""How position n becomes position n + k: by a rotation that knows k alone (Vaswani 2017).

The encodings are the lab's own (layers/positions.py), sinusoidal ones added to a token's vector and rotary ones that turn
queries and keys. Shapes: T positions, D width; a pair is a sine and the cosine of the same frequency.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lmlab.config import Mistake
from lmlab.layers.attention import split_heads
from lmlab.layers.positions import rotary_tables, sinusoidal_table
from lmlab.records import JsonRecord

MOST_WIDTH, MOST_LENGTH = 512, 2000


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A sine and a cosine of one frequency: a hand of a clock."""

    wavelength: float  # positions of a full turn
    turn_degrees: float  # by which an offset of k turns it


@dataclass(frozen=True, kw_only=True)
class Missed:
    """The largest entry of PE(n + k) that the best matrix M_k misses, M_k PE(n), over all n, for one offset k."""

    offset: int
    with_cosines: float
    sines_alone: float


@dataclass(frozen=True, kw_only=True)
class Positions(JsonRecord):
    """What encodings of position keep of distance.

    similarity: PE(n)·PE(n + d) for d = 0, 1, …, which is the same for every n (its largest deviation beside it).
    rotary: the score of one query at n and one key at n + d, turned by their positions; likewise.
    """

    width: int
    length: int
    offset: int
    seed: int
    pairs: tuple[Pair, ...]
    rotation_error: float  # largest entry of R_k PE(n) - PE(n + k), over all n
    missed: tuple[Missed, ...]
    similarity: tuple[float, ...]
    similarity_deviation: float
    rotary: tuple[float, ...]
    rotary_deviation: float

    @property
    def listed_pairs(self) -> dict[int, Pair]:
        """Some by their numbers, for a table: the fastest, the slowest and what lies between."""
        count = len(self.pairs)
        return {i: self.pairs[i] for i in sorted({0, 1, 2, count // 4, count // 2, count - 1}) if i < count}


def positions(*, width: int, length: int, offset: int, seed: int) -> Positions:
    """The rotation by `offset` positions, what becomes of it without cosines, and what dot products see of distance."""
    _check(width, length, offset)
    table_TD = sinusoidal_table(length + offset, width).double()
    turned_TD = table_TD[:length] @ rotation(width, offset).T
    frequency = _frequencies(width)
    similarity, similarity_deviation = _by_distance(table_TD[:length] @ table_TD[:length].T)
    rotary, rotary_deviation = _by_distance(rotary_scores(width, length, seed))
    return Positions(
        width=width,
        length=length,
        offset=offset,
        seed=seed,
        pairs=tuple(
            Pair(wavelength=float(2 * torch.pi / w), turn_degrees=float(torch.rad2deg(offset * w))) for w in frequency
        ),
        rotation_error=float((turned_TD - table_TD[offset:]).abs().max()),
        missed=tuple(_missed(width, length, k) for k in range(1, offset + 1)),
        similarity=similarity,
        similarity_deviation=similarity_deviation,
        rotary=rotary,
        rotary_deviation=rotary_deviation,
    )


def rotation(width: int, offset: int) -> Tensor:
    """R_k, D×D: a block (cos kω, sin kω; -sin kω, cos kω) for each pair, and n nowhere in it."""
    angles = offset * _frequencies(width)
    cos, sin = angles.cos(), angles.sin()
    return torch.block_diag(
        *(torch.tensor([[c, s], [-s, c]], dtype=torch.float64) for c, s in zip(cos, sin, strict=True))
    )


def rotary_scores(width: int, length: int, seed: int) -> Tensor:
    """q_n·k_m of one random query and one random key, turned to every position by the lab's attention, T×T."""
    generator = torch.Generator().manual_seed(seed)
    packed = torch.randn(1, 1, 3, 1, width, generator=generator).expand(1, length, 3, 1, width).double()
    cos_TD, sin_TD = (table.double() for table in rotary_tables(length, width))
    q_BHTD, k_BHTD, _ = split_heads(packed, (cos_TD, sin_TD))
    return q_BHTD[0, 0] @ k_BHTD[0, 0].T


def _frequencies(width: int) -> Tensor:
    return torch.tensor(10000.0, dtype=torch.float64) ** (-2 * torch.arange(width // 2, dtype=torch.float64) / width)


def _by_distance(scores_TT: Tensor) -> tuple[tuple[float, ...], float]:
    """The mean of each diagonal, n against n + d, and the largest deviation of an entry from the mean of its own."""
    diagonals = [scores_TT.diagonal(d) for d in range(len(scores_TT))]
    means = tuple(float(diagonal.mean()) for diagonal in diagonals)
    return means, max(float((diagonal - mean).abs().max()) for diagonal, mean in zip(diagonals, means, strict=True))


def _missed(width: int, length: int, offset: int) -> Missed:
    """By least squares. At n = 0 all sines are zero, and no matrix takes zero anywhere else."""
    with_cosines_TD = sinusoidal_table(length + offset, width).double()
    frequency = torch.tensor(10000.0, dtype=torch.float64) ** (-torch.arange(width, dtype=torch.float64) / width)
    sines_TD = torch.outer(torch.arange(length + offset, dtype=torch.float64), frequency).sin()

    def left(table_TD: Tensor) -> float:
        here, there = table_TD[:length], table_TD[offset : length + offset]
        best = torch.linalg.lstsq(here, there, driver="gelsd").solution
        return float((here @ best - there).abs().max())

    return Missed(offset=offset, with_cosines=left(with_cosines_TD), sines_alone=left(sines_TD))


def _check(width: int, length: int, offset: int) -> None:
    if not 2 <= width <= MOST_WIDTH or width % 2:
        raise Mistake(
            f"{{width}} is an even number from 2 to {MOST_WIDTH}: pairs of a sine and a cosine; got {width}",
            code="positions-width-odd",
            width=None,
        )
    if not 2 <= length <= MOST_LENGTH:
        raise Mistake(
            f"{{length}} is a number of positions from 2 to {MOST_LENGTH}; got {length}",
            code="positions-length-out-of-range",
            length=None,
        )
    if not 1 <= offset <= 100:
        raise Mistake(
            f"{{offset}} is a number of positions from 1 to 100; got {offset}",
            code="positions-offset-out-of-range",
            offset=None,
        )
