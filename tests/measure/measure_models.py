"""Models whose truth is known, and models and tokenizers with planted mistakes, for the tests of measuring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from lmlab.interface import ContextPolicy, HistoryState, LanguageModel, Loss, NeuralLanguageModel, State, Windows
from lmlab.text.parts import Document, Part
from lmlab.text.tokenizers import Tokenizer, train_tokenizer

COMMON = "the cat sat on a mat and the dog lay by the door of the old house while rain fell upon every garden window"
WORDS = COMMON.split()


@dataclass(frozen=True, kw_only=True)
class ChainConfig:
    """Nothing to set."""


class Chain(LanguageModel):
    """p(token | the token before it) from a table, (V + 1)×V; the last row is for the first token."""

    name: ClassVar[str] = "chain"
    Config: ClassVar[type] = ChainConfig

    def __init__(self, tokenizer: Tokenizer, logp_NV: np.ndarray) -> None:
        self.config, self.tokenizer, self.vocab_size = ChainConfig(), tokenizer, tokenizer.vocab_size
        self.policy = ContextPolicy.last(1)
        self.logp_NV = torch.from_numpy(logp_NV.astype(np.float32))

    @classmethod
    def random(cls, tokenizer: Tokenizer, seed: int = 0) -> Self:
        V = tokenizer.vocab_size
        return cls(tokenizer, np.log(np.random.default_rng(seed).dirichlet(np.full(V, 0.3) + 1e-2, size=V + 1)))

    def score(self, tokens_BT: Tensor) -> Tensor:
        before_BT = torch.nn.functional.pad(tokens_BT[:, :-1], (1, 0), value=self.vocab_size)
        return -self.logp_NV[before_BT, tokens_BT]

    def begin(self, rows: int) -> tuple[Tensor, State]:
        state = HistoryState.empty(rows, 1, self.vocab_size)
        return self.logp_NV[state.history_BN[:, -1]], state

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        assert isinstance(state, HistoryState)
        state = state.push(tokens_BT)
        return self.logp_NV[state.history_BN[:, -1]], state

    def tensors(self) -> dict[str, Tensor]:
        return {"logp": self.logp_NV}

    @classmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        raise NotImplementedError


class Leaks(Chain):
    """Knows a little of the next token."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        nats_BT[:, :-1] -= 0.01 * (tokens_BT[:, 1:] % 2)
        return nats_BT


class KnowsTheLength(Chain):
    """Knows where the text ends: the last token is cheaper."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        nats_BT[:, -1] *= 0.5
        return nats_BT


class Unnormalised(Chain):
    """Gives every token a little more than there is."""

    def __init__(self, tokenizer: Tokenizer, logp_NV: np.ndarray) -> None:
        super().__init__(tokenizer, logp_NV + 1e-4)


class CountsWindowsTwice(Chain):
    """Reads windows of 32 tokens that overlap by 8, and adds up what both say of the overlap."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        overlap_T = torch.arange(tokens_BT.shape[1]) % 24 < 8
        overlap_T[:8] = False
        return nats_BT * torch.where(overlap_T, 2.0, 1.0)


class CacheOffByOne(Chain):
    """After a chunk that is not the first, goes on from the token before the last."""

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        assert isinstance(state, HistoryState)
        begun = bool((state.history_BN == self.vocab_size).all())
        if begun or tokens_BT.shape[1] < 2:
            return super().advance(tokens_BT, state)
        return super().advance(tokens_BT[:, :-1], state)


class DependsOnTheBatch(Chain):
    """Is surer of itself the more rows there are, and normalised all the same."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        before_BT = torch.nn.functional.pad(tokens_BT[:, :-1], (1, 0), value=self.vocab_size)
        logp_BTV = torch.log_softmax(self.logp_NV[before_BT] * (1 + 0.01 * len(tokens_BT)), dim=-1)
        return -logp_BTV.gather(2, tokens_BT[..., None])[..., 0]


class SlipsAtTheEdge(Chain):
    """Has a window of 201 tokens, and after it a little less to say."""

    def __init__(self, tokenizer: Tokenizer, logp_NV: np.ndarray) -> None:
        super().__init__(tokenizer, logp_NV)
        self.policy = ContextPolicy.last(200)

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        nats_BT[:, 201:202] += 0.05
        return nats_BT


class Broken(Chain):
    """Divides zero by zero now and then."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        nats_BT[:, 3:4] = torch.nan
        return nats_BT


