"""Scoring works off a text in stretches, so that a long one takes no more memory than a short one."""

from __future__ import annotations

import pytest
import torch

from lmlab.models.families import recurrent, windowed
from lmlab.models.feedforward import FeedForward, FeedForwardConfig
from lmlab.models.lstm import LSTM
from lmlab.models.rnn_attention import RNNAttention, RNNAttentionConfig

MODELS = [
    FeedForward(FeedForwardConfig(context=3, embedding_width=4, width=6, dropout=0.0), 5),
    LSTM(LSTM.Config(layers=2, width=6, embedding_width=4, tie=False, dropout=0.0), 5),
    RNNAttention(RNNAttentionConfig(width=6, embedding_width=4, score_width=3, memory=4, tie=False, dropout=0.0), 5),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_the_length_of_the_stretches_changes_nothing(model: torch.nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens_BT = torch.randint(5, (2, 11), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(0.7 * torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel())))
    expected_BT = model.score(tokens_BT)
    monkeypatch.setattr(windowed, "POSITIONS_AT_ONCE", 6)
    monkeypatch.setattr(recurrent, "POSITIONS_AT_ONCE", 6)
    torch.testing.assert_close(model.score(tokens_BT), expected_BT, rtol=1e-4, atol=2e-5)
