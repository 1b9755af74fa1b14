from __future__ import annotations

import numpy as np
import pytest
import torch

from lmlab.models import bag
from lmlab.models.bag import Bag
from lmlab.text.pieces import Vocabulary
from lmlab.text.stream import TokenStream


def stream(ids: list[int]) -> TokenStream:
    return TokenStream(ids=np.array(ids, np.uint16), starts=np.array([0, len(ids)]), bytes=0, chars=0, words=0)


def fitted(ids: list[int], vocab_size: int, **settings: object) -> Bag:
    return Bag.fit(Bag.Config(**settings), Vocabulary([str(i) for i in range(vocab_size)]), stream(ids))


def test_maximum_likelihood_is_the_empirical_frequency() -> None:
    p = fitted([0, 1, 1, 3, 1, 0], 4, smoothing="ml").begin(1)[0].exp()[0]
    assert torch.allclose(p, torch.tensor([2 / 6, 3 / 6, 0, 1 / 6]))


def test_no_other_table_makes_the_training_text_likelier() -> None:
    ids = [0, 1, 1, 2, 1, 0, 2, 2, 2]
    best = float(fitted(ids, 3, smoothing="ml").score(torch.tensor([ids])).sum())
    tables = torch.distributions.Dirichlet(torch.ones(3))
    torch.manual_seed(0)
    others = -tables.sample((1000,)).log()[:, ids].sum(1)
    assert float(others.min()) > best


def test_an_unseen_token_costs_infinitely_many_nats_under_maximum_likelihood() -> None:
    model = fitted([0, 0, 1], 3, smoothing="ml")
    nats = model.score(torch.tensor([[0, 2]]))
    assert nats[0, 1] == torch.inf
    assert torch.isfinite(nats[0, 0])
    assert not torch.isnan(nats).any()
    assert "1 of 3 tokens" in model.notes[0]


def test_add_k_is_finite_on_any_text_and_sums_to_one() -> None:
    model = fitted([0, 0, 1], 3, k=0.5)
    p = model.begin(1)[0].exp()[0]
    assert torch.allclose(p, torch.tensor([2.5, 1.5, 0.5]) / 4.5)
    assert model.notes == []


def test_no_text_at_all_leaves_the_smoothed_bag_uniform_and_is_refused_by_maximum_likelihood() -> None:
    assert torch.allclose(fitted([], 4).begin(1)[0].exp(), torch.full((1, 4), 0.25))
    with pytest.raises(ValueError, match="at least one training token"):
        fitted([], 4, smoothing="ml")


def test_history_changes_nothing() -> None:
    model = fitted([0, 1, 1], 2)
    logp_BV, state = model.begin(3)
    after, _ = model.advance(torch.tensor([[0], [1], [1]]), state)
    assert torch.equal(after, logp_BV)


def test_counting_in_chunks_gives_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [0, 1, 1, 3, 1, 0, 2]
    whole = fitted(ids, 4)
    monkeypatch.setattr(bag, "CHUNK", 2)
    assert torch.equal(fitted(ids, 4).logp_V, whole.logp_V)


def test_saving_and_loading_is_exact() -> None:
    model = fitted([0, 1, 1, 3], 4)
    again = Bag.from_tensors(model.config, model.vocab_size, model.tensors())
    tokens = torch.tensor([[3, 2, 1]])
    assert torch.equal(again.score(tokens), model.score(tokens))


@pytest.mark.parametrize("settings", [{"k": 0.0}, {"k": -1.0}, {"k": float("nan")}, {"smoothing": "none"}])
def test_impossible_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="bag"):
        Bag.Config(**settings)


@pytest.mark.parametrize("k", [0.0, -1.0, float("inf"), float("nan"), 1e308])
def test_what_no_share_can_be_made_of_is_refused(k: float) -> None:
    with pytest.raises(ValueError, match="bag k is a positive number"):
        Bag.Config(k=k)


def test_the_most_that_can_be_imagined_leaves_everything_alike() -> None:
    assert torch.allclose(fitted([0, 0, 1], 3, k=bag.MOST_K).begin(1)[0].exp(), torch.full((1, 3), 1 / 3))
