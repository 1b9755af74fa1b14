"""Rows of several states side by side, for every model: those whose states join, and those whose states stay separate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

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
    joined = _concat(states)
    return SeparateStates.of(states, rows) if joined is None else joined


def with_rows_replaced(state: State, rows: int, rows_N: Tensor, newcomers: State) -> State:
    """Return `state`, which has so many rows, with row rows_N[i] replaced by row i of `newcomers`. Spends both."""
    if (replaced := state.replace(rows_N, newcomers)) is not None:
        return replaced
    order_B = torch.arange(rows, device=rows_N.device)
    order_B[rows_N] = rows + torch.arange(len(rows_N), device=rows_N.device)
    return side_by_side([state, newcomers], [rows, len(rows_N)]).select(order_B)


def advance(model: LanguageModel, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
    """Return `model.advance(tokens_BT, state)`, also for a state that `side_by_side` returned."""
    return state.advance(model, tokens_BT) if isinstance(state, SeparateStates) else model.advance(tokens_BT, state)


def confidence_after(model: LanguageModel, logp_BV: Tensor, state: State) -> Tensor:
    """Return `model.confidence_after(logp_BV, state)`, also for a state that `side_by_side` returned."""
    if not isinstance(state, SeparateStates):
        return model.confidence_after(logp_BV, state)
    features_BS = logp_BV.new_empty(len(logp_BV), model.confidence_features)
    for part, rows_N in zip(state.states, state.rows, strict=True):
        features_BS[rows_N.to(logp_BV.device)] = model.confidence_after(logp_BV[rows_N.to(logp_BV.device)], part)
    return features_BS


def _concat(states: Sequence[State]) -> State | None:
    """Return the joined state; None if the states do not join."""
    separate = any(isinstance(state, SeparateStates) for state in states)
    return None if separate else type(states[0]).concat(states)


@final
class SeparateStates(State):
    """States of one model that do not join, and which rows each of them has."""

    def __init__(self, states: Sequence[State], rows: Sequence[Tensor]) -> None:
        super().__init__()
        self.states, self.rows = list(states), list(rows)

    @classmethod
    def of(cls, states: Sequence[State], rows: Sequence[int]) -> SeparateStates:
        """Return the states with their rows one after the other. Spends states of this class, whose parts are taken over."""
        found, places, first = list[State](), list[Tensor](), 0
        for state, count in zip(states, rows, strict=True):
            if isinstance(state, SeparateStates):
                state.spend()
                found += state.states
                places += [first + rows_N for rows_N in state.rows]
            else:
                found.append(state)
                places.append(first + torch.arange(count))
            first += count
        return cls(found, places)

    def select(self, rows_B: Tensor) -> SeparateStates:
        """Return a new state with these rows. A part without rows is left out."""
        states, places = list[State](), list[Tensor]()
        for state, rows_N in zip(self.states, self.rows, strict=True):
            same_BN = rows_B.cpu()[:, None] == rows_N
            chosen_B = same_BN.any(1)
            if chosen_B.any():
                states.append(state.select(same_BN[chosen_B].int().argmax(1).to(rows_B.device)))
                places.append(chosen_B.nonzero()[:, 0])
        return SeparateStates(states, places)

    def advance(self, model: LanguageModel, tokens_BT: Tensor) -> tuple[Tensor, State]:
        """Advance the parts one after the other, and join those that can be joined now."""
        self.spend()
        found: list[Tensor] = []
        states: list[State] = []
        for state, rows_N in zip(self.states, self.rows, strict=True):
            logp_NV, after = model.advance(tokens_BT[rows_N.to(tokens_BT.device)], state)
            found.append(logp_NV)
            states.append(after)
        rows_B = torch.cat(self.rows)
        logp_BV = torch.empty(len(rows_B), found[0].shape[1], device=found[0].device)
        logp_BV[rows_B.to(logp_BV.device)] = torch.cat(found)
        joined = _concat(states)
        if joined is None:
            return logp_BV, SeparateStates(states, self.rows)
        order_B = torch.empty_like(rows_B)
        order_B[rows_B] = torch.arange(len(rows_B))
        if bool((rows_B == torch.arange(len(rows_B))).all()):
            return logp_BV, joined
        return logp_BV, joined.select(order_B.to(tokens_BT.device))