class SaysItForgets(Chain):
    """Depends on the two last tokens, but says that one is enough."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        nats_BT[:, 2:] += 0.05 * (tokens_BT[:, :-2] % 3)
        return nats_BT


class Chaotic(NeuralLanguageModel):
    """A recurrent network with weights so large that rounding grows at every token."""

    name = "chaotic"
    Config = ChainConfig

    def __init__(self, tokenizer: Tokenizer, gain: float = 2.0, leak: float = 0.0) -> None:
        super().__init__(ChainConfig(), tokenizer.vocab_size)
        self.tokenizer, self.policy, self.leak = tokenizer, ContextPolicy.everything(), leak
        generator = torch.Generator().manual_seed(0)
        self.embedding = nn.Parameter(torch.randn(self.vocab_size + 1, 48, generator=generator))
        self.recurrent = nn.Parameter(gain * torch.randn(48, 48, generator=generator) / 48**0.5)
        self.output = nn.Parameter(torch.randn(48, self.vocab_size, generator=generator) / 4)

    def _run(self, tokens_BT: Tensor, hidden_BH: Tensor) -> Tensor:
        steps = []
        for t in range(tokens_BT.shape[1]):
            hidden_BH = torch.tanh(hidden_BH @ self.recurrent + self.embedding[tokens_BT[:, t]])
            steps.append(hidden_BH)
        return torch.stack(steps, dim=1)

    def _start(self, rows: int) -> Tensor:
        return torch.full((rows, 48), 1e-7 * rows)  # another rounding for every batch size

    def score(self, tokens_BT: Tensor) -> Tensor:
        inputs_BT = nn.functional.pad(tokens_BT[:, :-1], (1, 0), value=self.vocab_size)
        logp_BTV = torch.log_softmax(self._run(inputs_BT, self._start(len(tokens_BT))) @ self.output, dim=-1)
        nats_BT = -logp_BTV.gather(2, tokens_BT[..., None])[..., 0]
        nats_BT[:, :-1] -= self.leak * (tokens_BT[:, 1:] % 2)
        return nats_BT

    def begin(self, rows: int) -> tuple[Tensor, State]:
        return self.advance(torch.full((rows, 1), self.vocab_size), Hidden(self._start(rows)))

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        assert isinstance(state, Hidden)
        state.spend()
        hidden_BH = self._run(tokens_BT, state.hidden_BH)[:, -1]
        return torch.log_softmax(hidden_BH @ self.output, dim=-1), Hidden(hidden_BH)

    @classmethod
    def resolve(cls, config: Any, facts: Any, budget: Any) -> Any:
        raise NotImplementedError

    def loss(self, batch: Windows) -> Loss:
        raise NotImplementedError


class Hidden(State):
    """The hidden vector."""

    def __init__(self, hidden_BH: Tensor) -> None:
        super().__init__()
        self.hidden_BH = hidden_BH

    def select(self, rows_B: Tensor) -> Hidden:
        return Hidden(self.hidden_BH[rows_B])


def with_coding(tokenizer: Tokenizer, **methods: Any) -> Tokenizer:
    """The same tokenizer with some methods of its coding replaced: f(coding, ids, spellings)."""
    coding = tokenizer._coding
    changed = type("Planted", (type(coding),), methods)
    planted = changed.__new__(changed)
    planted.__dict__.update(coding.__dict__)
    return Tokenizer(tokenizer.spec, tokenizer.backend, planted, tokenizer.spelling)


def part_of(folder: Path, *texts: str, name: str = "test") -> Part:
    """A part whose documents are these texts, each in a file of its own."""
    documents = []
    for index, text in enumerate(texts):
        path = folder / f"{name}-{index}.txt"
        path.write_bytes(text.encode())
        documents.append(Document(path, 0, len(text.encode())))
    return Part(name, documents)


def some_text(words: int, seed: int = 0, rare: bool = False) -> str:
    """Lines of common words; `rare` adds words that no training text has."""
    random = np.random.default_rng(seed)
    chosen = [WORDS[i] for i in random.integers(len(WORDS), size=words)]
    if rare:
        for i in range(3, words, 17):
            chosen[i] = "zyx" + "".join(random.choice(list("abcdef"), size=4))
    return "\n".join(" ".join(chosen[i : i + 9]) for i in range(0, words, 9)) + "\n"


def tokenizer_for(spec: str, *texts: str) -> Tokenizer:
    """Trained on some common text, and on these."""
    return train_tokenizer(spec, [some_text(2000, seed=99), *texts])
