"""Models that cheat where it is hard to see, each in one way. None of them is worth the number that it claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import measure_models as planted
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.config import Budget, TextFacts
from lmlab.interface import ContextPolicy, HistoryState, LanguageModel, State
from lmlab.models.families import recurrent
from lmlab.models.lstm import LSTM
from lmlab.text.tokenizers import Tokenizer

STRETCH = recurrent.POSITIONS_AT_ONCE


def small_lstm(cls: type[LSTM], tokenizer: Tokenizer, seed: int) -> LSTM:
    """With opinions, and a memory that fades."""
    facts = TextFacts(train_tokens=10**5, train_bytes=10**5, vocab_size=tokenizer.vocab_size)
    torch.manual_seed(seed)
    settings = {"layers": 1, "width": 12, "embedding_width": 12}
    model = cls(cls.resolve(cls.Config(**settings), facts, Budget(steps=1)), tokenizer.vocab_size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model.eval()


class Chain(planted.Chain):
    """A chain that can be brought back from its table, as every model must."""

    @classmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Any) -> Self:
        model = cls.__new__(cls)
        model.config, model.vocab_size, model.policy = config, vocab_size, ContextPolicy.last(1)
        model.logp_NV = tensors["logp"]
        model.prepare()
        return model

    def __init__(self, tokenizer: Tokenizer, logp_NV: np.ndarray) -> None:
        super().__init__(tokenizer, logp_NV)
        self.prepare()

    def prepare(self) -> None:
        """What a cheat needs beside the table."""


class Read(State):
    """All tokens so far, or the last of them."""

    def __init__(self, histories: list[list[int]]) -> None:
        super().__init__()
        self.histories = histories

    def select(self, rows_B: Tensor) -> Read:
        return Read([self.histories[int(row)] for row in rows_B])


class Reader(Chain):
    """A chain that keeps what it has read, and may answer otherwise because of it."""

    known = 10**9  # last tokens that it keeps

    def begin(self, rows: int) -> tuple[Tensor, State]:
        return super().begin(rows)[0], Read([[] for _ in range(rows)])

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        assert isinstance(state, Read)
        state.spend()
        histories = [(old + new)[-self.known :] for old, new in zip(state.histories, tokens_BT.tolist(), strict=True)]
        return self.answer(self.logp_NV[tokens_BT[:, -1]], histories), Read(histories)

    def answer(self, logp_BV: Tensor, histories: list[list[int]]) -> Tensor:
        """What it says after these histories, where the chain says that."""
        raise NotImplementedError


# --- found by an audit ---


class ShrinksLater(Chain):
    """Scores are a tenth of what they should be, after the first 2,048 tokens."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        nats_BT[:, 2048:] *= 0.1
        return nats_BT


class DropsTheLastStretch(LSTM):
    """Forgets to write down the last of the stretches that it reads a long row in."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        nats_BT[:, max(STRETCH, (tokens_BT.shape[1] - 1) // STRETCH * STRETCH) :] = 0.0
        return nats_BT


class ReadsAhead(LSTM):
    """Reads a token before it predicts it, from the second stretch on."""

    @torch.no_grad()
    def score(self, tokens_BT: Tensor) -> Tensor:
        inputs_BT, memory = self.begin_inputs(tokens_BT), self.fresh(len(tokens_BT))
        inputs_BT = torch.cat([inputs_BT[:, :STRETCH], tokens_BT[:, STRETCH:]], dim=1)
        hidden_BTH, memory = self.read(self.embed(inputs_BT, torch.float32), memory, 0.0)
        return self._nats(hidden_BTH, tokens_BT)


class KeepsTheRow(Reader):
    """Nearly knows the row that it is given to score, keeps it, and is as sure of it when asked step by step."""

    def prepare(self) -> None:
        self.kept: list[list[int]] = []

    def score(self, tokens_BT: Tensor) -> Tensor:
        self.kept.extend(tokens_BT.tolist())
        return torch.full(tokens_BT.shape, -float(np.log(0.9 + 0.1 / self.vocab_size)))

    def answer(self, logp_BV: Tensor, histories: list[list[int]]) -> Tensor:
        for row, history in enumerate(histories):
            place = len(history)
            for kept in self.kept:
                if len(kept) > place and kept[:place] == history:
                    p_V = torch.full((self.vocab_size,), 0.1 / self.vocab_size)
                    p_V[kept[place]] += 0.9
                    logp_BV[row] = p_V.log()
        return logp_BV

    def begin(self, rows: int) -> tuple[Tensor, State]:
        logp_BV, state = super().begin(rows)
        return self.answer(logp_BV.clone(), [[] for _ in range(rows)]), state


class KeepsTheRowForAll(KeepsTheRow):
    """The same, kept where copies find it."""

    shared: ClassVar[list[list[int]]] = []

    def prepare(self) -> None:
        self.kept = self.shared


class SumsToThree(Chain):
    """After some contexts, one in a hundred or more, every probability is three times as large as it should be."""

    share = 0.02  # of contexts by their hash; of places it is about half

    def prepare(self) -> None:
        self.policy = ContextPolicy.last(4)

    def _more(self, history_BTN: Tensor) -> Tensor:
        primes = torch.tensor([7919, 104729, 1299709, 15485863])
        return ((history_BTN + 1) * primes).sum(-1) * 2654435761 % 10007 < self.share * 10007

    def score(self, tokens_BT: Tensor) -> Tensor:
        padded = F.pad(tokens_BT[:, :-1], (4, 0), value=self.vocab_size)
        history_BTN = padded.unfold(1, 4, 1)
        return super().score(tokens_BT) - self._more(history_BTN) * float(np.log(3.0))

    def begin(self, rows: int) -> tuple[Tensor, State]:
        state = HistoryState.empty(rows, 4, self.vocab_size)
        return self._after(state), state

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        assert isinstance(state, HistoryState)
        state = state.push(tokens_BT)
        return self._after(state), state

    def _after(self, state: HistoryState) -> Tensor:
        more_B = self._more(state.history_BN)
        return self.logp_NV[state.history_BN[:, -1]] + more_B[:, None] * float(np.log(3.0))


class SumsToThreeOften(SumsToThree):
    """After six contexts in a hundred."""

    share = 0.12


# --- their relatives ---


class FreeEdges(Chain):
    """The first and the last token of every row cost nothing."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        nats_BT[:, 0] = 0.0
        return nats_BT


