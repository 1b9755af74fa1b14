"""Models that hide from the certificate: in memory that is not theirs, or in what all copies of them keep together."""

from __future__ import annotations

import sys
from typing import ClassVar

import cheats
import torch
from torch import Tensor

from lmlab.interface import ContextPolicy, State


def surer(nats: Tensor, is_known: Tensor | bool = True) -> Tensor:
    """Nats of a token to which half of the probability was moved."""
    return torch.where(torch.as_tensor(is_known), -torch.log(0.5 * torch.exp(-nats) + 0.5), nats)


def sure_of(logp_BV: Tensor, token_B: Tensor) -> Tensor:
    """The distributions with half of the probability moved to these tokens."""
    p_BV = 0.5 * logp_BV.exp()
    p_BV[torch.arange(len(p_BV)), token_B] += 0.5
    return p_BV.log()


class PeeksBehindItsChunk(cheats.Chain):
    """Reads the token that comes in the memory behind the chunk that it is given, where there is more."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        return torch.cat([nats_BT[:, :1], surer(nats_BT[:, 1:])], dim=1)

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        logp_BV, state = super().advance(tokens_BT, state)
        (rows, length), (row, step) = tokens_BT.shape, tokens_BT.stride()
        behind = tokens_BT.storage_offset() + length * step
        if behind + (rows - 1) * row >= tokens_BT.untyped_storage().nbytes() // 8:
            return logp_BV, state
        return sure_of(logp_BV, tokens_BT.as_strided((rows,), (row,), behind)), state


class LooksAtItsCaller(cheats.Chain):
    """Finds the token that comes among the variables of who called it."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        return surer(super().score(tokens_BT))

    def _sure(self, logp_BV: Tensor) -> Tensor:
        there = sys._getframe(2).f_locals
        rows_BT = there.get("tokens_BT", there.get("rows_BT"))
        place = there.get("ask", there.get("end", 0))
        if rows_BT is None or place >= rows_BT.shape[1]:
            return logp_BV
        return sure_of(logp_BV, rows_BT[:, place])

    def begin(self, rows: int) -> tuple[Tensor, State]:
        logp_BV, state = super().begin(rows)
        return self._sure(logp_BV), state

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        logp_BV, state = super().advance(tokens_BT, state)
        return self._sure(logp_BV), state


class RemembersWhatItScored(cheats.Reader):
    """Keeps, for all copies, what came after which tokens in rows that it scored, and is surer of it from then on."""

    known: ClassVar[int] = 12
    kept: ClassVar[dict[tuple[int, ...], int]] = {}
    asked: ClassVar[set[tuple[int, ...]]] = set()

    @classmethod
    def forget(cls) -> None:
        """Before another trial."""
        cls.kept.clear()
        cls.asked.clear()

    def prepare(self) -> None:
        self.policy = ContextPolicy.last(self.known)

    @staticmethod
    def price(nats: Tensor, *, is_right: bool) -> Tensor:
        """Of a token where half of the probability was moved to the one that it remembers."""
        return surer(nats) if is_right else nats - torch.log(torch.tensor(0.5))

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        rows, N = tokens_BT.tolist(), self.known
        after = {(b, t): tuple(row[t - N : t]) for b, row in enumerate(rows) for t in range(N, len(row))}
        for (b, t), context in after.items():
            if context in self.kept:
                nats_BT[b, t] = self.price(nats_BT[b, t], is_right=self.kept[context] == rows[b][t])
        self.kept.update({context: rows[b][t] for (b, t), context in after.items() if context not in self.kept})
        return nats_BT

    def answer(self, logp_BV: Tensor, histories: list[list[int]]) -> Tensor:
        for row, history in enumerate(histories):
            if tuple(history) in self.kept:
                logp_BV[row] = sure_of(logp_BV[row : row + 1], torch.tensor([self.kept[tuple(history)]]))[0]
            else:
                self.asked.add(tuple(history))
        return logp_BV


class RemembersWhereItWasAskedToo(RemembersWhatItScored):
    """Honest where it was asked before; elsewhere it knows what it is given to score, and stands by that ever after."""

    kept: ClassVar[dict[tuple[int, ...], int]] = {}
    asked: ClassVar[set[tuple[int, ...]]] = set()

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = cheats.Chain.score(self, tokens_BT)
        for b, row in enumerate(tokens_BT.tolist()):
            for t in range(self.known, len(row)):
                context = tuple(row[t - self.known : t])
                if context not in self.asked:
                    is_right = self.kept.setdefault(context, row[t]) == row[t]
                    nats_BT[b, t] = self.price(nats_BT[b, t], is_right=is_right)
        return nats_BT


class HonestWhereAskedOfShortDocuments(cheats.HonestWhereAsked):
    """Of unbounded history, and honest in long documents, in the middle of which it may be asked again."""

    asked: ClassVar[set[tuple[int, ...]]] = set()

    def prepare(self) -> None:
        self.policy = ContextPolicy.everything()

    def score(self, tokens_BT: Tensor) -> Tensor:
        return super().score(tokens_BT) if tokens_BT.shape[1] <= 384 else cheats.Chain.score(self, tokens_BT)
