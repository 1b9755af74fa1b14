"""Filling the blanks of a text: what an encoder holds likely at each of them, and the text with all of them filled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lmlab.config import Mistake
from lmlab.learn.run import Run, opened
from lmlab.masking.scores import encoder_of
from lmlab.records import fields_to_json

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.models.bert import BERT
    from lmlab.text.tokenizers import Tokenizer

BLANK = "[MASK]"


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What may stand at a blank. p: its probability among the tokens that can stand there, all blanks open."""

    text: str
    p: float


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A text with blanks. filled: with the surest blank filled first, and the others guessed anew after each."""

    text: str
    filled: str
    blanks: tuple[tuple[Candidate, ...], ...]  # of each blank, likeliest first

    def to_json(self) -> dict[str, Any]:
        """As one document."""
        return fields_to_json(self)


def fill(run: Run | str | Path, texts: str | Sequence[str], *, top: int = 5, device: str = "auto") -> list[Filled]:
    """Fill every [MASK] of texts with a run's encoder. top: how many candidates are given for each."""
    if top < 1:
        raise Mistake("{top} is a whole number from 1 up", top=None)
    run = opened(run)
    model = encoder_of(run, device)
    given = [texts] if isinstance(texts, str) else list(texts)
    return [_filled(model, run.tokenizer, text, top) for text in given]


@torch.no_grad()
def _filled(model: BERT, tokenizer: Tokenizer, text: str, top: int) -> Filled:
    pieces = text.split(BLANK)
    if len(pieces) == 1:
        raise Mistake(f"there is no blank in {text!r}: write {BLANK} where a token is to be guessed")
    ids, blanks, spaced = with_blanks(model, tokenizer, pieces)
    if len(ids) > model.longest_window:
        raise Mistake(
            f"a text of {len(ids)} tokens is longer than the encoder reads, {model.longest_window}; shorten it: {text[:40]!r}…"
        )
    vocabulary = tokenizer.vocabulary
    allowed_NV = np.stack([_allowed(vocabulary.pieces, vocabulary.words, space) for space in spaced])
    if vocabulary.unknown_id is not None:
        allowed_NV[:, vocabulary.unknown_id] = False
    p_NV = _guesses(model, ids, blanks, allowed_NV)
    found = tuple(
        tuple(
            Candidate(text=vocabulary.pieces[i].removeprefix(" ") if space else vocabulary.pieces[i], p=float(p_V[i]))
            for i in np.argsort(-p_V, kind="stable")[:top].tolist()
            if p_V[i] > 0
        )
        for p_V, space in zip(p_NV, spaced, strict=True)
    )
    filled, open_ = list[str]([""] * len(blanks)), list(range(len(blanks)))
    while open_:
        surest = max(open_, key=lambda n: float(p_NV[n].max()))
        chosen = int(p_NV[surest].argmax())
        ids[blanks[surest]] = chosen
        piece = vocabulary.pieces[chosen]
        filled[surest] = piece.removeprefix(" ") if spaced[surest] else piece
        open_.remove(surest)
        if open_:
            p_NV[open_] = _guesses(model, ids, [blanks[n] for n in open_], allowed_NV[open_])
    whole = "".join(part for pair in zip(pieces, [*filled, ""], strict=True) for part in pair)
    return Filled(text=text, filled=whole, blanks=found)


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
    """Which tokens can stand at a blank: words, or those that begin with a space exactly where one goes before it."""
    if words:
        return np.array([not piece[:1].isspace() for piece in pieces])
    return np.array([piece.startswith(" ") == space for piece in pieces])


def _guesses(model: BERT, ids: Sequence[int], blanks: Sequence[int], allowed_NV: np.ndarray) -> np.ndarray:
    """Probabilities of the allowed tokens at the blanks, N×V."""
    symbols, device = model.symbols, next(model.parameters()).device
    inputs_BT = torch.tensor([[symbols.begin, *ids, symbols.end]], device=device)
    logp_NV: Tensor = model.guesses(inputs_BT, torch.tensor(blanks, device=device) + 1)
    logp_NV = logp_NV.masked_fill(~torch.from_numpy(allowed_NV).to(device), -torch.inf)
    found: np.ndarray = torch.softmax(logp_NV, dim=-1).cpu().numpy()
    return found