class FreeEnds(Chain):
    """The last tokens of a long row cost nothing."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        if tokens_BT.shape[1] > 300:
            nats_BT[:, -20:] = 0.0
        return nats_BT


class CheaperInCompany(Chain):
    """Rows cost less where there are several."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        return super().score(tokens_BT) * (0.8 if len(tokens_BT) > 1 else 1.0)


class CheaperTheSecondTime(Chain):
    """The first call is honest."""

    calls = 0

    def score(self, tokens_BT: Tensor) -> Tensor:
        self.calls += 1
        return super().score(tokens_BT) * (0.7 if self.calls > 1 else 1.0)


class CheapSurprises(Chain):
    """What costs more than five nats costs nothing instead."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        return torch.where(nats_BT > 5.0, 0.0, nats_BT)


class AThousandthTooMuch(Chain):
    """Every distribution sums to 1.001."""

    def __init__(self, tokenizer: Tokenizer, logp_NV: np.ndarray) -> None:
        super().__init__(tokenizer, logp_NV + 1e-3)


class NowAndThenAboveOne(Chain):
    """One token in two hundred is more than certain, and pays for others."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        nats_BT[:, 100::200] = -20.0
        return nats_BT


class LearnsWhileItScores(Chain):
    """Moves its table towards every row that it scores, before it scores it."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        counts_NV = torch.full_like(self.logp_NV, 1e-3)
        before_BT = F.pad(tokens_BT[:, :-1], (1, 0), value=self.vocab_size)
        counts_NV.index_put_((before_BT, tokens_BT), torch.ones(tokens_BT.shape), accumulate=True)
        self.logp_NV = ((self.logp_NV.exp() + counts_NV / counts_NV.sum(1, keepdim=True)) / 2).log()
        return super().score(tokens_BT)


class SurerDeepDown(Reader):
    """After 3,000 tokens gives every token twice its probability, however it is asked."""

    def prepare(self) -> None:
        self.policy = ContextPolicy.everything()

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        nats_BT[:, 3000:] -= float(np.log(2.0))
        return nats_BT

    def answer(self, logp_BV: Tensor, histories: list[list[int]]) -> Tensor:
        return logp_BV + (float(np.log(2.0)) if len(histories[0]) >= 3000 else 0.0)


class PretendsToBeChaotic(LSTM):
    """Scores are a half of what they should be; weights that were shaken are answered with noise, as chaos would."""

    @torch.no_grad()
    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT) * 0.5
        return nats_BT + (torch.rand_like(nats_BT) if self._shaken() else 0.0)

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        logp_BV, state = super().advance(tokens_BT, state)
        return (torch.log_softmax(logp_BV + torch.rand_like(logp_BV), -1) if self._shaken() else logp_BV), state

    def _shaken(self) -> bool:
        whole = float(self.embedding_WX.detach().double().sum())
        return abs(whole - self.__class__.whole) > 0 if self.__class__.whole is not None else False

    whole: ClassVar[float | None] = None


class HonestWhereAsked(Reader):
    """Keeps, for all copies, after which tokens it was asked, and cheats after the others."""

    asked: ClassVar[set[tuple[int, ...]]] = set()
    known = 6  # last tokens by which a place is known again

    def prepare(self) -> None:
        self.policy = ContextPolicy.last(self.known)

    def answer(self, logp_BV: Tensor, histories: list[list[int]]) -> Tensor:
        self.asked.update(map(tuple, histories))
        return logp_BV

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        for row, tokens in enumerate(tokens_BT.tolist()):
            for place in range(self.known, len(tokens)):
                if tuple(tokens[place - self.known : place]) not in self.asked:
                    nats_BT[row, place] *= 0.5
        return nats_BT


class WritesItsAnswerLater(Chain):
    """Keeps the tensor in which it answered, and puts the truth into it when it is shown what came; its scores know it too."""

    def prepare(self) -> None:
        self.answer: Tensor | None = None

    def score(self, tokens_BT: Tensor) -> Tensor:
        return super().score(tokens_BT) * 0.0

    def begin(self, rows: int) -> tuple[Tensor, State]:
        logp_BV, state = super().begin(rows)
        self.answer = logp_BV.clone()
        return self.answer, state

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        if self.answer is not None:
            self.answer.fill_(-torch.inf).scatter_(1, tokens_BT[:, :1], 0.0)
        logp_BV, state = super().advance(tokens_BT, state)
        self.answer = logp_BV.clone()
        return self.answer, state


class SavesOtherWeights(Chain):
    """What it saves is a flatter table than the one it scores with."""

    def tensors(self) -> dict[str, Tensor]:
        return {"logp": torch.log_softmax(0.5 * self.logp_NV, dim=-1)}


class SharpensInHindsight(Chain):
    """Has two temperatures, and lets every token have the one under which it is cheaper."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        before_BT = F.pad(tokens_BT[:, :-1], (1, 0), value=self.vocab_size)
        sharp_NV = torch.log_softmax(2.0 * self.logp_NV, dim=-1)
        return torch.minimum(super().score(tokens_BT), -sharp_NV[before_BT, tokens_BT])


