"""The latent-variable model against exact integrals, torch's own distributions, and planted bugs."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from lmlab.interface import Windows
from lmlab.models.variational import Posterior, Segments, Variational, VariationalConfig
from lmlab.tasks.latent.generating import read, written
from lmlab.tasks.latent.measure import Bounded

VOCAB = 3


def model_of(**settings: object) -> Variational:
    """A small one that was shaken, so that z matters."""
    known = {"layers": 1, "width": 6, "embedding_width": 4, "tie": False, "dropout": 0.0, "warm_up": 0}
    config = VariationalConfig(**{**known, "latent": 1, "segment": 4, **settings})  # type: ignore[arg-type]
    torch.manual_seed(1)
    model = Variational(config, VOCAB)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.4 * torch.randn_like(p))
    return model.eval()


def exact_log_p(model: Variational, tokens_1T: Tensor) -> float:
    """log ∫ N(z) p(x | z) dz for one latent number, by Gauss-Hermite quadrature."""
    points, weights = np.polynomial.hermite_e.hermegauss(80)
    hidden_1TH, _ = model.hidden(model.writer.begin_inputs(tokens_1T), model.writer.fresh(1))
    z_SK = torch.tensor(points, dtype=torch.float32)[:, None]
    many = len(z_SK)
    with torch.no_grad():
        nats_S = model.nats_given(z_SK, hidden_1TH.expand(many, -1, -1), tokens_1T.expand(many, -1)).sum(1)
    log_weights = torch.tensor(weights / math.sqrt(2 * math.pi)).log()
    return float(torch.logsumexp(log_weights - nats_S.double(), 0))


def elbo(model: Variational, tokens_1T: Tensor) -> float:
    """E_q[log p(x | z)] - KL(q || p), the average by quadrature too."""
    points, weights = np.polynomial.hermite_e.hermegauss(80)
    q = read(model, tokens_1T)
    hidden_1TH, _ = model.hidden(model.writer.begin_inputs(tokens_1T), model.writer.fresh(1))
    z_SK = q.draw(torch.tensor(points, dtype=torch.float32)[:, None, None])[:, 0]
    many = len(z_SK)
    with torch.no_grad():
        nats_S = model.nats_given(z_SK, hidden_1TH.expand(many, -1, -1), tokens_1T.expand(many, -1)).sum(1)
    average = float((torch.tensor(weights) / math.sqrt(2 * math.pi)) @ nats_S.double())
    return -average - float(q.kl_BK.sum())


def kl_to_the_true_posterior(model: Variational, tokens_1T: Tensor) -> float:
    """KL(q(z | x) || p(z | x)), the integral over a fine grid of z."""
    q = read(model, tokens_1T)
    z = torch.linspace(-12, 12, 20001, dtype=torch.float64)
    hidden_1TH, _ = model.hidden(model.writer.begin_inputs(tokens_1T), model.writer.fresh(1))
    with torch.no_grad():
        nats = torch.cat(
            [
                model.nats_given(
                    part[:, None].float(), hidden_1TH.expand(len(part), -1, -1), tokens_1T.expand(len(part), -1)
                ).sum(1)
                for part in z.split(4096)
            ]
        ).double()
    log_joint = Normal(0.0, 1.0).log_prob(z) - nats
    step = float(z[1] - z[0])
    log_posterior = log_joint - (torch.logsumexp(log_joint, 0) + math.log(step))
    mean, deviation = q.mean_BK.double(), (0.5 * q.log_variance_BK.double()).exp()
    log_q = Normal(mean[0, 0], deviation[0, 0]).log_prob(z)
    return float((log_q.exp() * (log_q - log_posterior)).sum() * step)


def test_the_divergence_is_that_of_torch_and_never_negative() -> None:
    torch.manual_seed(0)
    q = Posterior(torch.randn(5, 3), torch.randn(5, 3))
    expected = kl_divergence(Normal(q.mean_BK, (0.5 * q.log_variance_BK).exp()), Normal(0.0, 1.0))
    torch.testing.assert_close(q.kl_BK, expected)
    assert (q.kl_BK >= 0).all(), "the sign"


def test_weights_of_importance_sampling_are_those_of_torch() -> None:
    torch.manual_seed(0)
    q = Posterior(torch.randn(5, 3), torch.randn(5, 3))
    z_SBK = q.draw(torch.randn(7, 5, 3))
    expected = Normal(0.0, 1.0).log_prob(z_SBK) - Normal(q.mean_BK, (0.5 * q.log_variance_BK).exp()).log_prob(z_SBK)
    torch.testing.assert_close(q.log_prior_over_posterior(z_SBK), expected.sum(-1), atol=1e-5, rtol=1e-5)


def test_probabilities_of_all_strings_sum_to_one() -> None:
    model = model_of()
    total = sum(math.exp(exact_log_p(model, torch.tensor([ids]))) for ids in itertools.product(range(VOCAB), repeat=3))
    assert total == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("ids", [(0, 1, 2, 2), (2, 0), (1, 1, 1)])
def test_the_gap_of_the_bound_is_the_divergence_to_the_true_posterior(ids: tuple[int, ...]) -> None:
    """KL(q || p(z | x)) = log p(x) - E_q log p(x | z) + KL(q || p(z))."""
    model, x = model_of(), torch.tensor([ids])
    gap = exact_log_p(model, x) - elbo(model, x)
    assert gap == pytest.approx(kl_to_the_true_posterior(model, x), abs=1e-4)
    assert gap > 0


def test_a_divergence_of_the_wrong_sign_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: it breaks the identity that the test above holds."""
    right = Posterior.kl_BK
    assert isinstance(right, property)
    assert right.fget is not None
    monkeypatch.setattr(Posterior, "kl_BK", property(lambda q, kl=right.fget: -kl(q)))
    model, x = model_of(), torch.tensor([(0, 1, 2, 2)])
    gap = exact_log_p(model, x) - elbo(model, x)
    assert abs(gap - kl_to_the_true_posterior(model, x)) > 0.01


