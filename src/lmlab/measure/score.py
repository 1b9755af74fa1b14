"""What a text costs under a model: nats of every token, each predicted once, every document from its beginning.

Shapes: B rows, T tokens. One call of `model.score` sees a bounded number of tokens, so memory stays bounded: short
documents go side by side, long ones in pieces that begin early enough for every prediction to see the history it would
see in the whole document (`ContextPolicy`). Only a model of unbounded history takes a long document as one row; that
costs 12 bytes a token.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from lmlab.config import Mistake
from lmlab.hardware.precision import real_float32
from lmlab.measure.scored import Scored
from lmlab.measure.tally import tally
from lmlab.text.stream import TokenStream, tokenize

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel
    from lmlab.text.parts import Part
    from lmlab.text.tokenizers import Tokenizer

# What is being done, how much of it is done, and of how much: bytes where it is "tokenise"; tokens where it is "walk", which
# comes before scoring, and "score".
Progress = Callable[[str, int, int], None]

BATCH_TOKENS = 1 << 18  # tokens of short documents scored side by side, what fills them up included
PIECE_TOKENS = 1 << 22  # tokens of a long document scored at once
SEAM = 32  # tokens scored on both sides of a cut inside a document, to see that the cut changes nothing
IN_MEMORY = 1 << 22  # tokens up to which the arrays of a result are kept in memory; beyond, in temporary files


def score_part(
    model: LanguageModel,
    tokenizer: Tokenizer,
    part: Part,
    *,
    folder: Path | str | None = None,
    progress: Progress | None = None,
    before: Callable[[TokenStream], None] | None = None,
) -> Scored:
    """Tokenise a part and score every document from its beginning.

    folder: where the token files are kept and found again; None: a temporary folder that lasts as long as the result.
    before: is shown the tokens before the model is.
    """
    if not part.bytes:
        raise Mistake(
            f"the {part.name} part is empty: there is nothing to measure; give it some text", code="nothing-to-measure"
        )
    place = Path(tempfile.mkdtemp(prefix="lmlab-")) if folder is None else Path(folder)
    try:
        stream = tokenize(part, tokenizer, place, stage(progress, "tokenise"))
        if before is not None:
            before(stream)
        scored = score_stream(model, tokenizer, part, stream, stage(progress, "score"))
    except BaseException:
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)
        raise
    if folder is None:
        weakref.finalize(scored, shutil.rmtree, place, ignore_errors=True)
    return scored


def score_stream(
    model: LanguageModel,
    tokenizer: Tokenizer,
    part: Part,
    stream: TokenStream,
    progress: Callable[[int, int], None] | None = None,
) -> Scored:
    """The cost of a part whose tokens are at hand."""
    calls = _scored(model, stream.ids, stream.starts, progress)
    sums = tally(tokenizer, stream, calls.nats, _array(stream.tokens, np.int64))
    return Scored(
        part=part,
        tokenizer_hash=tokenizer.hash,
        stream=stream,
        nats_per_token=calls.nats,
        spans=np.concatenate([np.zeros((0, 2), dtype=np.int64), *calls.spans]),
        seams=calls.seams,
        seam_difference=calls.seam_difference,
        **vars(sums),
    )


def nats_of_tokens(model: LanguageModel, ids: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """-log p of every token, float32, without the spelling of unknown words. Each document is read from its beginning.

    starts: where each document starts in `ids`, then len(ids).
    """
    return _scored(model, ids, starts, None).nats


def _scored(
    model: LanguageModel, ids: np.ndarray, starts: np.ndarray, progress: Callable[[int, int], None] | None
) -> _Calls:
    calls = _Calls(model, ids, starts, progress)
    with evaluating(model):
        calls.run()
    return calls


class _Calls:
    """Calls `model.score` on pieces of bounded size, so that every token gets its nats once."""

    def __init__(
        self,
        model: LanguageModel,
        ids: np.ndarray,
        starts: np.ndarray,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.model, self.ids, self.starts, self.progress = model, ids, starts, progress
        self.nats = _array(len(ids), np.float32)
        self.policy = model.policy
        self.spans: list[np.ndarray] = []  # n×2 each
        self.seams, self.seam_difference, self.done = 0, 0.0, 0

    def run(self) -> None:
        """Score all documents, short ones in batches, by length where shorter rows are filled up."""
        lengths = np.diff(self.starts)
        if self.progress:
            self.progress(0, len(self.ids))  # one call may be all there is
        for batch in batches(lengths, BATCH_TOKENS) if self.model.pads_documents else in_turn(lengths, PIECE_TOKENS):
            if len(batch) == 1:
                self._one(int(batch[0]))
            else:
                self._several(batch)

    def _one(self, document: int) -> None:
        """A document by itself, in pieces if it is long and the model's history is bounded."""
        start, end = (int(s) for s in self.starts[document : document + 2])
        size = end - start if self.policy.window is None else max(PIECE_TOKENS, 2 * self.policy.window)
        for first in range(0, end - start, size):
            last = min(first + size, end - start)
            seam = min(first, SEAM)
            given = self.policy.resume(first - seam)
            nats = score_rows(self.model, self.ids[None, start + given : start + last])[0]
            if first:
                again = nats[first - seam - given : first - given]
                self._compare(self.nats[start + first - seam : start + first], again)
            self._set(slice(start + first, start + last), nats[first - given :], [[start + first, start + last]])

    def _several(self, documents: np.ndarray) -> None:
        """Documents side by side; what fills up the shorter rows comes after their end and is not looked at."""
        documents = np.sort(documents)  # to read memory in order
        starts, ends = self.starts[documents], self.starts[documents + 1]
        here = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(ends - starts)])
        places: slice | np.ndarray = slice(int(starts[0]), int(ends[-1]))
        if ends[-1] - starts[0] > here[-1]:  # other documents lie between them
            places = np.arange(here[-1]) + np.repeat(starts - here[:-1], ends - starts)
        device = device_of(self.model)
        tokens = torch.from_numpy(self.ids[places].astype(np.int64)).to(device)
        with torch.no_grad():
            nats = self.model.score_documents(tokens, torch.from_numpy(here).to(device))
        self._set(places, _plain(self.model, nats, tokens), np.stack([starts, ends], axis=1))

    def _set(self, places: slice | np.ndarray, nats: np.ndarray, spans: Sequence[Sequence[int]] | np.ndarray) -> None:
        self.nats[places] = nats
        self.spans.append(np.asarray(spans, dtype=np.int64))
        self.done += len(nats)
        if self.progress:
            self.progress(self.done, len(self.ids))

    def _compare(self, before: np.ndarray, again: np.ndarray) -> None:
        self.seams += 1
        self.seam_difference = max(self.seam_difference, largest_difference(before, again))


