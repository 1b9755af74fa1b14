"""Rows of several states side by side, for every model: those whose states join, and those whose states stay separate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, final

import torch
from torch import Tensor

from lmlab.interface.state import State

if TYPE_CHECKING:
    from lmlab.interface.language_model import LanguageModel


def side_by_side(states: Sequence[State], rows: Sequence[int]) -> State:
    """Return one state with the rows of all states, in order. Spends them.

    States that do not join are kept apart and advanced one after the other.

    Args:
        states: states of one model, or results of this function.
        rows: the number of rows of each state.
    """
    if len(states) == 1:
        return states[0]
    pieces, first = list[Piece](), 0
    for state, count in zip(states, rows, strict=True):
        parts = state.pieces() if isinstance(state, SeparateStates) else [Piece(state, torch.arange(count))]
        pieces += [Piece(part, first + rows_N) for part, rows_N in parts]
        first += count
    return _joined(pieces)


def with_rows_replaced(state: State, rows: int, rows_N: Tensor, others: State) -> State:
    """Return `state`, which has so many rows, with row rows_N[i] replaced by row i of `others`. Spends both."""
    if (replaced := state.replace(rows_N, others)) is not None:
        return replaced
    order_B = torch.arange(rows, device=rows_N.device)
    order_B[rows_N] = rows + torch.arange(len(rows_N), device=rows_N.device)
    return side_by_side([state, others], [rows, len(rows_N)]).select(order_B)


def advance(model: LanguageModel, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
    """Return `model.advance(tokens_BT, state)`, also for a state that `side_by_side` returned."""
    return state.advance(model, tokens_BT) if isinstance(state, SeparateStates) else model.advance(tokens_BT, state)


def confidence_after(model: LanguageModel, logp_BV: Tensor, state: State) -> Tensor:
    """Return `model.confidence_after(logp_BV, state)`, also for a state that `side_by_side` returned."""
    if isinstance(state, SeparateStates):
        return state.confidence_after(model, logp_BV)
    return model.confidence_after(logp_BV, state)


class Piece(NamedTuple):
    """A state, and the places of its rows among all rows."""

    state: State
    rows_N: Tensor


def _joined(pieces: list[Piece]) -> State:
    """Return one state with the rows of all pieces; pieces that do not join are kept apart."""
    if len(pieces) == 1:
        joined = pieces
    elif (whole := type(pieces[0].state).concat([piece.state for piece in pieces])) is not None:
        joined = [Piece(whole, torch.cat([piece.rows_N for piece in pieces]))]
    else:
        joined = []
        for piece in pieces:
            for place, group in enumerate(joined):
                if (both := type(group.state).concat([group.state, piece.state])) is not None:
                    joined[place] = Piece(both, torch.cat([group.rows_N, piece.rows_N]))
                    break
            else:
                joined.append(piece)
    in_order = len(joined) == 1 and bool((joined[0].rows_N.diff() == 1).all())
    return joined[0].state if in_order else SeparateStates(joined)


@final
class SeparateStates(State):
    """States of one model that do not join, and which rows each of them has."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        super().__init__()
        self._pieces = list(pieces)

    def pieces(self) -> list[Piece]:
        """Return the states with their rows. Spends this state."""
        self.spend()
        return self._pieces

    def select(self, rows_B: Tensor) -> State:
        """Return a new state with these rows. A piece without rows is left out."""
        chosen = list[Piece]()
        for state, rows_N in self._pieces:
            same_BN = rows_B.cpu()[:, None] == rows_N
            wanted_B = same_BN.any(1)
            if wanted_B.any():
                selected = state.select(same_BN[wanted_B].int().argmax(1).to(rows_B.device))
                chosen.append(Piece(selected, wanted_B.nonzero()[:, 0]))
        return _joined(chosen)

    def advance(self, model: LanguageModel, tokens_BT: Tensor) -> tuple[Tensor, State]:
        """Advance the pieces one after the other, and join those that can be joined now."""
        pieces, logp_BV = list[Piece](), tokens_BT.new_empty(0, dtype=torch.float32)
        for state, rows_N in self.pieces():
            rows_N = rows_N.to(tokens_BT.device)
            logp_NV, after = model.advance(tokens_BT[rows_N], state)
            if not pieces:
                logp_BV = logp_NV.new_empty(len(tokens_BT), logp_NV.shape[1])
            logp_BV[rows_N.to(logp_NV.device)] = logp_NV
            pieces.append(Piece(after, rows_N.cpu()))
        return logp_BV, _joined(pieces)

    def confidence_after(self, model: LanguageModel, logp_BV: Tensor) -> Tensor:
        """Return the confidence features of the pieces, in the order of the rows."""
        features_BS = logp_BV.new_empty(len(logp_BV), model.confidence_features)
        for state, rows_N in self._pieces:
            rows_N = rows_N.to(logp_BV.device)
            features_BS[rows_N] = model.confidence_after(logp_BV[rows_N], state)
        return features_BS
