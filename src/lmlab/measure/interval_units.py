"""What is sampled: the nats and bytes of K models in U pieces of one text, and how much of an error each piece may carry.

An interval needs to know which pieces of a text may be taken as independent, and that depends on what the interval is for.

    "kind"    Other text of this kind. Documents are independent, so the error is estimated from how documents differ. That
              includes the error of measuring only some stretches of each.
    "file"    The whole file that the part was dealt from in blocks. One block was drawn from each stratum of the file, so the
              error is estimated from the differences of neighbouring blocks.
    "part"    The whole of the part, of which some stretches were measured, one from each stratum of neighbouring places. The
              error is estimated like that of blocks; it is zero where everything was measured.
    "around"  The text around a stretch that was measured whole, where there are no blocks and documents are too few: the mean
              over the five times longer text that contains the stretch (see `drift`).

Whatever the design, it ends in a table of contributions: independent, of mean zero, in bits per byte, such that the variance
of a model's number, or of a difference, is the sum of their squares.

Shapes: K models, U units, n contributions, q waves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lmlab.measure.drift import WAVES, waves
from lmlab.page.numbers import counted
from lmlab.text.splitting import FEWEST_DOCUMENTS

About = Literal["kind", "file", "part", "around"]

FEWEST_UNITS = 16  # below this no interval is given
FEWEST_BLOCKS = 8  # of a file: each was drawn by itself, so fewer suffice than of neighbouring cells

SENTENCES: dict[About, str] = {
    "kind": "for other text of this kind, from how the documents differ",
    "file": "for the whole file, read in blocks like those held out, each from its own beginning",
    "part": "for the whole of the part, of which stretches were measured",
    "around": "for the text around this stretch: the mean over a five times longer text that contains it",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """Nats and bytes of K models in U pieces of one text, in its order. Sums are float64."""

    nats_KU: np.ndarray
    bytes_KU: np.ndarray  # of the tokens that count; tokenizers may differ by a token at an edge
    document_U: np.ndarray  # int64: which document a unit lies in
    share: float = 1.0  # of the text's places that were measured
    block_share: float | None = None  # of a file, where the documents are blocks spread over it; else None

    @property
    def bits_K(self) -> np.ndarray:
        """Bits per byte of each model."""
        return self.nats_KU.sum(axis=1) / (math.log(2.0) * self.bytes_KU.sum(axis=1))

    @property
    def documents(self) -> float:
        """Documents of equal size that would weigh as much as those here."""
        bytes_D = np.bincount(self.document_U, weights=self.bytes_KU[0])
        return float(bytes_D.sum() ** 2 / (bytes_D**2).sum())

    @property
    def about(self) -> About:
        """The most that an interval can be for."""
        if self.block_share is not None:
            return "file"
        if self.documents >= FEWEST_DOCUMENTS:
            return "kind"
        return "part" if self.share < 1.0 else "around"

    @property
    def too_few(self) -> str:
        """Why there is no interval, in words; empty where there is one."""
        enough = len(self.document_U) >= FEWEST_UNITS
        if self.block_share is not None:
            enough = len(np.unique(self.document_U)) >= FEWEST_BLOCKS
        if enough:
            return ""
        size = int(self.bytes_KU[0].sum())
        return f"the text is too short for a confidence interval ({counted(size, 'byte')})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Contributions:
    """The table of contributions of one design, and how many degrees of freedom it has."""

    about: About
    table_nK: np.ndarray  # bits per byte
    freedom: int
    slow: bool = False  # the rows are waves, slowest first: their variance is extrapolated to slower ones (see `drift`)


def contributions(units: Units, about: About) -> Contributions:
    """How much of an error each independent piece may carry, for what the interval is to be about."""
    total_K1 = units.bytes_KU.sum(axis=1, keepdims=True)
    per_byte_K1 = units.nats_KU.sum(axis=1, keepdims=True) / total_K1
    # the first-order change of a quotient of sums by each unit; they sum to zero
    error_UK = ((units.nats_KU - per_byte_K1 * units.bytes_KU) / (total_K1 * math.log(2.0))).T
    if about == "kind":
        return _of_documents(units, error_UK)
    if about == "file":
        unmeasured = 1.0 - (units.block_share or 0.0) * units.share
        return _of_neighbours("file", _by_document(units, error_UK), unmeasured)
    if about == "part":
        return _of_neighbours("part", error_UK, 1.0 - units.share)
    q = min(WAVES, len(error_UK) // 2)
    return Contributions(about="around", table_nK=waves(error_UK, q) / math.sqrt(q), freedom=q, slow=True)


def _by_document(units: Units, error_UK: np.ndarray) -> np.ndarray:
    """The sum of the errors of each document's units, in order (D×K)."""
    _, document_U = np.unique(units.document_U, return_inverse=True)
    error_DK = np.zeros((int(document_U.max()) + 1, error_UK.shape[1]))
    np.add.at(error_DK, document_U, error_UK)
    return error_DK


def _of_documents(units: Units, error_UK: np.ndarray) -> Contributions:
    """The jackknife over documents: each left out in turn, so that a large document is not taken for an average one."""
    error_DK = _by_document(units, error_UK)
    D = len(error_DK)
    assert D > 1, "one document says nothing of how documents differ"
    weight_D = _by_document(units, (units.bytes_KU[:1] / units.bytes_KU[0].sum()).T)[:, 0]
    table = error_DK / (1.0 - weight_D[:, None]) * math.sqrt((D - 1) / D)
    return Contributions(about="kind", table_nK=table, freedom=max(1, round(units.documents) - 1))


def _of_neighbours(about: About, error_UK: np.ndarray, unmeasured: float) -> Contributions:
    """One unit was drawn from each stratum: half the mean square of neighbours' differences is the variance of one.

    Neighbouring differences share a unit, so U - 1 of them are worth two thirds as many degrees of freedom (von Neumann 1941).
    """
    U = len(error_UK)
    scale = math.sqrt(max(0.0, unmeasured) * U / (2 * (U - 1)))
    freedom = max(1, round(2 * (U - 1) / 3))
    return Contributions(about=about, table_nK=np.diff(error_UK, axis=0) * scale, freedom=freedom)
