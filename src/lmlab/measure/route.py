"""Where the certificate walks: rows of the measured text, and the places in them at which a model is asked.

Places are drawn over all of the text, by chance that follows from its hash: half of them evenly, half the more often the
rarer their token is (rare tokens cost most, so that is where cheating pays). A walk may cost a share of what scoring costs.

    beginnings   rows from the beginnings of documents: all history is there. For a model of unbounded history one row goes as
                 deep as the share allows; for others rows end soon after the first windows.
    middle       rows that begin in the middle, with the history that the model's policy asks for. They reach every depth. A
                 model of unbounded history gets `WARM` tokens, within which trained recurrent networks forget; where its
                 scores differ for that reason, the certificate walks there from the beginning (`to_places`).

No two rows of a route share a token, so that nobody is asked about what was shown in another row.

Shapes: B rows, T tokens, A asks (the same in all rows), P places.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmlab.measure.score import BATCH_TOKENS, batches

if TYPE_CHECKING:
    from lmlab.interface import ContextPolicy
    from lmlab.text.stream import TokenStream

PLACES = 640  # asked about in the middle: of contexts that are wrong once in a hundred, one is met 998 times in 1,000
FEWEST_ROWS, MOST_ROWS = {True: 200, False: 16}, 320  # for models whose window slides by one, and for others
WARM = 384  # tokens of history for a model of unbounded history
PLACES_FROM_BEGINNINGS = 400
MOST_BEGINNINGS = {True: 40, False: 64}  # rows, for models of bounded and of unbounded history
SHARE_OF_BEGINNINGS = {True: 0.03, False: 0.06}  # of the text's tokens, likewise
SHARE_OF_STEPS = 0.05  # of the tokens that scoring reads one after another, for a model of unbounded history
SHARE_OF_MIDDLE = 0.1
CANDIDATES = 1 << 16  # places, spread evenly, among which rare tokens are looked for
LONGEST = 4096  # tokens of a row from a beginning, for a model of bounded history


@dataclass(frozen=True, kw_only=True, eq=False)
class Route:
    """Rows, and where in them a model is asked for its distribution: at place a it has been shown the tokens before a."""

    starts_B: np.ndarray  # where the rows start in the stream
    lengths_B: np.ndarray
    known_from_B: np.ndarray  # the first place of a row that has the history it has in its document
    tokens_BT: np.ndarray  # int64; zeros after a row's end
    asks_A: np.ndarray  # sorted

    @property
    def counts_BA(self) -> np.ndarray:
        """Which asks are about a token of the text, with the history that it should have."""
        return (self.asks_A < self.lengths_B[:, None]) & (self.asks_A >= self.known_from_B[:, None])

    @property
    def places_P(self) -> np.ndarray:
        """The places in the stream that are asked about, row by row."""
        return (self.starts_B[:, None] + self.asks_A)[self.counts_BA]


def beginnings(stream: TokenStream, policy: ContextPolicy, generator: np.random.Generator) -> Route:
    """Rows from the beginnings of documents, chosen by their length."""
    bounded = policy.window is not None and policy.stride is not None
    share = SHARE_OF_BEGINNINGS[bounded] * stream.tokens
    longest = int(min(share / 2, SHARE_OF_STEPS * steps_of(np.diff(stream.starts))))
    edges: list[int] = []
    if policy.window is not None and policy.stride is not None:
        longest = min(policy.window + policy.stride + 2, LONGEST)
        edges = [edge + step for edge in (policy.window, policy.window + policy.stride) for step in (-1, 0, 1)]
    longest = max(longest, 129)
    sizes_D = np.diff(stream.starts)
    order = _by_length(sizes_D, generator)
    starts: list[int] = []
    lengths: list[int] = []
    for document in order[: MOST_BEGINNINGS[bounded]]:
        # unbounded: one row takes half of the share, the others an eighth of it each
        most = longest if bounded or not lengths else max(longest // 4, 129)
        starts.append(int(stream.starts[document]))
        lengths.append(min(int(sizes_D[document]), most))
        if sum(lengths) >= max(share, 3 * 129):
            break
    deepest = max(lengths)
    # every ask is a step that follows the one before: where rows are many, fewer will do
    count = int(np.clip(PLACES_FROM_BEGINNINGS / len(lengths), *((10, 20) if bounded else (20, 96))))
    anywhere = generator.integers(deepest, size=count // 2)
    early = np.exp(generator.random(count // 2) * math.log(deepest)).astype(np.int64)
    ends = [length - 1 for length in lengths[:8]]
    return _route(stream, starts, lengths, [0] * len(starts), [0, 1, 2, *edges, *anywhere, *early, *ends])


def middle(stream: TokenStream, policy: ContextPolicy, generator: np.random.Generator) -> Route | None:
    """Rows from anywhere; None where no document is long enough to have a middle."""
    bounded = policy.window is not None and policy.stride is not None
    history = policy.window - policy.stride if policy.window and policy.stride else WARM
    sliding = policy.stride == 1  # it reads its history anew for every token, so rows are many and short
    span = 2 if sliding else (policy.stride or 32)
    length = history + span
    rows = max(4, int(np.clip(SHARE_OF_MIDDLE * stream.tokens / length, FEWEST_ROWS[sliding], MOST_ROWS)))
    shifts = generator.integers(span, size=min(span, 8))
    taken: list[tuple[int, int]] = []  # (start, stop) of the rows so far, sorted
    known_from: dict[int, int] = {}  # by start
    asks = [history, length - 1]
    places = _drawn(stream, rows, generator)
    document_P = np.searchsorted(stream.starts, places, side="right") - 1
    begin_P, end_P = stream.starts[document_P], stream.starts[document_P + 1]
    start_P = np.maximum(begin_P, places - history - generator.choice(shifts, size=len(places)))
    if bounded and not sliding:
        start_P = begin_P + [policy.resume(depth) for depth in (places - begin_P).tolist()]
    stop_P = np.minimum(start_P + length, end_P)
    for place, begin, start, stop in zip(*(P.tolist() for P in (places, begin_P, start_P, stop_P)), strict=True):
        if start == begin and not bounded:
            continue  # the business of `beginnings`
        at = bisect_left(taken, (start, stop))
        if (at and taken[at - 1][1] > start) or (at < len(taken) and taken[at][0] < stop):
            continue  # it would share tokens with another row
        taken.insert(at, (start, stop))
        known_from[start] = 0 if start == begin else history
        asks.append(place - start)
    if not taken:
        return None
    more = max(0, math.ceil(PLACES / len(taken)) - len(set(asks)))
    inside = generator.permutation(np.arange(history, length))[:more]
    starts, lengths = [start for start, _ in taken], [stop - start for start, stop in taken]
    return _route(stream, starts, lengths, [known_from[start] for start in starts], [*asks, *inside])


def to_places(stream: TokenStream, places: np.ndarray, most_documents: int) -> Route:
    """From the beginnings of their documents to these places, given with the most important first."""
    chosen: dict[int, list[int]] = {}
    for place in places.tolist():
        begin, _ = _document(stream, place)
        if begin in chosen or len(chosen) < most_documents:
            chosen.setdefault(begin, []).append(place - begin)
    lengths = [max(inside) + 1 for inside in chosen.values()]
    asks = [ask for inside in chosen.values() for ask in inside]
    return _route(stream, list(chosen), lengths, [0] * len(chosen), asks)


def _route(stream: TokenStream, starts: list[int], lengths: list[int], known_from: list[int], asks: list[int]) -> Route:
    tokens_BT = np.zeros((len(starts), max(lengths)), dtype=np.int64)
    ids = np.asarray(stream.ids)  # a slice of a memory map takes longer than copying it
    for row_T, start, length in zip(tokens_BT, starts, lengths, strict=True):
        row_T[:length] = ids[start : start + length]
    asks_A = np.unique(np.array(asks, dtype=np.int64))
    return Route(
        starts_B=np.array(starts, dtype=np.int64),
        lengths_B=np.array(lengths, dtype=np.int64),
        known_from_B=np.array(known_from, dtype=np.int64),
        tokens_BT=tokens_BT,
        asks_A=asks_A[(asks_A >= 0) & (asks_A < tokens_BT.shape[1])],
    )


def _drawn(stream: TokenStream, count: int, generator: np.random.Generator) -> np.ndarray:
    """About so many places, the most important first: ends of documents, one of each of many strata, and rare tokens."""
    ends = generator.permutation(stream.starts[1:])[: max(1, count // 8)] - 1
    strata = count // 2 if count > 64 else count * 3 // 4  # where rows are few, no document is to be without one
    even = _one_of_each(strata, stream.tokens, generator)
    among = _one_of_each(min(stream.tokens, CANDIDATES), stream.tokens, generator)
    ids = np.asarray(stream.ids)[among]
    weight_V = (-np.log((np.bincount(ids) + 1.0) / (len(ids) + 1.0))) ** 3
    edges = np.cumsum(weight_V[ids])
    rare = among[np.searchsorted(edges, generator.random(max(1, count - strata - len(ends))) * edges[-1])]
    return np.clip(np.concatenate([ends, even, rare]), 0, stream.tokens - 1)


def _one_of_each(strata: int, tokens: int, generator: np.random.Generator) -> np.ndarray:
    """A place in each of so many equal strata of a text, in order."""
    return ((np.arange(strata) + generator.random(strata)) * (tokens / max(strata, 1))).astype(np.int64)


def steps_of(sizes_D: np.ndarray) -> int:
    """Tokens that scoring reads one after another: rows side by side take a recurrent net as long as the longest of them."""
    return sum(int(sizes_D[batch].max()) for batch in batches(sizes_D, BATCH_TOKENS))


def _by_length(sizes_D: np.ndarray, generator: np.random.Generator) -> list[int]:
    """Documents in an order of chance in which long ones tend to come first; empty ones are left out."""
    documents = np.flatnonzero(sizes_D)
    keys = generator.random(len(documents)) ** (sizes_D.max() / sizes_D[documents])
    return documents[np.argsort(-keys, kind="stable")].tolist()


def _document(stream: TokenStream, place: int) -> tuple[int, int]:
    """Where the document of a place begins and ends in the stream."""
    index = int(np.searchsorted(stream.starts, place, side="right"))
    return int(stream.starts[index - 1]), int(stream.starts[index])
