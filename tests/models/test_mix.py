"""A mix: its probabilities are the weighted sum, its weights the best there are, its adapting the gradient it says it is."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from lmlab.interface import ContextPolicy, LanguageModel, Windows
from lmlab.models._mix_fit import Heard, fit_constants, fit_weights
from lmlab.models.bag import Bag, BagConfig
from lmlab.models.mix import RATE, Mix, MixState, adapted, common_policy
from lmlab.models.registry import model_class
from lmlab.promises.subjects import IN_A_MIX, build, tokenizer


def parts() -> list[tuple[str, LanguageModel]]:
    return [(name, build(model_class(name), settings, tokenizer("char"))) for name, settings in IN_A_MIX.items()]


def some_tokens(rows: int = 2, length: int = 40) -> torch.Tensor:
    return torch.randint(tokenizer("char").vocab_size, (rows, length), generator=torch.Generator().manual_seed(5))


def test_the_probability_is_the_weighted_sum_of_the_probabilities_of_the_parts() -> None:
    made_of, tokens_BT, weights = parts(), some_tokens(), np.array([0.5, 0.2, 0.3])
    mix = Mix.of(made_of, {"logits_K": torch.tensor(np.log(weights), dtype=torch.float32)}, weighting="constant")
    p_BT = sum(w * np.exp(-part.score(tokens_BT).numpy()) for w, (_, part) in zip(weights, made_of, strict=True))
    np.testing.assert_allclose(mix.score(tokens_BT).numpy(), -np.log(p_BT), rtol=1e-4)


def test_constant_weights_are_those_that_expectation_maximisation_finds() -> None:
    random = np.random.default_rng(0)
    p_NK = random.dirichlet([0.5, 1.0, 2.0, 0.1], size=3000)[:, [2, 0, 1, 3]]
    heard = Heard(nats_NK=torch.tensor(-np.log(p_NK), dtype=torch.float32), features=[torch.zeros(3000, 0)] * 4)
    weights_K = np.full(4, 0.25)
    for _ in range(3000):
        shares_NK = weights_K * p_NK
        weights_K = (shares_NK / shares_NK.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(fit_constants(heard)["logits_K"].softmax(0).numpy(), weights_K, atol=2e-3)


def two_sources(tokens: int, *, telling: bool) -> Heard:
    """Of two parts one is sure and right, the other sure and wrong, in turns that their features give away, or do not."""
    random = np.random.default_rng(1)
    first_N = random.random(tokens) < 0.5
    nats_NK = torch.tensor(np.where(first_N[:, None], [0.1, 3.0], [3.0, 0.1]), dtype=torch.float32)
    feature_N1 = torch.tensor(first_N if telling else random.random(tokens) < 0.5).float()[:, None]
    return Heard(nats_NK=nats_NK, features=[feature_N1, torch.zeros(tokens, 0)])


def test_a_gate_is_chosen_where_features_tell_who_is_right() -> None:
    fitted = fit_weights(two_sources(2000, telling=True))
    assert fitted.weighting == "gate"
    assert fitted.nats["gate"] < 0.2 < fitted.nats["constant"]


def test_constants_are_chosen_where_features_tell_nothing() -> None:
    assert fit_weights(two_sources(400, telling=False)).weighting == "constant"


def test_a_part_that_is_worth_nothing_is_left_out() -> None:
    told = two_sources(1000, telling=False)
    worse = Heard(
        nats_NK=torch.cat([told.nats_NK, told.nats_NK[:, :1] + 2], 1), features=[*told.features, torch.zeros(1000, 0)]
    )
    assert fit_weights(worse).kept == (0, 1)


def test_a_slight_part_stays_if_it_alone_holds_something_possible() -> None:
    nats_NK = torch.tensor([[0.1, 9.0]] * 999 + [[torch.inf, 9.0]])
    assert fit_weights(Heard(nats_NK=nats_NK, features=[torch.zeros(1000, 0)] * 2)).kept == (0, 1)


def test_tokens_that_all_parts_hold_impossible_do_not_stop_the_fit() -> None:
    never = Bag(BagConfig(smoothing="ml"), torch.tensor([0.0, -torch.inf]))
    heard = Heard.of([never, never], [Windows(torch.tensor([[0, 1, 0, 0]]))])
    assert heard.nats_NK.tolist() == [[0.0, 0.0]] * 3


def test_what_lies_behind_a_mask_is_not_looked_at() -> None:
    bag = Bag(BagConfig(), torch.tensor([0.25, 0.75]).log())
    windows = Windows(torch.tensor([[0, 1], [1, 1]]), torch.tensor([[True, True], [True, False]]))
    assert Heard.of([bag], [windows]).nats_NK[:, 0].tolist() == pytest.approx(-np.log([0.25, 0.75, 0.75]))


def test_adapting_moves_the_logits_down_the_gradient_of_what_was_paid() -> None:
    logits = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64, requires_grad=True)
    nats_K = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
    paid = -torch.logsumexp(torch.log_softmax(logits, 0) - nats_K, 0)
    paid.backward()
    assert logits.grad is not None
    nats_BT, moved_BK = adapted(logits.detach().numpy()[None, None], nats_K.numpy()[None, None], np.zeros((1, 3)))
    assert nats_BT[0, 0] == pytest.approx(paid.item())
    np.testing.assert_allclose(moved_BK[0], -RATE * logits.grad.numpy())


def test_an_adaptive_mix_comes_to_trust_the_part_that_does_well() -> None:
    nats_BTK = np.tile([0.1, 3.0], (1, 3000, 1))
    nats_BT, _ = adapted(np.zeros((1, 3000, 2)), nats_BTK, np.zeros((1, 2)))
    assert nats_BT[0, 0] > 0.6
    assert nats_BT[0, -1] < 0.15


def test_reading_goes_on_from_a_state_as_it_would_from_the_beginning() -> None:
    features = sum(part.confidence_features for _, part in parts())
    gate = {"logits_K": torch.zeros(3), "inner_SH": torch.ones(features, 2), "inner_H": torch.zeros(2)}
    gate |= {
        "outer_HK": torch.tensor([[1.0, 0, -1], [0, 2, 0]]),
        "mean_S": torch.zeros(features),
        "spread_S": torch.ones(features),
    }
    mix = Mix.of(parts(), gate, weighting="gate", adapt=True)
    tokens_BT = some_tokens(3, 60)
    whole = mix.advance(tokens_BT, mix.begin(3)[1])
    state: MixState = mix.begin(3)[1]
    for first, last in pairwise([0, 1, 20, 59, 60]):
        logp_BV, state = mix.advance(tokens_BT[:, first:last], state)
    torch.testing.assert_close(logp_BV, whole[0], atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(state.moved_BK, whole[1].moved_BK, atol=1e-6)


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ([ContextPolicy.nothing(), ContextPolicy.last(4)], ContextPolicy.last(4)),
        ([ContextPolicy.last(4), ContextPolicy.everything()], ContextPolicy.everything()),
        ([ContextPolicy.last(4), ContextPolicy.windows(16, 8)], ContextPolicy.windows(16, 8)),
        ([ContextPolicy.last(9), ContextPolicy.windows(16, 8)], ContextPolicy.everything()),
        ([ContextPolicy.windows(16, 8), ContextPolicy.windows(16, 4)], ContextPolicy.everything()),
    ],
)
def test_the_history_of_a_mix_is_what_all_its_parts_may_see(
    policies: list[ContextPolicy], expected: ContextPolicy
) -> None:
    assert common_policy(policies) == expected
