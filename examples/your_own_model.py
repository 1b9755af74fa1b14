"""A language model of your own: two tables, one for the last token and one for the one before it, added up.

lmlab contract your_own_model:SkipBigram
lmlab compare mytext.txt --models bag,ngram,your_own_model:SkipBigram
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.interface import ContextPolicy, HistoryState, Loss, NeuralLanguageModel, Windows


@dataclass(frozen=True, kw_only=True)
class SkipBigramConfig:
    """What `--set key=value` can change; None is filled in by `resolve`."""

    width: int | None = None


class SkipBigram(NeuralLanguageModel):
    """logits = U (A[last token] + B[the one before it])."""

    name = "skip-bigram"
    Config = SkipBigramConfig
    policy = ContextPolicy.last(2)
    default_learning_rate = 0.02

    def __init__(self, config: SkipBigramConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.near_VD, self.far_VD = (nn.Parameter(0.1 * torch.randn(vocab_size + 1, config.width)) for _ in range(2))
        self.output_VD = nn.Parameter(torch.randn(vocab_size, config.width) * config.width**-0.5)

    @classmethod
    def resolve(cls, config, facts, budget):
        return replace(config, width=config.width or 64)

    def logp(self, before_BT2: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        hidden = F.embedding(before_BT2[..., 1], self.near_VD) + F.embedding(before_BT2[..., 0], self.far_VD)
        return F.log_softmax(F.linear(hidden.to(dtype), self.output_VD.to(dtype)).float(), dim=-1)

    def nats(self, tokens_BT: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        before = F.pad(tokens_BT[:, :-1], (2, 0), value=self.vocab_size).unfold(1, 2, 1)  # vocab_size: no token yet
        return -self.logp(before, dtype).gather(2, tokens_BT[..., None])[..., 0]

    def loss(self, batch: Windows) -> Loss:
        nats_N = self.nats(batch.tokens_BT, self.compute_dtype)[... if batch.mask_BT is None else batch.mask_BT]
        return Loss(total=nats_N.sum(), count=nats_N.numel())

    score = torch.no_grad()(nats)

    def begin(self, rows: int):
        state = HistoryState.empty(rows, 2, self.vocab_size, self.output_VD.device)
        return self.logp(state.history_BN).detach(), state

    def advance(self, tokens_BT: Tensor, state):
        state = state.push(tokens_BT)
        return self.logp(state.history_BN).detach(), state
