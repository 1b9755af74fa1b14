"""The tree that greedy, beam and exhaustive search walk for a prompt, and where greedy loses.

The likeliest continuation of all is found without trying all: more tokens only lower a probability, so whatever is already
less likely than the best that is known need not be followed. At most 1/p beginnings can be as likely as p.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lmlab.config import Mistake
from lmlab.engine.generate import generate
from lmlab.engine.options import Options
from lmlab.engine.reader import Reader
from lmlab.engine.search import beam as beam_search
from lmlab.records import JsonRecord, brief

if TYPE_CHECKING:
    from lmlab.learn.run import Run

MOST_BEGINNINGS = 20_000  # that the search for the best of all follows side by side
ROWS = 256  # of them that the model reads at once
OTHERS = 2  # tokens that no search took, shown beside those that were
SLACK = 1e-3  # nats by which rounding may make a beginning look worse, read beside others

Ids = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Node:
    """A token after what leads to it. probability: given that; total: of all tokens since the prompt.

    by: the searches that kept it: "greedy", "beam", "best".
    """

    token: str
    probability: float
    total: float
    by: tuple[str, ...]
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Way:
    """What one search found. asked: distributions that the model was asked for."""

    method: str
    text: str
    probability: float
    asked: int

    @property
    def bits(self) -> float:
        """What its text costs."""
        return -math.log2(self.probability) if self.probability > 0 else math.inf


@dataclass(frozen=True, kw_only=True)
class SearchTree(JsonRecord):
    """All that the searches looked at. best: whether nothing is likelier than the last way is known."""

    __repr__ = brief  # not a page of numbers

    run: str
    model: str
    prompt: str
    tokens: int
    beam: int
    vocabulary: int
    ways: tuple[Way, ...]
    best: bool
    lost: str  # where greedy left the best way, in words; nothing where it did not
    children: tuple[Node, ...]


def search_tree(run: Run, prompt: str, *, tokens: int = 5, beam: int = 3, device: str = "auto") -> SearchTree:
    """Continue a prompt by so many tokens in three ways, and keep what each of them saw."""
    model, tokenizer = run.load(device), run.tokenizer
    options = Options(max_tokens=tokens, method="beam", beam_width=beam, n_best=beam, length_penalty=0.0)
    if tokens > 30:
        raise Mistake(
            f"a tree of {tokens} tokens cannot be looked at; set {{tokens}} to 30 or less",
            code="tree-too-large",
            tokens=None,
        )
    reader = Reader(model, tokenizer, prompt)
    greedy = generate(model, tokenizer, prompt, method="greedy", max_tokens=tokens)[0].ids
    steps = [[tuple(c.ids) for c in contenders] for contenders in beam_search(reader, options)]
    widest = [steps[-1][0], *(ids for step in steps for ids in step)]
    asks = _Asks(reader)
    best, asked = _best_of_all(asks, tokens, asks.total(widest[0]))
    ways = {"greedy": [greedy], "beam": widest, "best": [best] if best else []}
    kept = {name: _beginnings(found) for name, found in ways.items()}
    asked_by = {"greedy": tokens, "beam": 1 + sum(len(step) for step in steps[:-1]), "best": asked}
    found = [
        Way(method=name, text=_text(reader, of[0]), probability=math.exp(asks.total(of[0])), asked=asked_by[name])
        for name, of in ways.items()
        if of
    ]
    return SearchTree(
        run=str(run.folder),
        model=run.record.model.name,
        prompt=prompt,
        tokens=tokens,
        beam=beam,
        vocabulary=model.vocab_size,
        ways=tuple(found),
        best=bool(best),
        lost=_lost(asks, prompt, greedy, best or widest[0]),
        children=_children(asks, (), kept),
    )


class _Asks:
    """Log-probabilities of what follows a beginning, asked of the model once."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._known: dict[Ids, Tensor] = {}

    def after(self, beginnings: Sequence[Ids]) -> Tensor:
        """log p of every next token, a row for each of these beginnings, all of one length; float64."""
        rows = []
        for first in range(0, len(beginnings), ROWS):
            part = beginnings[first : first + ROWS]
            logp_1V, state = self.reader.start()
            if part[0]:
                _, state = self.reader.select(logp_1V, state, [0] * len(part))
                tokens_BT = torch.tensor(part, device=logp_1V.device)
                with torch.inference_mode():
                    logp_1V, state = self.reader.model.advance(tokens_BT, state)
            rows.append(self.reader.charged(logp_1V).double().cpu())
        return torch.cat(rows)

    def one(self, beginning: Ids) -> Tensor:
        """The same of one beginning, remembered."""
        if beginning not in self._known:
            self._known[beginning] = self.after([beginning])[0]
        return self._known[beginning]

    def total(self, ids: Ids) -> float:
        """log p of all these tokens."""
        return math.fsum(float(self.one(ids[:i])[id]) for i, id in enumerate(ids))


