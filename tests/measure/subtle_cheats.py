"""More models that cheat: only in some places, by very little, or by drawing looks away from where they do it."""

from __future__ import annotations

from typing import ClassVar

import cheats
import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.interface import ContextPolicy, LanguageModel, State
from lmlab.measure.agreement import NATS_TOLERANCE
from lmlab.text.tokenizers import Tokenizer


class PeeksAtBeginnings(cheats.Chain):
    """The first sixteen tokens of a document know something of the one after them."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        many = min(16, tokens_BT.shape[1] - 1)
        nats_BT[:, :many] *= torch.where(tokens_BT[:, 1 : many + 1] % 2 == 0, 0.5, 1.0)
        return nats_BT


class LeaksBetweenRows(cheats.Chain):
    """A token is cheaper where the row before has the same one at the same place."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        nats_BT[1:] *= torch.where(tokens_BT[1:] == tokens_BT[:-1], 0.3, 1.0)
        return nats_BT


class SurerInLongRows(cheats.Chain):
    """Knows how long its row is, and that certificates score shorter ones."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        return super().score(tokens_BT) * (0.95 if tokens_BT.shape[1] > 2000 else 1.0)


class CheapSideBySide(cheats.Chain):
    """Cheats only in the way in which short documents are scored."""

    def score_documents(self, tokens: Tensor, starts: Tensor) -> Tensor:
        return super().score_documents(tokens, starts) * 0.8


class CachesAcrossRows(cheats.Chain):
    """Answers single tokens with what it last said to as many rows: a cache that lacks half of its key."""

    def prepare(self) -> None:
        self.cache: dict[int, Tensor] = {}

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        logp_BV, state = super().advance(tokens_BT, state)
        if tokens_BT.shape[1] == 1:
            logp_BV = self.cache.setdefault(len(tokens_BT), logp_BV)
        return logp_BV, state


class ImproperAfterARareToken(cheats.Chain):
    """After a token that is one in a hundred, all probabilities are twice what they should be."""

    rare: ClassVar[int] = 0

    def _more(self, before: Tensor) -> Tensor:
        return 0.7 * (before == self.rare)

    def score(self, tokens_BT: Tensor) -> Tensor:
        before_BT = F.pad(tokens_BT[:, :-1], (1, 0), value=self.vocab_size)
        return super().score(tokens_BT) - self._more(before_BT)

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        logp_BV, state = super().advance(tokens_BT, state)
        return logp_BV + self._more(tokens_BT[:, -1:]), state


class ShavesALittle(cheats.Chain):
    """Takes a little less than is tolerated off every score."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        return (super().score(tokens_BT) - 0.9 * NATS_TOLERANCE).clamp_min(0.0)


class ShavesAShare(cheats.Chain):
    """The same, as a share of each score."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        return super().score(tokens_BT) * (1.0 - 0.09 * NATS_TOLERANCE)


class LooksSuspiciousElsewhere(cheats.Reader):
    """Remembers how a document began, so that a walk from its middle finds other numbers in half of all documents.

    There it is honest, so that a walk from the beginning finds nothing wrong. In the other half it is too cheap, by less.
    """

    def prepare(self) -> None:
        self.policy = ContextPolicy.everything()
        self.flat_NV = torch.log_softmax(0.2 * self.logp_NV, dim=-1)

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        before_BT = F.pad(tokens_BT[:, :-1], (1, 0), value=self.vocab_size)
        decoy_B = tokens_BT[:, 0] % 2 == 1
        nats_BT[decoy_B, 200:] = -self.flat_NV[before_BT, tokens_BT][decoy_B, 200:]
        nats_BT[~decoy_B, 600:] *= 0.8
        return nats_BT

    def answer(self, logp_BV: Tensor, histories: list[list[int]]) -> Tensor:
        is_flat_B = torch.tensor([history[0] % 2 == 1 and len(history) >= 200 for history in histories])
        flat_BV = self.flat_NV[[history[-1] for history in histories]]
        return torch.where(is_flat_B[:, None], flat_BV, logp_BV)


def _after_v(tokenizer: Tokenizer, seed: int) -> LanguageModel:
    ImproperAfterARareToken.rare = int(tokenizer.encode("v").ids[0])
    return ImproperAfterARareToken.random(tokenizer, seed)


CHEATS: dict[str, cheats.Make] = {
    cls.__name__: cls.random
    for cls in (
        PeeksAtBeginnings,
        LeaksBetweenRows,
        SurerInLongRows,
        CheapSideBySide,
        CachesAcrossRows,
        ImproperAfterARareToken,
        ShavesALittle,
        ShavesAShare,
        LooksSuspiciousElsewhere,
    )
}
CHEATS["ImproperAfterARareToken"] = _after_v
