"""`cnn`: its layers are the causal convolutions of torch, and it sees as far back as it says."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from lmlab.config import Budget, Mistake, TextFacts
from lmlab.interface import ContextPolicy
from lmlab.models.cnn import CNN, CNNConfig
from mistakes import mistake


def build(layers: int, kernel: int, width: int = 6, vocab: int = 7) -> CNN:
    torch.manual_seed(0)
    model = CNN(CNNConfig(layers=layers, kernel=kernel, width=width, dropout=0.0), vocab)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn(p.shape))
    return model.eval()


@pytest.mark.parametrize(("layers", "kernel"), [(1, 2), (3, 2), (2, 3)])
def test_the_layers_are_dilated_convolutions_of_torch(layers: int, kernel: int) -> None:
    model = build(layers, kernel)
    inputs_BM = torch.randint(7, (2, 20 + model.context - 1))
    x_BDM = F.embedding(inputs_BM, model.embedding_VD).mT
    for layer in range(layers):
        normed_BDM = F.layer_norm(x_BDM.mT, (6,), model.norms[layer]).mT
        weight = model.convolutions[layer].view(12, kernel, 6).permute(0, 2, 1)
        value, gate = F.conv1d(normed_BDM, weight, dilation=kernel**layer).chunk(2, dim=1)
        x_BDM = x_BDM[:, :, -value.shape[2] :] + value * torch.sigmoid(gate)
    expected_BTD = F.layer_norm(x_BDM.mT, (6,), model.norms[-1])
    torch.testing.assert_close(model.hidden(inputs_BM, 0.0, torch.float32), expected_BTD)


@pytest.mark.parametrize(("layers", "kernel"), [(4, 2), (2, 3)])
def test_it_sees_kernel_to_the_power_of_its_layers_tokens(layers: int, kernel: int) -> None:
    model = build(layers, kernel)
    assert model.policy == ContextPolicy.last(kernel**layers)


def test_its_reach_fits_the_text_and_what_cannot_be_is_refused() -> None:
    facts = TextFacts(train_tokens=100, train_bytes=100, vocab_size=10)
    assert CNN.resolve(CNNConfig(), facts, Budget(steps=1)).layers == 3
    with mistake("setting-longer-than-text"):
        CNN.resolve(CNNConfig(layers=7), facts, Budget(steps=1))
    for layers in (13, 10**6):  # the second sees a number of tokens that nobody can write down
        with pytest.raises(Mistake, match="choose fewer"):
            CNNConfig(layers=layers)
    assert CNNConfig(layers=12).layers == 12
    assert CNNConfig(layers=4, kernel=8).layers == 4
