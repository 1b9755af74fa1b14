"""Log-probabilities of the tokens of prompts, with the likeliest tokens in their places.

They are the scores of `lmlab eval`, with its rule for texts that are longer than the model's context.

Shapes: B rows, T tokens, N positions, V vocabulary, K alternatives.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lmlab.measure.score import device_of, evaluating
from lmlab.models.families.softmax import SoftmaxModel

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel
    from lmlab.layers.heads import Head

TOKENS_AT_ONCE = 1 << 13  # scored before other requests have their turn, padding included
STEPS_AT_ONCE = 256
LOGITS_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class PromptScores:
    """The natural log-probabilities of the tokens of one prompt.

    Attributes:
        logp_T: of each token, float32, without the spelling of unknown words.
        top: for each token the likeliest tokens in its place, with their log-probabilities; empty if none were asked for.
    """

    logp_T: np.ndarray
    top: list[list[tuple[int, float]]]


Work = Generator[None, None, list[PromptScores]]


def score_prompts(model: LanguageModel, prompts: Sequence[Sequence[int]], alternatives: int) -> Work:
    """Score prompts in turns: the generator yields after each piece of bounded size, and returns the scores in order."""
    k = min(alternatives, model.vocab_size)
    found = [_Unfinished(len(prompt)) for prompt in prompts]
    for group in _groups([len(prompt) for prompt in prompts]):
        longest = max(len(prompts[i]) for i in group)
        tokens_BT = torch.zeros(len(group), longest, dtype=torch.long)
        for row, i in enumerate(group):
            tokens_BT[row, : len(prompts[i])] = torch.tensor(prompts[i], dtype=torch.long)
        for first, end, columns in _pieces(model, tokens_BT.to(device_of(model)), k):
            for row, i in enumerate(group):
                found[i].add(first, min(end, len(prompts[i])), columns, row)
            yield
    return [one.scores(k) for one in found]


class _Unfinished:
    """The scores of one prompt as far as its pieces are there."""

    def __init__(self, length: int) -> None:
        self.logp_T = np.zeros(length, dtype=np.float32)
        self.top: list[list[tuple[int, float]]] = []

    def add(self, first: int, end: int, columns: Columns, row: int) -> None:
        if end <= first:
            return
        self.logp_T[first:end] = columns.logp_BT[row, : end - first].numpy()
        if columns.ids_BTK is not None and columns.top_BTK is not None:
            ids, logps = columns.ids_BTK[row, : end - first].tolist(), columns.top_BTK[row, : end - first].tolist()
            self.top += [list(zip(*both, strict=True)) for both in zip(ids, logps, strict=True)]

    def scores(self, k: int) -> PromptScores:
        assert not k or len(self.top) == len(self.logp_T), "every token has its alternatives"
        return PromptScores(self.logp_T, self.top)


class Columns(NamedTuple):
    """The scores of a piece of several prompts, and the likeliest tokens with theirs."""

    logp_BT: Tensor
    ids_BTK: Tensor | None
    top_BTK: Tensor | None


def _groups(lengths: Sequence[int]) -> list[list[int]]:
    """Return which prompts are scored together: neighbours in length, so that little is padded."""
    found: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if found and (len(found[-1]) + 1) * lengths[i] <= TOKENS_AT_ONCE:
            found[-1].append(i)
        else:
            found.append([i])
    return found


def _pieces(model: LanguageModel, tokens_BT: Tensor, k: int) -> Iterator[tuple[int, int, Columns]]:
    """Score all places, piece after piece: (first place, end, scores)."""
    if k and not isinstance(model, SoftmaxModel):
        yield from _by_steps(model, tokens_BT, k)
        return
    rows, length = tokens_BT.shape
    # Only a model of unbounded history must read a long text at once.
    size = length if model.policy.window is None else max(TOKENS_AT_ONCE // rows, 2 * model.policy.window)
    for first in range(0, length, max(1, size)):
        end, begin = min(first + size, length), model.policy.resume(first)
        piece_BT, before = tokens_BT[:, begin:end], first - begin
        with torch.inference_mode(), evaluating(model):
            if k:
                assert isinstance(model, SoftmaxModel)
                found_BTF = model.said_by(_head(k), 1 + 2 * k, piece_BT)[:, before:].cpu()
                columns = Columns(found_BTF[..., 0], found_BTF[..., 1 : 1 + k].long(), found_BTF[..., 1 + k :])
            else:
                columns = Columns(-model.score(piece_BT)[:, before:].cpu(), None, None)
        yield first, end, columns


def _by_steps(model: LanguageModel, tokens_BT: Tensor, k: int) -> Iterator[tuple[int, int, Columns]]:
    """Score token after token, for a model that gives no distributions beside its scores."""
    length, state = tokens_BT.shape[1], None
    for first in range(0, length, STEPS_AT_ONCE):
        end, logps, ids, tops = min(first + STEPS_AT_ONCE, length), [], [], []
        with torch.inference_mode(), evaluating(model):
            for place in range(first, end):
                if state is None:
                    logp_BV, state = model.begin(len(tokens_BT))
                else:
                    logp_BV, state = model.advance(tokens_BT[:, place - 1 : place], state)
                top = logp_BV.topk(k)
                logps.append(logp_BV.gather(1, tokens_BT[:, place : place + 1])[:, 0])
                ids.append(top.indices)
                tops.append(top.values)
        yield first, end, Columns(*(torch.stack(each, dim=1).cpu() for each in (logps, ids, tops)))


def _head(k: int) -> Head:
    """A head that returns log p of each target, the ids of the k likeliest tokens, and log p of these: N×(1 + 2K).

    Ids are exact as float32: no vocabulary has 2^24 tokens.
    """

    def head(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, targets_N: Tensor) -> Tensor:
        rows, found = max(1, LOGITS_AT_ONCE // len(weight_VD)), []
        for hidden_nD, targets_n in zip(hidden_ND.split(rows), targets_N.split(rows), strict=True):
            logp_nV = F.log_softmax(F.linear(hidden_nD, weight_VD, bias_V).float(), dim=-1)
            top = logp_nV.topk(k)
            found.append(torch.cat([logp_nV.gather(1, targets_n[:, None]), top.indices.float(), top.values], dim=1))
        return torch.cat(found)

    return head