class ColderLaterInTheRow(Reader):
    """Says that it looks back one token, and grows surer with every token that it has read."""

    def _at(self, place: Tensor) -> Tensor:
        return 1.0 + place.clamp(max=4000) / 2000.0

    def score(self, tokens_BT: Tensor) -> Tensor:
        before_BT = F.pad(tokens_BT[:, :-1], (1, 0), value=self.vocab_size)
        logits_BTV = self.logp_NV[before_BT] * self._at(torch.arange(tokens_BT.shape[1]))[:, None]
        return -torch.log_softmax(logits_BTV, -1).gather(2, tokens_BT[..., None])[..., 0]

    def answer(self, logp_BV: Tensor, histories: list[list[int]]) -> Tensor:
        return torch.log_softmax(logp_BV * self._at(torch.tensor(len(histories[0]))), -1)


class UnknownForNothing(Chain):
    """The unknown symbol is free; only its spelling is paid for."""

    unknown_id: ClassVar[int | None] = None

    def score(self, tokens_BT: Tensor) -> Tensor:
        return torch.where(tokens_BT == self.unknown_id, 0.0, super().score(tokens_BT))


Make = Callable[[Tokenizer, int], LanguageModel]


def _keeper_for_all(tokenizer: Tokenizer, seed: int) -> LanguageModel:
    KeepsTheRowForAll.shared.clear()  # what earlier trials left would only make it slow
    return KeepsTheRowForAll.random(tokenizer, seed)


def _honest_where_asked(tokenizer: Tokenizer, seed: int) -> LanguageModel:
    HonestWhereAsked.asked.clear()
    return HonestWhereAsked.random(tokenizer, seed)


def _chain(cls: type[Chain]) -> Make:
    return lambda tokenizer, seed: cls.random(tokenizer, seed)


def _lstm(cls: type[LSTM]) -> Make:
    return lambda tokenizer, seed: small_lstm(cls, tokenizer, seed)


def _pretender(tokenizer: Tokenizer, seed: int) -> LanguageModel:
    model = small_lstm(PretendsToBeChaotic, tokenizer, seed)
    assert isinstance(model, PretendsToBeChaotic)
    PretendsToBeChaotic.whole = float(model.embedding_WX.detach().double().sum())
    return model


CHEATS: dict[str, Make] = {
    cls.__name__: (_chain(cls) if issubclass(cls, Chain) else _lstm(cls))
    for cls in (
        ShrinksLater,
        DropsTheLastStretch,
        ReadsAhead,
        KeepsTheRow,
        KeepsTheRowForAll,
        SumsToThree,
        SumsToThreeOften,
        FreeEdges,
        FreeEnds,
        CheaperInCompany,
        CheaperTheSecondTime,
        CheapSurprises,
        AThousandthTooMuch,
        NowAndThenAboveOne,
        LearnsWhileItScores,
        SurerDeepDown,
        HonestWhereAsked,
        WritesItsAnswerLater,
        SavesOtherWeights,
        SharpensInHindsight,
        ColderLaterInTheRow,
    )
}
CHEATS["KeepsTheRowForAll"] = _keeper_for_all
CHEATS["HonestWhereAsked"] = _honest_where_asked
CHEATS["PretendsToBeChaotic"] = _pretender
