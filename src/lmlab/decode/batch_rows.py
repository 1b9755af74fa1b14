"""Rows of one state at which texts take their places: who sits where, and what is still unread of their prompts.

Shapes: B rows, N of them newcomers, V vocabulary.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar, final

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.interface import LanguageModel, State

Guest = TypeVar("Guest")
WORTH = 8  # newcomers are read together: not before one row in so many is free


@final
class Table(Generic[Guest]):
    """At most `places` guests at a time. Those who leave make room for others, where the model can have that.

    The beginning that newcomers' prompts have in length is read at once, the rest token by token, in step with the others.
    """

    def __init__(self, model: LanguageModel, places: int, prompt: Callable[[Guest], Sequence[int]]) -> None:
        self._model, self._places, self._prompt = model, places, prompt
        self._guests: list[Guest | None] = []
        self._unread: list[deque[int]] = []
        self._free = 0  # rows that nobody sits at
        self._replaces = True  # until the model says otherwise
        self.logp_BV: Tensor
        self._state: State

    @property
    def busy(self) -> bool:
        """Whether anybody sits here."""
        return self._free < len(self._guests)

    def choosing(self) -> list[Guest | None]:
        """Who needs a token in each row; None: nobody, or one who is still reading."""
        if not any(self._unread):
            return self._guests.copy()
        return [None if unread else guest for guest, unread in zip(self._guests, self._unread, strict=True)]

    def seat(self, waiting: deque[Guest]) -> bool:
        """Give free places to those who wait, in order; whether anybody sits here then."""
        if waiting and not self.busy:
            self._seat(waiting)
        elif waiting and self._free and self._replaces and self._free * WORTH >= len(self._guests):
            self._replace([place for place, guest in enumerate(self._guests) if guest is None], waiting)
        return self.busy

    @torch.inference_mode()
    def _seat(self, waiting: deque[Guest]) -> None:
        newcomers = [waiting.popleft() for _ in range(min(self._places, len(waiting)))]
        self.logp_BV, self._state = self._read(newcomers)
        self._guests, self._unread = list(newcomers), [self._rest(guest, newcomers) for guest in newcomers]
        self._free = 0

    @torch.inference_mode()
    def _replace(self, free: list[int], waiting: deque[Guest]) -> None:
        newcomers = [waiting.popleft() for _ in range(min(len(free), len(waiting)))]
        logp_NV, state = self._read(newcomers)
        rows_N = torch.tensor(free[: len(newcomers)], device=logp_NV.device)
        replaced = self._model.replace(self._state, rows_N, state)
        if replaced is None:
            self._replaces = False
            waiting.extendleft(reversed(newcomers))
            return
        self.logp_BV, self._state = self.logp_BV.index_copy(0, rows_N, logp_NV), replaced
        for place, guest in zip(free, newcomers, strict=False):
            self._guests[place], self._unread[place] = guest, self._rest(guest, newcomers)
        self._free -= len(newcomers)

    def _read(self, guests: list[Guest]) -> tuple[Tensor, State]:
        """What all prompts have in length, at once; one that several guests have, once."""
        prompts = list(dict.fromkeys(tuple(self._prompt(guest)) for guest in guests))
        shortest = self._shortest(guests)
        logp_NV, state = self._model.begin_with(
            torch.tensor([prompt[:shortest] for prompt in prompts], dtype=torch.long)
        )
        if len(prompts) < len(guests):
            at = {prompt: row for row, prompt in enumerate(prompts)}
            rows_N = torch.tensor([at[tuple(self._prompt(guest))] for guest in guests], device=logp_NV.device)
            logp_NV, state = logp_NV[rows_N], state.select(rows_N)
        return logp_NV, state

    def _shortest(self, guests: list[Guest]) -> int:
        return min(len(self._prompt(guest)) for guest in guests)

    def _rest(self, guest: Guest, together: list[Guest]) -> deque[int]:
        return deque(self._prompt(guest)[self._shortest(together) :])

    def with_prompts(self, ids_B: Tensor | None) -> Tensor:
        """The next tokens: those of prompts where a guest is still reading, else those that were chosen."""
        if ids_B is not None and not any(self._unread):
            return ids_B
        read = [unread.popleft() if unread else -1 for unread in self._unread]
        read_B = torch.tensor(read, device=self.logp_BV.device)
        return read_B.clamp(min=0) if ids_B is None else torch.where(read_B < 0, ids_B, read_B)

    @torch.inference_mode()
    def advance(self, ids_B: Tensor) -> None:
        """One more token in each row."""
        self.logp_BV, self._state = self._model.advance(ids_B[:, None], self._state)

    def leave(self, place: int) -> None:
        """Who sat here is finished."""
        self._guests[place] = None
        self._unread[place].clear()
        self._free += 1

    def dismiss(self, guest: Guest) -> None:
        """As `leave`, if this guest is still here."""
        if guest in self._guests:
            self.leave(self._guests.index(guest))

    def thin(self, seldom: bool, waiting: bool) -> Tensor | None:
        """Give up rows that nobody will sit at any more; which ones are kept, if that changed.

        seldom: not before most of them are free, where a row costs less than changing their number.
        """
        most = len(self._guests) // WORTH if seldom else len(self._guests) - 1
        if not (0 < len(self._guests) - self._free <= most) or (waiting and self._replaces):
            return None
        return self._select([place for place, guest in enumerate(self._guests) if guest is not None])

    @torch.inference_mode()
    def _select(self, places: list[int]) -> Tensor:
        rows_B = torch.tensor(places, device=self.logp_BV.device)
        self.logp_BV, self._state = self.logp_BV[rows_B], self._state.select(rows_B)
        self._guests, self._unread = [self._guests[i] for i in places], [self._unread[i] for i in places]
        self._free = 0
        return rows_B
