"""The recorded scores, held against what copies said on their walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmlab.measure.agreement import NATS_TOLERANCE, disagreement, lean, steady
from lmlab.measure.route import Route, to_places
from lmlab.measure.score import differences
from lmlab.measure.tally import PIECE_TOKENS, spelling_nats_of
from lmlab.measure.walk import CopyMaker, Walked, Walks, walk

if TYPE_CHECKING:
    from lmlab.measure.scored import Scored
    from lmlab.text.tokenizers import Tokenizer

SUSPECTS, DOCUMENTS_AGAIN = 64, 8  # places that are walked to from the beginning, and documents they are in, at most


@dataclass(frozen=True, kw_only=True, eq=False)
class Recorded:
    """The scores of a text, without the spelling of unknown words where single ones are asked for."""

    tokenizer: Tokenizer
    scored: Scored
    ordinary_T: np.ndarray  # bool: no unknown symbol, so that the score is the model's alone
    lowest: float  # score, nats; those that are no numbers are left out

    @classmethod
    def of(cls, tokenizer: Tokenizer, scored: Scored) -> Recorded:
        """Of a result."""
        unknown, nats = tokenizer.unknown_id, scored.nats_per_token
        parts = [nats[start : start + PIECE_TOKENS] for start in range(0, len(nats), PIECE_TOKENS)]
        lowest = min(float(np.fmin.reduce(part)) for part in parts)
        ordinary_T = np.ones(len(nats), dtype=bool) if unknown is None else scored.stream.ids != unknown
        return cls(
            tokenizer=tokenizer, scored=scored, ordinary_T=ordinary_T, lowest=0.0 if np.isnan(lowest) else lowest
        )

    def at(self, places_P: np.ndarray) -> np.ndarray:
        """What the model said there: the recorded scores, less the spelling of unknown words."""
        nats_P = self.scored.nats_per_token[places_P].astype(np.float64)
        unknown_P = ~self.ordinary_T[places_P]
        spelling = self.tokenizer.spelling
        if spelling is not None and unknown_P.any():
            order = np.searchsorted(np.flatnonzero(~self.ordinary_T), places_P[unknown_P])
            spellings = self.scored.stream.spellings
            words = [spellings[int(i)] if i < len(spellings) else "" for i in order]
            nats_P[unknown_P] -= spelling_nats_of(spelling, words)
        return nats_P


@dataclass(frozen=True, kw_only=True)
class Held:
    """What the comparison showed."""

    difference: float  # nats
    lean: float  # nats: the mean difference, less what is chance
    places: int
    documents: int
    deepest: int  # token of a document
    again: Walked | None  # the walk from beginnings, where one from nearer by gave something else
    chaotic: int  # places where single scores mean nothing


def hold_against(walks: Walks, recorded: Recorded) -> Held:
    """Compare at all places that were walked to.

    A model of unbounded history that began in the middle may rightly differ. Then it is walked to the places where it
    differs most from the beginnings of their documents, and that is compared.
    """
    stream, unbounded = recorded.scored.stream, walks.unbounded
    exact = [walks.beginnings] if unbounded or walks.middle is None else [walks.beginnings, walks.middle]
    agreed_P, again = np.zeros(0, dtype=np.int64), None
    if unbounded and walks.middle is not None:
        places_P = walks.middle.route.places_P
        off_P = differences(recorded.at(places_P), walks.middle.nats_P)
        agreed_P = places_P[off_P <= NATS_TOLERANCE]
        if (off_P > NATS_TOLERANCE).any():
            again = walk(walks.copies.new(), to_places(stream, _suspects(places_P, off_P), DOCUMENTS_AGAIN))
            exact.append(again)
    compared = [_compare(walks.copies, walked, recorded) for walked in exact]
    at_P = np.unique(np.concatenate([agreed_P, *(walked.route.places_P for walked in exact)]))
    document_P = np.searchsorted(stream.starts, at_P, side="right") - 1
    return Held(
        difference=max(difference for difference, _, _ in compared),
        lean=max(lean for _, lean, _ in compared),
        places=len(at_P),
        documents=len(np.unique(document_P)),
        deepest=int((at_P - stream.starts[document_P]).max()),
        again=again,
        chaotic=sum(chaotic for _, _, chaotic in compared),
    )


def _suspects(places_P: np.ndarray, off_P: np.ndarray) -> np.ndarray:
    """Places to walk to from the beginning: by turns the one that differs most and any that differs.

    Were it only those that differ most, a model could be honest there, and make them differ by remembering much, to
    draw looks away from where it is not.
    """
    most_first = places_P[np.argsort(-off_P, kind="stable")][: int((off_P > NATS_TOLERANCE).sum())]
    by_turns = np.stack([most_first, np.random.default_rng(places_P).permutation(most_first)], axis=1).ravel()
    _, first = np.unique(by_turns, return_index=True)
    return by_turns[np.sort(first)][:SUSPECTS]


def _compare(copies: CopyMaker, walked: Walked, recorded: Recorded) -> tuple[float, float, int]:
    """(disagreement in nats, the mean difference less chance, places where single scores mean nothing)."""
    nats_P = recorded.at(walked.route.places_P)
    found = disagreement(nats_P, walked.nats_P)
    shaken = copies.shaken() if found > NATS_TOLERANCE else None
    if shaken is None:
        return found, lean(nats_P, walked.nats_P), 0
    by_itself_P = _steady(walked, walk(shaken, walked.route))
    found = disagreement(nats_P, walked.nats_P, by_itself_P)
    return found, lean(nats_P[by_itself_P], walked.nats_P[by_itself_P]), int((~by_itself_P).sum())


def _steady(walked: Walked, shaken: Walked) -> np.ndarray:
    """Which places of a walk mean something by themselves."""
    route: Route = walked.route
    counts_BA = route.counts_BA
    nats_BA, shaken_BA = np.zeros(counts_BA.shape), np.zeros(counts_BA.shape)
    nats_BA[counts_BA], shaken_BA[counts_BA] = walked.nats_P, shaken.nats_P
    return steady(nats_BA, shaken_BA, np.broadcast_to(route.asks_A, counts_BA.shape))[counts_BA]
