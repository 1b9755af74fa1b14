"""What varies: the nats and bytes of K models in U pieces of one text, and how much of an error each piece may carry.

An interval needs to know which pieces of a text may be taken as independent, and that depends on what it is for.

    "kind"    other text of this kind. Documents are independent, so the error is seen in how documents differ; whatever
              happens inside a document, also that only some of its stretches were measured, shows up there.
    "part"    the whole of the part, of which some stretches were measured. Stretches were drawn from strata of neighbours, so
              the error is seen in the differences of neighbours; and it is zero where everything was measured.
    "stretch" text like this very stretch, where all of it was measured and documents are too few to say how documents
              differ. Neighbours are alike, at every scale that the stretch shows. It is looked at as a curve, and the
              error is read off its slow waves (see `drift`). No method can tell from one piece of a text how other
              pieces of it differ, and real texts go on changing from piece to piece.

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

About = Literal["kind", "part", "stretch"]

FEWEST_UNITS = 16  # below this no interval is given
FEWEST_DOCUMENTS = 12  # of equal size, or unequal ones that weigh as much: fewer do not show how documents differ

SENTENCES: dict[About, str] = {
    "kind": "for other text of this kind, from how the documents differ",
    "part": "for the whole of the part, of which stretches were measured; documents are too few to say how others differ",
    "stretch": "for text like this very stretch; documents are too few to say how other text of this kind differs",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """Nats and bytes of K models in U pieces of one text, in its order. Sums are float64."""

    nats_KU: np.ndarray
    bytes_KU: np.ndarray  # of the tokens that count; tokenizers may differ by a token at an edge
    document_U: np.ndarray  # int64: which document a unit lies in
    share: float = 1.0  # of the text's places that were measured

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
        if self.documents >= FEWEST_DOCUMENTS:
            return "kind"
        return "part" if self.share < 1.0 else "stretch"

    @property
    def too_few(self) -> str:
        """Why there is no interval, in words; empty where there is one."""
        if len(self.document_U) >= FEWEST_UNITS:
            return ""
        size = int(self.bytes_KU[0].sum())
        return f"the text is too short for a confidence interval ({counted(size, 'byte')})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Contributions:
    """The table of contributions of one design, and how many degrees of freedom it has."""

    about: About
    table_nK: np.ndarray  # bits per byte
    freedom: int
    slow: bool  # the rows are waves, slowest first: their sum of squares must allow for a drift (see `drift`)


def contributions(units: Units, about: About) -> Contributions:
    """How much of an error each independent piece may carry, for what the interval is to be about."""
    total_K1 = units.bytes_KU.sum(axis=1, keepdims=True)
    per_byte_K1 = units.nats_KU.sum(axis=1, keepdims=True) / total_K1
    # the first-order change of a quotient of sums by each unit; they sum to zero
    error_UK = ((units.nats_KU - per_byte_K1 * units.bytes_KU) / (total_K1 * math.log(2.0))).T
    if about == "kind":
        return _of_documents(units, error_UK)
    if about == "part":
        return _of_neighbours(units, error_UK)
    q = min(WAVES, len(error_UK) // 2)
    return Contributions(about="stretch", table_nK=waves(error_UK, q) / math.sqrt(q), freedom=q, slow=True)


def _of_documents(units: Units, error_UK: np.ndarray) -> Contributions:
    """The jackknife over documents: each left out in turn, so that a large document is not taken for an average one."""
    _, document_U = np.unique(units.document_U, return_inverse=True)
    D = int(document_U.max()) + 1
    assert D > 1, "one document says nothing of how documents differ"
    error_DK = np.zeros((D, error_UK.shape[1]))
    np.add.at(error_DK, document_U, error_UK)
    weight_D = np.bincount(document_U, weights=units.bytes_KU[0]) / units.bytes_KU[0].sum()
    table = error_DK / (1.0 - weight_D[:, None]) * math.sqrt((D - 1) / D)
    return Contributions(about="kind", table_nK=table, freedom=max(1, round(units.documents) - 1), slow=False)


def _of_neighbours(units: Units, error_UK: np.ndarray) -> Contributions:
    """One unit from each of two neighbouring strata: half the square of their difference is the variance of either."""
    even = len(error_UK) // 2 * 2
    differences = error_UK[0:even:2] - error_UK[1:even:2]
    unmeasured = max(0.0, 1.0 - units.share)
    scale = math.sqrt(unmeasured * len(error_UK) / max(even, 1))
    return Contributions(about="part", table_nK=differences * scale, freedom=max(1, even // 2), slow=False)
