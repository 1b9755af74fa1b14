"""Filling the blanks of a text: what an encoder holds likely at each of them, and the text with all of them filled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from lmlab.config import Mistake, texts_of
from lmlab.learn.run import Run, opened
from lmlab.records import JsonRecord
from lmlab.tasks.masked.measure import encoder_of

if TYPE_CHECKING:
    from lmlab.models.bert import BERT
    from lmlab.text.tokenizers import Tokenizer

BLANK = "[MASK]"
BEAM = 8  # ways to fill all blanks that are followed at least


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What may stand at a blank. p: its probability among the tokens that can stand there, all blanks open."""

    text: str
    p: float


@dataclass(frozen=True, kw_only=True)
class Filled(JsonRecord):
    """A text with blanks, and the text with all of them filled.

    wholes: the likeliest ways to fill all blanks that a beam found. The surest blank is filled first, and the others are
    guessed anew after each, so that they go together; p is the product of what each was then given.
    """

    text: str
    filled: str  # the likeliest of the wholes
    blanks: tuple[tuple[Candidate, ...], ...]  # of each blank, likeliest first
    wholes: tuple[Candidate, ...]


def fill(run: Run | str | Path, texts: str | Sequence[str], *, top: int = 5, device: str = "auto") -> list[Filled]:
    """Fill every [MASK] of texts with a run's encoder. top: how many candidates are given for each."""
    if top < 1:
        raise Mistake("{top} is a whole number from 1 up", code="top-below-one", top=None)
    run = opened(run)
    model = encoder_of(run, device)
    given = texts_of(texts)
    return [_filled(model, run.tokenizer, text, top) for text in given]


@torch.no_grad()
def _filled(model: BERT, tokenizer: Tokenizer, text: str, top: int) -> Filled:
    pieces = text.split(BLANK)
    if len(pieces) == 1:
        raise Mistake(
            f"there is no blank in {text!r}: write {BLANK} where a token is to be guessed", code="text-without-blank"
        )
    ids, blanks, spaced = with_blanks(model, tokenizer, pieces)
    if len(ids) > model.longest_window:
        raise Mistake(
            f"a text of {len(ids)} tokens is longer than the encoder reads, {model.longest_window}; shorten it: {text[:40]!r}…",
            code="blanks-too-long",
        )
    vocabulary = tokenizer.vocabulary
    allowed_NV = np.stack([_allowed(vocabulary.pieces, vocabulary.words, space) for space in spaced])
    if vocabulary.unknown_id is not None:
        allowed_NV[:, vocabulary.unknown_id] = False
    p_NV = _guesses(model, [ids], blanks, allowed_NV)[0]
    shown = [[piece.removeprefix(" ") if space else piece for piece in vocabulary.pieces] for space in (False, True)]
    found = tuple(
        tuple(
            Candidate(text=shown[space][i], p=float(p_V[i]))
            for i in np.argsort(-p_V, kind="stable")[:top].tolist()
            if p_V[i] > 0
        )
        for p_V, space in zip(p_NV, spaced, strict=True)
    )
    wholes = tuple(
        Candidate(
            text="".join(
                part + (shown[spaced[n]][way.ids[blanks[n]]] if n < len(blanks) else "")
                for n, part in enumerate(pieces)
            ),
            p=math.exp(way.logp),
        )
        for way in _ways(model, ids, blanks, allowed_NV, max(top, BEAM))[:top]
    )
    return Filled(text=text, filled=wholes[0].text, blanks=found, wholes=wholes)


@dataclass(frozen=True)
class _Way:
    """Ids in which some blanks are filled, and the logarithm of the probability of what fills them."""

    ids: list[int]
    logp: float


def _ways(model: BERT, ids: list[int], blanks: list[int], allowed_NV: np.ndarray, beam: int) -> list[_Way]:
    """Ways to fill all blanks, likeliest first. Which blank is next, the likeliest way so far says."""
    ways, open_ = [_Way(ids, 0.0)], list(range(len(blanks)))
    while open_:
        p_BNV = _guesses(model, [way.ids for way in ways], [blanks[n] for n in open_], allowed_NV[open_])
        surest = int(p_BNV[0].max(-1).argmax())
        with np.errstate(divide="ignore"):  # what cannot stand there
            logp_BV = np.log(p_BNV[:, surest]) + np.array([way.logp for way in ways])[:, None]
        best = np.argsort(-logp_BV, axis=None, kind="stable")[:beam]
        place = blanks[open_.pop(surest)]
        ways = [
            _Way([*ways[row].ids[:place], token, *ways[row].ids[place + 1 :]], float(logp_BV[row, token]))
            for row, token in (divmod(at, logp_BV.shape[1]) for at in best.tolist())
            if logp_BV[row, token] > -np.inf
        ]
    return ways


def with_blanks(model: BERT, tokenizer: Tokenizer, pieces: Sequence[str]) -> tuple[list[int], list[int], list[bool]]:
    """The ids with a mask at every blank, where the blanks are, and whether the space before each is part of its token."""
    vocabulary = tokenizer.vocabulary
    joins = vocabulary.words or any(len(piece) > 1 and piece.startswith(" ") for piece in vocabulary.pieces)
    spaced = [joins and piece.endswith(" ") for piece in pieces[:-1]]
    parts = [piece[:-1] if space else piece for piece, space in zip(pieces, [*spaced, False], strict=True)]
    if vocabulary.words:  # the space after a blank is implied too
        parts = [parts[0], *(part.removeprefix(" ") for part in parts[1:])]
    ids: list[int] = []
    blanks: list[int] = []
    for number, part in enumerate(parts):
        if number:
            blanks.append(len(ids))
            ids.append(model.symbols.mask)
        if part:
            ids += tokenizer.encode_each([part])[0].ids.tolist()
    return ids, blanks, spaced


def _allowed(pieces: Sequence[str], words: bool, space: bool) -> np.ndarray:
    """Which tokens can stand at a blank: words, or those that begin with a space exactly where one goes before it.

    A space alone is none of them: the blank would be as empty as before.
    """
    if words:
        return np.array([not piece[:1].isspace() for piece in pieces])
    return np.array([piece.startswith(" ") == space and piece != " " for piece in pieces])


def _guesses(model: BERT, texts: Sequence[Sequence[int]], blanks: Sequence[int], allowed_NV: np.ndarray) -> np.ndarray:
    """Probabilities of the allowed tokens at the same blanks of several texts, B×N×V."""
    symbols, device = model.symbols, next(model.parameters()).device
    inputs_BT = torch.tensor([[symbols.begin, *ids, symbols.end] for ids in texts], device=device)
    places_BN = torch.arange(len(texts), device=device)[:, None] * inputs_BT.shape[1] + 1
    places_BN = places_BN + torch.tensor(blanks, device=device)
    logp_BNV = model.guesses(inputs_BT, places_BN.flatten()).view(len(texts), len(blanks), -1)
    logp_BNV = logp_BNV.masked_fill(~torch.from_numpy(allowed_NV).to(device), -torch.inf)
    found: np.ndarray = torch.softmax(logp_BNV, dim=-1).cpu().numpy()
    return found