def _best_of_all(asks: _Asks, tokens: int, known: float) -> tuple[Ids | None, int]:
    """The likeliest continuation, and how many beginnings were followed; None: there are too many to follow.

    known: log p of a continuation that was found already.
    """
    live: list[Ids] = [()]
    total_B, asked = torch.zeros(1, dtype=torch.float64), 0
    for _ in range(tokens):
        if len(live) > MOST_BEGINNINGS:
            return None, asked
        asked += len(live)
        logp_BV = asks.after(live) + total_B[:, None]
        rows, ids = (logp_BV >= known - SLACK).nonzero(as_tuple=True)
        total_B = logp_BV[rows, ids]
        live = [(*live[row], id) for row, id in zip(rows.tolist(), ids.tolist(), strict=True)]
    return live[int(total_B.argmax())], asked


def _beginnings(found: Iterable[Ids]) -> set[Ids]:
    return {ids[:length] for ids in found for length in range(1, len(ids) + 1)}


def _children(asks: _Asks, before: Ids, kept: dict[str, set[Ids]]) -> tuple[Node, ...]:
    """What follows a beginning that some search went on from: what was kept, and the likeliest of the rest."""
    taken = {ids[-1] for beginnings in kept.values() for ids in beginnings if ids[:-1] == before}
    if not taken:
        return ()
    logp_V = asks.one(before)
    likeliest = logp_V.topk(min(len(logp_V), len(taken) + OTHERS)).indices.tolist()
    others = [id for id in likeliest if id not in taken][:OTHERS]
    total = asks.total(before)
    nodes = []
    for id in sorted({*taken, *others}, key=lambda id: -float(logp_V[id])):
        here = (*before, id)
        nodes.append(
            Node(
                token=asks.reader.tokenizer.piece(id),
                probability=math.exp(float(logp_V[id])),
                total=math.exp(total + float(logp_V[id])),
                by=tuple(name for name, beginnings in kept.items() if here in beginnings),
                children=_children(asks, here, kept),
            )
        )
    return tuple(nodes)


def _lost(asks: _Asks, prompt: str, greedy: Ids, best: Ids) -> str:
    """The step at which greedy took what was likeliest, and missed what would have been."""
    if asks.total(best) <= asks.total(greedy) + SLACK:
        return ""
    step = next(i for i, (a, b) in enumerate(zip(greedy, best, strict=True)) if a != b)
    logp_V, piece = asks.one(greedy[:step]), asks.reader.tokenizer.piece
    took, missed = greedy[step], best[step]
    more = asks.total(best) - asks.total(greedy)  # nats
    return (
        f"At token {step + 1}{' after the prompt' if prompt else ''} greedy search takes"
        f" {piece(took)!r} ({math.exp(logp_V[took]):.1%}) and passes over"
        f" {piece(missed)!r} ({math.exp(logp_V[missed]):.1%}), with which the whole would have been"
        f" {math.exp(more):.2f} times as likely ({more / math.log(2):.2f} bits fewer):"
        f" {100 * math.exp(asks.total(best)):.2g}% against {100 * math.exp(asks.total(greedy)):.2g}%."
    )


def _text(reader: Reader, ids: Ids) -> str:
    continuation = reader.empty(())
    for id in ids:
        continuation.add(id, 0.0, reader.spelled(id))
    continuation.end()
    return continuation.result().text