def batches(lengths: np.ndarray, most_tokens: int) -> Iterator[np.ndarray]:
    """Documents to score together: of similar length, at most `most_tokens` with what fills up the shorter ones."""
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    rising = lengths[order]
    first = 0
    while first < len(order):
        shortest = int(rising[first])
        similar = rising[first : np.searchsorted(rising, shortest + shortest // 4 + 16, side="right")]
        filled = similar * np.arange(1, len(similar) + 1)
        last = first + max(1, int(np.searchsorted(filled, most_tokens, side="right")))
        yield order[first:last]
        first = last


def in_turn(lengths: np.ndarray, most_tokens: int) -> Iterator[np.ndarray]:
    """Documents to score together, as they come: at most `most_tokens`, or one that is longer."""
    documents = np.flatnonzero(lengths)
    ends = np.cumsum(lengths[documents])
    first = done = 0
    while first < len(documents):
        last = max(first + 1, int(np.searchsorted(ends, done + most_tokens, side="right")))
        yield documents[first:last]
        first, done = last, int(ends[last - 1])


def score_rows(model: LanguageModel, tokens_BT: np.ndarray) -> np.ndarray:
    """`model.score` of an array of ids, on the model's device: nats, float32, B×T."""
    rows_BT = torch.from_numpy(np.asarray(tokens_BT, dtype=np.int64)).to(device_of(model))
    with torch.no_grad():
        nats_BT = model.score(rows_BT)
    return _plain(model, nats_BT, rows_BT)


def _plain(model: LanguageModel, nats: torch.Tensor, tokens: torch.Tensor) -> np.ndarray:
    if nats.shape != tokens.shape:
        given, got = tuple(tokens.shape), tuple(nats.shape)
        raise ValueError(f"{model.name} gave {got} scores for {given} tokens; score returns the nats of every token")
    return nats.float().cpu().numpy().copy()  # a copy: a model may answer in the same memory every time


def largest_difference(a: np.ndarray, b: np.ndarray) -> float:
    """The largest of `differences`; 0 where there is nothing to compare."""
    return float(differences(a, b).max()) if np.size(a) else 0.0


def differences(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """|a - b| in nats, relative to every 10 nats where a number is larger than that.

    Equal infinities agree; what is not a number agrees with nothing (inf).
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        found = np.where(a == b, 0.0, np.abs(a - b) / np.maximum(1.0, np.minimum(np.abs(a), np.abs(b)) / 10.0))
    return np.where(np.isnan(found), np.inf, found)


def device_of(model: LanguageModel) -> torch.device:
    """Where the model's tokens must lie."""
    if isinstance(model, nn.Module):
        return next(model.parameters()).device
    return torch.device("cpu")


@contextmanager
def evaluating(model: LanguageModel) -> Iterator[None]:
    """Without dropout and in real float32 while it lasts; a model in training goes back to it."""
    training = isinstance(model, nn.Module) and model.training
    if isinstance(model, nn.Module):
        model.eval()
    try:
        with real_float32():
            yield
    finally:
        if isinstance(model, nn.Module):
            model.train(training)


def _array(size: int, dtype: type) -> np.ndarray:
    """Room for one number a token: in memory, or in a file without a name when there are many."""
    if size <= IN_MEMORY:
        return np.empty(size, dtype=dtype)
    with tempfile.TemporaryFile(prefix="lmlab-") as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=(size,))


def stage(progress: Progress | None, name: str) -> Callable[[int, int], None] | None:
    """Tells of one piece of work; None where nobody wants to know."""
    if progress is None:
        return None
    return lambda done, total: progress(name, done, total)
