"""Choosing the next token of every row: the likeliest, or one drawn as the request says.

Shapes: B rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, final

import torch

from lmlab.engine.continuation import Spelled, likeliest_spelling
from lmlab.engine.sampling import draw, kept
from lmlab.engine.sampling_on_device import draw_rows

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.engine.options import Options
    from lmlab.engine.request import Request
    from lmlab.text.tokenizers import Tokenizer

Rows = tuple["Request | None", ...]


@final
class Chooser:
    """Chooses tokens on the device of the distributions. Every request draws from its own random numbers.

    An unknown word counts with its likeliest spelling, and its price, where the likeliest token is taken; where a token is
    drawn, its spelling is drawn from the spelling model.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._likeliest = None if tokenizer.spelling is None else likeliest_spelling(tokenizer.spelling)
        self._grouped: tuple[Rows, dict[Options | None, Tensor | None]] = ((), {})

    def choose(self, logp_BV: Tensor, rows: Rows) -> Tensor:
        """Return a token for each row, without waiting for a GPU. A row that nobody uses gets any token."""
        if logp_BV.is_cuda:
            return self._choose_on_gpu(logp_BV, rows)
        if all(request is None or request.greedy for request in rows):
            return torch.from_numpy(self.charged(logp_BV).cpu().numpy().argmax(axis=-1)).to(logp_BV.device)
        ids = []
        for logp_V, request in zip(logp_BV.cpu(), rows, strict=True):
            if request is None:
                ids.append(0)
            elif request.greedy:
                ids.append(int(self.charged(logp_V).numpy().argmax()))
            else:
                ids.append(draw(kept(logp_V.numpy(), request.options), request.rng))
        return torch.tensor(ids, device=logp_BV.device)

    def _choose_on_gpu(self, logp_BV: Tensor, rows: Rows) -> Tensor:
        """Rows with the same settings together."""
        groups = self._groups(logp_BV, rows)
        ids_B = torch.zeros(len(rows), dtype=torch.long, device=logp_BV.device)
        drawn = [0.0 if request is None or request.greedy else request.rng.random() for request in rows]
        uniform_B = None
        if any(options is not None for options in groups):
            uniform_B = torch.tensor(drawn, dtype=torch.float64).pin_memory().to(logp_BV.device, non_blocking=True)
        for options, rows_N in groups.items():
            logp_NV = logp_BV if rows_N is None else logp_BV[rows_N]
            if options is None:
                ids_N = self.charged(logp_NV).argmax(-1)
            else:
                assert uniform_B is not None, "these rows draw"
                ids_N = draw_rows(logp_NV, options, uniform_B if rows_N is None else uniform_B[rows_N])
            if rows_N is None:
                return ids_N
            ids_B[rows_N] = ids_N
        return ids_B

    def _groups(self, logp_BV: Tensor, rows: Rows) -> dict[Options | None, Tensor | None]:
        """Return the rows by their settings (None: greedy); a group that is all rows is None."""
        if self._grouped[0] != rows:
            found: dict[Options | None, list[int]] = {}
            for row, request in enumerate(rows):
                if request is not None:
                    found.setdefault(None if request.greedy else _filters(request.options), []).append(row)
            device, whole = logp_BV.device, len(found) == 1
            groups = {key: None if whole else torch.tensor(at, device=device) for key, at in found.items()}
            self._grouped = rows, groups
        return self._grouped[1]

    def charged(self, logp_BV: Tensor) -> Tensor:
        """Return log p in which the unknown symbol pays for its likeliest spelling."""
        if self._likeliest is None:
            return logp_BV
        logp_BV = logp_BV.clone()
        logp_BV[..., self._tokenizer.unknown_id] -= self._likeliest.nats
        return logp_BV

    def spelled(self, id: int, request: Request) -> Spelled | None:
        """Return how this token is spelled if it is the unknown symbol."""
        if id != self._tokenizer.unknown_id:
            return None
        if request.greedy:
            return self._likeliest
        assert self._tokenizer.spelling is not None, "a tokenizer with unknown words spells them"
        word = self._tokenizer.spelling.sample(request.rng)
        return Spelled(word, float(self._tokenizer.spelling.nats([word])[0]))


def _filters(options: Options) -> Options:
    """Return the settings with those left out that do not change the distribution."""
    return replace(options, max_tokens=1, stop=(), seed=0, samples=1)


def likeliest_tokens(logp_BV: Tensor, rows: Sequence[Request | None]) -> tuple[Tensor, Tensor] | None:
    """Return the likeliest tokens of each row and their log-probabilities, as many as any request asks for."""
    most = max((request.logprobs or 0 for request in rows if request is not None), default=0)
    if not most:
        return None
    values_BK, ids_BK = logp_BV.topk(min(most, logp_BV.shape[1]))
    return ids_BK, values_BK
