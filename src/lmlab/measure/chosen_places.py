"""Which places of a text are measured, when there is no time for all of it: spread evenly, chosen by chance.

Every document is cut into places of about equal size, a short document being one place. The places, in the order of the text,
are divided into strata of neighbours, and one place is drawn from each. So the places drawn lie evenly over all documents
and within long ones, every place has the same chance to be drawn, and therefore the plain quotient (all nats by all bytes)
estimates that of the whole text.

Shapes: D documents, M places, U places drawn (one from each stratum).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

PLACES_WANTED = 48  # so many places at least, as long as they keep their least size: what is spread more varies less
LEAST_PLACE_BYTES, MOST_PLACE_BYTES = 1024, 4096  # every place is read with history before it: work that does not count


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """Places drawn from a text: bytes `starts_U` to `stops_U` of document `document_U`, counted from its beginning."""

    document_U: np.ndarray  # int64, in the order of the text
    starts_U: np.ndarray
    stops_U: np.ndarray
    of_places: int  # M: places that the text has

    @property
    def share(self) -> float:
        """The share of the text's places that were drawn; 1: all of them."""
        return len(self.document_U) / self.of_places


def draw_places(sizes_D: np.ndarray, limit_bytes: int, seed: int) -> Places:
    """About `limit_bytes` bytes out of documents of these sizes; all places where that is as much as there is."""
    sizes_D = np.asarray(sizes_D, dtype=np.int64)
    size = int(np.clip(limit_bytes // PLACES_WANTED, LEAST_PLACE_BYTES, MOST_PLACE_BYTES))
    counts_D = np.where(sizes_D > 0, np.maximum(1, np.round(sizes_D / size)), 0).astype(np.int64)
    document_M = np.repeat(np.arange(len(sizes_D)), counts_D)
    within_M = np.arange(len(document_M)) - np.repeat(np.cumsum(counts_D) - counts_D, counts_D)
    M = len(document_M)
    # an even number of strata, because the variance is seen in pairs of neighbours
    U = 2 * max(1, round(limit_bytes / (int(sizes_D.sum()) / max(M, 1)) / 2)) if M else 0
    chosen = np.arange(M) if limit_bytes >= sizes_D.sum() or U >= M else _one_of_each_stratum(M, U, seed)
    document_U, within_U = document_M[chosen], within_M[chosen]
    sizes_U, counts_U = sizes_D[document_U], counts_D[document_U]
    return Places(
        document_U=document_U,
        starts_U=within_U * sizes_U // counts_U,
        stops_U=(within_U + 1) * sizes_U // counts_U,
        of_places=M,
    )


def _one_of_each_stratum(M: int, U: int, seed: int) -> np.ndarray:
    """U of M places, sorted. Where M / U is no whole number strata differ by one place; a random turn makes that fair."""
    generator = np.random.Generator(np.random.PCG64(seed))
    edges = np.floor((np.arange(U + 1) + generator.random()) * M / U).astype(np.int64)
    return np.sort((edges[:-1] + np.floor(generator.random(U) * np.diff(edges)).astype(np.int64)) % M)