def test_more_draws_bring_the_bound_down_to_the_exact_cost() -> None:
    model, x = model_of(), torch.tensor([[0, 1, 2, 2]])
    exact = -exact_log_p(model, x)
    plain = float(Bounded(model, 4096).score(x).sum())
    tight = [float(Bounded(model, draws, tighten=True).score(x).sum()) for draws in (1, 4096)]
    assert tight[1] == pytest.approx(exact, abs=0.02)
    assert plain > exact + 0.01
    assert plain == pytest.approx(-elbo(model, x), abs=0.05)


def test_every_segment_has_a_bound_of_its_own_and_knows_what_came_before() -> None:
    """A document of two segments and a half: the scores of the first do not change with what follows."""
    model = model_of(latent=2)
    long = torch.randint(0, VOCAB, (1, 10), generator=torch.Generator().manual_seed(3))
    whole, beginning = Bounded(model, 2).score(long), Bounded(model, 2).score(long[:, :4])
    torch.testing.assert_close(whole[:, :4], beginning)
    changed = long.clone()
    changed[0, 0] = (changed[0, 0] + 1) % VOCAB
    assert not torch.allclose(Bounded(model, 2).score(changed)[0, 4:], whole[0, 4:]), "the past is not used"


def test_documents_side_by_side_cost_what_they_cost_alone() -> None:
    model = model_of(latent=2)
    tokens = torch.randint(0, VOCAB, (9,), generator=torch.Generator().manual_seed(4))
    found = Bounded(model, 1).score_documents(tokens, torch.tensor([0, 4, 9]))
    torch.testing.assert_close(found[:4], Bounded(model, 1).score(tokens[None, :4])[0])
    assert found.shape == (9,)


def test_the_loss_has_the_value_of_the_bound_whatever_is_minimised() -> None:
    model = model_of(latent=2, free_nats=0.5).train()
    batch = Segments(torch.randint(0, VOCAB, (3, 4)), kl_weight=torch.tensor(0.25))
    torch.manual_seed(5)
    loss = model.loss(batch)
    assert loss.total.item() == pytest.approx(float(loss.parts["reconstruction"] + loss.parts["kl"]), rel=1e-6)
    assert float(loss.parts["kl"]) > 0


def test_information_below_the_free_nats_is_not_charged_for() -> None:
    """The gradient of the posterior's parameters is then that of the reconstruction alone."""
    grads = []
    for weight in (0.0, 1.0):
        model = model_of(latent=2, free_nats=1e3).train()
        torch.manual_seed(6)
        model.loss(Segments(torch.zeros(3, 4, dtype=torch.long), kl_weight=torch.tensor(weight))).total.backward()
        assert model.posterior.weight.grad is not None
        grads.append(model.posterior.weight.grad.clone())
    torch.testing.assert_close(grads[0], grads[1])
    charged = model_of(latent=2, free_nats=0.0).train()
    torch.manual_seed(6)
    charged.loss(Segments(torch.zeros(3, 4, dtype=torch.long), kl_weight=torch.tensor(1.0))).total.backward()
    assert charged.posterior.weight.grad is not None
    assert not torch.allclose(charged.posterior.weight.grad, grads[1])


def test_what_fills_up_a_short_row_changes_nothing() -> None:
    model = model_of(latent=2)
    short, mask = torch.tensor([[1, 2, 0, 0]]), torch.tensor([[True, True, False, False]])
    other = torch.tensor([[1, 2, 2, 1]])
    losses = [model.loss(Windows(tokens, mask)).total.item() for tokens in (short, other)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_writing_follows_z_and_reading_gives_it_back() -> None:
    model = model_of(latent=2)
    z_BK = torch.tensor([[-3.0, 0.0], [3.0, 0.0]])
    greedy = written(model, z_BK, tokens=4)
    assert greedy.shape == (2, 4)
    assert torch.equal(greedy, written(model, z_BK, tokens=4))
    assert read(model, greedy[:1]).mean_BK.shape == (1, 2)


def test_settings_that_make_no_sense_are_refused() -> None:
    good = VariationalConfig()
    for wrong in ({"free_nats": -1.0}, {"warm_up": -1}, {"latent": 0}, {"word_dropout": 1.5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            dataclasses.replace(good, **wrong)
