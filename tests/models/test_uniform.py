from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from lmlab.models.uniform import Uniform
from lmlab.text.pieces import Vocabulary
from lmlab.text.stream import TokenStream


def uniform(vocab_size: int) -> Uniform:
    nothing = TokenStream(ids=np.zeros(0, np.uint16), starts=np.zeros(1, np.int64), bytes=0, chars=0, words=0)
    return Uniform.fit(Uniform.Config(), Vocabulary([str(i) for i in range(vocab_size)]), nothing)


@pytest.mark.parametrize("vocab_size", [1, 2, 256, 50_000])
def test_every_token_costs_log_v_nats(vocab_size: int) -> None:
    nats = uniform(vocab_size).score(torch.zeros(2, 3, dtype=torch.long))
    assert nats.shape == (2, 3)
    assert nats.dtype == torch.float32
    assert torch.equal(nats, torch.full((2, 3), math.log(vocab_size)))


def test_distributions_sum_to_one_and_agree_with_the_score() -> None:
    model = uniform(7)
    logp_BV, state = model.begin(2)
    tokens = torch.tensor([[1, 2], [3, 6]])
    for logp in (logp_BV, model.advance(tokens, state)[0]):
        assert logp.shape == (2, 7)
        assert torch.allclose(logp.exp().sum(1), torch.ones(2))
        assert torch.equal(-logp[:, 3], model.score(tokens)[:, 0])


def test_nothing_is_learned_and_nothing_is_needed_to_load() -> None:
    model = uniform(5)
    assert model.tensors() == {}
    again = Uniform.from_tensors(model.config, model.vocab_size, {})
    assert torch.equal(again.begin(1)[0], model.begin(1)[0])
    assert model.parameters_count == 0
