"""Greedy decoding and sampling: every row follows its own path, one token after the other.

Shapes: B rows still at work, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, final

import numpy as np
import torch

from lmlab.decode.continuation import Continuation, Spelled
from lmlab.decode.sampling import draw, kept

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.decode.options import Options
    from lmlab.decode.reader import Reader


class Chosen(NamedTuple):
    """The next tokens, what each costs under the model, and how unknown words among them are spelled."""

    ids_B: Tensor
    nats: Sequence[float]
    spelled: Sequence[Spelled | None]


class Chooser(Protocol):
    """A way to choose the next tokens."""

    def __call__(self, logp_BV: Tensor, rows: Sequence[int]) -> Chosen:
        """Choose a token for each row of logp; rows[i] says which continuation row i belongs to."""
        ...


@final
class Greedy:
    """The likeliest token (the lowest id of several). An unknown word counts with its likeliest spelling, and its price."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __call__(self, logp_BV: Tensor, rows: Sequence[int]) -> Chosen:
        """Choose the likeliest."""
        charged_BV = logp_BV if self._reader.likeliest is None else self._reader.charged(logp_BV)
        ids_B = charged_BV.cpu().numpy().argmax(axis=-1)
        nats_B = -logp_BV.cpu().numpy()[np.arange(len(ids_B)), ids_B]
        spelled = [self._reader.spelled(id) for id in ids_B.tolist()]
        return Chosen(torch.from_numpy(ids_B).to(logp_BV.device), nats_B.tolist(), spelled)


@final
class Draw:
    """A token drawn as the options say, and for an unknown word a spelling drawn from the spelling model as it is.

    Each row has a random stream of its own, from the seed and its number: other rows cannot change what it draws. (A
    model's probabilities may differ in their last bits between batches of different size; only a number drawn within
    that distance of a boundary could notice.)
    """

    def __init__(self, reader: Reader, options: Options) -> None:
        self._options, self._tokenizer = options, reader.tokenizer
        self._generators = [np.random.default_rng([options.seed, row]) for row in range(options.samples)]

    def __call__(self, logp_BV: Tensor, rows: Sequence[int]) -> Chosen:
        """Draw for one row after the other."""
        ids, nats, spelled = [], [], []
        for logp_V, row in zip(logp_BV.cpu().numpy(), rows, strict=True):
            id = draw(kept(logp_V, self._options), self._generators[row])
            ids.append(id)
            nats.append(-float(logp_V[id]))
            spelled.append(self._spell(self._generators[row]) if id == self._tokenizer.unknown_id else None)
        return Chosen(torch.tensor(ids, device=logp_BV.device), nats, spelled)

    def _spell(self, generator: np.random.Generator) -> Spelled:
        spelling = self._tokenizer.spelling
        assert spelling is not None, "a tokenizer with unknown words spells them"
        word = spelling.sample(generator)
        return Spelled(word, float(spelling.nats([word])[0]))


def follow(
    reader: Reader, continuations: Sequence[Continuation], choose: Chooser, max_tokens: int
) -> Iterator[tuple[int, str]]:
    """Extend the continuations until all are finished; yields (which one, text that is now certain).

    There are as many as the reader has rows, or, where it has one, any number.
    """
    logp_BV, state = reader.start()
    rows = list(range(len(continuations)))
    if reader.rows == 1:
        logp_BV, state = reader.select(logp_BV, state, [0] * len(rows))
    for left in reversed(range(max_tokens)):
        chosen = choose(logp_BV, rows)
        for row, id, nats, spelled in zip(rows, chosen.ids_B.tolist(), chosen.nats, chosen.spelled, strict=True):
            yield row, continuations[row].add(id, nats, spelled)
        going = [i for i, row in enumerate(rows) if continuations[row].finish is None]
        if not (going and left):
            break
        ids_B = chosen.ids_B
        if len(going) < len(rows):
            logp_BV, state = reader.select(logp_BV, state, going)
            ids_B, rows = ids_B[going], [rows[i] for i in going]
        logp_BV, state = reader.advance(ids_B, state)
    for row, continuation in enumerate(continuations):
        yield row, continuation.end()
