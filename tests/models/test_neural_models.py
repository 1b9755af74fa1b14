"""What every gradient model of a fixed window or a carried state must satisfy, on tiny models with random weights."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from lmlab.config import Budget, TextFacts
from lmlab.interface import NeuralModel
from lmlab.layers import recurrent, windowed
from lmlab.models.attention import Attention
from lmlab.models.bigram import Bigram
from lmlab.models.feedforward import FeedForward
from lmlab.models.gru import GRU
from lmlab.models.lstm import LSTM
from lmlab.models.rnn import RNN
from lmlab.models.rnn_attention import RNNAttention

VOCAB = 5


class LetterTokenizer:
    """As much of a tokenizer as a model needs."""

    def __init__(self, vocab_size: int = VOCAB) -> None:
        self.vocab_size = vocab_size

    def piece(self, id: int) -> str:
        return chr(ord("a") + id)


WINDOW: dict[str, Any] = {"context": 3, "embedding_width": 4, "width": 6, "dropout": 0.0}
HEAD: dict[str, Any] = {"key_width": 3, "value_width": 5}
CARRY: dict[str, Any] = {"width": 6, "embedding_width": 4, "tie": False, "dropout": 0.0}
ATTEND: dict[str, Any] = {**CARRY, "score_width": 3, "memory": 4}
CASES: dict[str, tuple[type[NeuralModel], dict[str, Any]]] = {
    "bigram": (Bigram, {"embedding_width": 4, "width": 6, "dropout": 0.0}),
    "feedforward": (FeedForward, WINDOW),
    "feedforward of one word": (FeedForward, {**WINDOW, "context": 1, "activation": "tanh"}),
    "attention": (Attention, {**WINDOW, **HEAD}),
    "attention with places": (Attention, {**WINDOW, **HEAD, "positions": "learned"}),
    "rnn": (RNN, {**CARRY, "layers": 1}),
    "gru": (GRU, {**CARRY, "layers": 2, "bias": False}),
    "lstm": (LSTM, {**CARRY, "layers": 2}),
    "lstm, tied": (LSTM, {**CARRY, "layers": 1, "embedding_width": 6, "tie": True}),
    "rnn-attention": (RNNAttention, ATTEND),
    "rnn-attention, dot": (RNNAttention, {**ATTEND, "score_function": "dot"}),
    "rnn-attention, combined": (RNNAttention, {**ATTEND, "attend_to": "combined"}),
    "rnn-attention, additive": (RNNAttention, {**ATTEND, "score_function": "additive", "bias": False}),
}
LEARNERS = [name for name in CASES if "combined" not in name]  # those states grow without bound: see rnn_attention.py
CARRIED = [name for name, (cls, _) in CASES.items() if cls.carries_state]


def make(name: str, vocab: int = VOCAB, **changes: Any) -> NeuralModel:
    """The model of that case, with weights large enough that every mistake would show."""
    cls, settings = CASES[name]
    torch.manual_seed(3)
    model: NeuralModel = cls(cls.Config(**{**settings, **changes}), LetterTokenizer(vocab))  # type: ignore[call-arg]
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(0.7 * torch.randn(p.shape))
    return model.eval()


def tokens(rows: int, length: int, vocab: int = VOCAB) -> Tensor:
    return torch.randint(vocab, (rows, length), generator=torch.Generator().manual_seed(11))


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=2e-5)


every_case = pytest.mark.parametrize("name", CASES)


@every_case
def test_predictions_sum_to_one(name: str) -> None:
    model = make(name)
    logp_BV, state = model.begin(2)
    assert logp_BV.shape == (2, VOCAB)
    assert logp_BV.dtype == torch.float32
    for token_B1 in tokens(2, 6).split(1, dim=1):
        close(logp_BV.exp().sum(-1), torch.ones(2))
        logp_BV, state = model.advance(token_B1, state)
    close(logp_BV.exp().sum(-1), torch.ones(2))


@every_case
def test_the_score_is_the_chain_of_single_steps(name: str) -> None:
    model, tokens_BT = make(name), tokens(3, 9)
    logp_BV, state = model.begin(3)
    steps = []
    for token_B1 in tokens_BT.split(1, dim=1):
        steps.append(-logp_BV.gather(1, token_B1))
        logp_BV, state = model.advance(token_B1, state)
    close(model.score(tokens_BT), torch.cat(steps, dim=1))


@every_case
@pytest.mark.parametrize("sizes", [(9,), (1, 8), (4, 1, 4), (2, 2, 5), (7, 1, 1)])
def test_advancing_in_chunks_changes_nothing(name: str, sizes: tuple[int, ...]) -> None:
    model, tokens_BT = make(name), tokens(2, 9)
    _, one_by_one = model.begin(2)
    for token_B1 in tokens_BT.split(1, dim=1):
        expected_BV, one_by_one = model.advance(token_B1, one_by_one)
    _, state = model.begin(2)
    for chunk_BT in tokens_BT.split(sizes, dim=1):
        logp_BV, state = model.advance(chunk_BT, state)
    close(logp_BV, expected_BV)
    close(model.advance(tokens_BT[:, :2], state)[0], model.advance(tokens_BT[:, :2], one_by_one)[0])


@every_case
def test_rows_do_not_see_each_other(name: str) -> None:
    model, tokens_BT = make(name), tokens(4, 8)
    order = torch.tensor([2, 0, 3, 1])
    nats_BT = model.score(tokens_BT)
    close(model.score(tokens_BT[order]), nats_BT[order])
    for row in range(4):
        close(model.score(tokens_BT[row : row + 1]), nats_BT[row : row + 1])


@every_case
def test_the_future_does_not_leak(name: str) -> None:
    model, tokens_BT = make(name), tokens(2, 10)
    nats_BT = model.score(tokens_BT)
    for place in range(10):
        changed_BT = tokens_BT.clone()
        changed_BT[:, place:] = (changed_BT[:, place:] + 1 + torch.arange(10 - place) % 2) % VOCAB
        close(model.score(changed_BT)[:, :place], nats_BT[:, :place])


@every_case
def test_the_past_is_seen_as_far_as_the_context_says_and_no_further(name: str) -> None:
    model, tokens_BT = make(name), tokens(1, 10)
    changed_BT = tokens_BT.clone()
    changed_BT[0, 0] = (changed_BT[0, 0] + 1) % VOCAB
    moved_T = (model.score(changed_BT) - model.score(tokens_BT))[0].abs() > 1e-4
    reach = 9 if model.context is None else model.context
    assert moved_T[1 : 1 + reach].all()
    assert not moved_T[1 + reach :].any()


@every_case
def test_select_commutes_with_advance(name: str) -> None:
    model, tokens_BT = make(name), tokens(3, 8)
    rows = torch.tensor([2, 0, 2, 1])
    state = model.advance(tokens_BT[:, :6], model.begin(3)[1])[1]
    selected = state.select(rows)
    first_BV, after = model.advance(tokens_BT[:, 6:7], state)
    selected_BV, selected_after = model.advance(tokens_BT[rows][:, 6:7], selected)
    close(selected_BV, first_BV[rows])
    close(model.advance(tokens_BT[rows][:, 7:], selected_after)[0], model.advance(tokens_BT[:, 7:], after)[0][rows])


@every_case
def test_a_state_can_be_advanced_only_once(name: str) -> None:
    model = make(name)
    _, state = model.begin(1)
    model.advance(tokens(1, 1), state)
    with pytest.raises(RuntimeError, match="advanced already"):
        model.advance(tokens(1, 1), state)


@every_case
def test_all_strings_of_length_three_total_one(name: str) -> None:
    model = make(name, vocab=3)
    strings_BT = torch.tensor(list(itertools.product(range(3), repeat=3)))
    close((-model.score(strings_BT).double().sum(1)).exp().sum(), torch.tensor(1.0, dtype=torch.float64))


@every_case
def test_saved_weights_give_the_same_bits(name: str) -> None:
    model, tokens_BT = make(name), tokens(2, 9)
    saved = {key: value.clone() for key, value in model.tensors().items()}
    torch.manual_seed(99)
    loaded = type(model).from_tensors(model.config, model.tokenizer, saved)
    assert not loaded.training
    assert torch.equal(loaded.score(tokens_BT), model.score(tokens_BT))
    assert model.parameters_count == sum(p.numel() for p in model.parameters())


@every_case
def test_weights_that_do_not_fit_are_refused(name: str) -> None:
    model = make(name)
    lacking = dict(list(model.tensors().items())[1:])
    with pytest.raises(ValueError, match="do not fit"):
        type(model).from_tensors(model.config, model.tokenizer, lacking)
    with pytest.raises(ValueError, match="do not fit"):
        type(model).from_tensors(model.config, model.tokenizer, {**model.tensors(), "surplus": torch.zeros(1)})


@every_case
def test_the_loss_is_the_sum_of_the_scores_under_the_mask(name: str) -> None:
    model, tokens_BT = make(name), tokens(3, 8)
    nats_BT = model.score(tokens_BT)
    total, count = model.loss(tokens_BT)
    close(total, nats_BT.sum())
    assert count == 24
    mask_BT = torch.arange(8) < torch.tensor([[8], [3], [5]])
    total, count = model.loss(tokens_BT, mask_BT)
    close(total, nats_BT[mask_BT].sum())
    assert count == 16


@every_case
def test_every_weight_learns(name: str) -> None:
    model = make(name)
    model.loss(tokens(4, 10))[0].backward()
    for key, p in model.named_parameters():
        assert p.grad is not None, key
        assert p.grad.abs().sum() > 0, key


@every_case
def test_scoring_in_short_stretches_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokens_BT = make(name), tokens(2, 11)
    expected_BT = model.score(tokens_BT)
    monkeypatch.setattr(windowed, "POSITIONS_AT_ONCE", 6)
    monkeypatch.setattr(recurrent, "POSITIONS_AT_ONCE", 6)
    close(model.score(tokens_BT), expected_BT)


@every_case
def test_dropout_disturbs_learning_but_never_a_score(name: str) -> None:
    model, tokens_BT = make(name, dropout=0.5), tokens(3, 8)
    expected_BT = make(name).score(tokens_BT)
    model.train()
    close(model.score(tokens_BT), expected_BT)
    torch.manual_seed(0)
    disturbed, _ = model.loss(tokens_BT)
    assert abs(disturbed.item() - expected_BT.sum().item()) > 1e-3
    close(model.eval().loss(tokens_BT)[0], expected_BT.sum())


@every_case
def test_bf16_products_give_nearly_the_same_loss_and_float32_gradients(name: str) -> None:
    model, tokens_BT = make(name), tokens(8, 16)
    exact, _ = model.loss(tokens_BT)
    exact_grads = torch.autograd.grad(exact, list(model.parameters()))
    model.compute_dtype = torch.bfloat16
    total, _ = model.loss(tokens_BT)
    assert total.dtype == torch.float32
    assert abs(total.item() / exact.item() - 1) < 0.01
    grads = torch.autograd.grad(total, list(model.parameters()))
    flat, exact_flat = (torch.cat([g.flatten() for g in gs]) for gs in (grads, exact_grads))
    assert flat.dtype == torch.float32
    assert torch.cosine_similarity(flat, exact_flat, dim=0) > 0.99


@pytest.mark.parametrize("name", LEARNERS)
def test_a_repeating_text_is_learned(name: str) -> None:
    cls, settings = CASES[name]
    torch.manual_seed(0)
    model: NeuralModel = cls(cls.Config(**settings), LetterTokenizer())  # type: ignore[call-arg]
    text_BT = torch.tensor([0, 1, 2, 3, 4] * 6)[None].repeat(4, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.03, weight_decay=0.0)
    for _ in range(120):
        optimizer.zero_grad()
        total, count = model.loss(text_BT)
        (total / count).backward()
        optimizer.step()
    assert model.score(text_BT)[:, 5:].mean() < 0.1  # an untrained guess costs ln 5 = 1.6


@pytest.mark.parametrize("name", CARRIED)
@pytest.mark.parametrize("sizes", [(12,), (5, 7), (1, 2, 9), (4, 4, 4)])
def test_carried_losses_add_up_to_the_score_of_the_whole(name: str, sizes: tuple[int, ...]) -> None:
    model, tokens_BT = make(name), tokens(3, 12)
    carry, pieces, count = None, [], 0
    for chunk_BT in tokens_BT.split(sizes, dim=1):
        nats, n, carry = model.loss_carried(chunk_BT, carry)
        pieces.append(nats)
        count += n
    close(torch.stack(pieces).sum(), model.score(tokens_BT).sum())
    assert count == 36


@pytest.mark.parametrize("name", CARRIED)
def test_what_is_carried_holds_no_graph(name: str) -> None:
    model, tokens_BT = make(name), tokens(3, 12)
    _, _, (last_B1, memory) = model.loss_carried(tokens_BT[:, :6], None)
    assert torch.equal(last_B1, tokens_BT[:, 5:6])
    assert not any(m.requires_grad for m in memory)


@every_case
def test_the_cost_of_a_step_counts_every_weight_that_multiplies(name: str) -> None:
    model = make(name)
    looked_up = sum(p.numel() for key, p in model.named_parameters() if "embedding" in key)
    vectors = sum(p.numel() for p in model.parameters() if p.ndim == 1)
    weights = sum(p.numel() for p in model.parameters()) - looked_up - vectors
    attended = {"attention": 3 * (3 + 5), "rnn-attention": 2 * 4 * 6}.get(model.name, 0)
    tied = VOCAB * 6 if "tied" in name else 0
    assert model.training_flops_per_token == 6 * (weights + attended + tied)


BUDGETS = [Budget(seconds=5), Budget(seconds=60), Budget(seconds=3600), Budget(steps=10), Budget(tokens=50_000_000)]


@pytest.mark.parametrize("cls", sorted({cls for cls, _ in CASES.values()}, key=lambda c: c.name))
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(("train_tokens", "vocab"), [(10, 3), (3_000, 40), (1_000_000, 321), (1_000_000, 10_000)])
def test_resolve_leaves_nothing_open_and_keeps_what_was_chosen(
    cls: type[NeuralModel], budget: Budget, train_tokens: int, vocab: int
) -> None:
    facts = TextFacts(
        train_tokens=train_tokens, train_bytes=4 * train_tokens, vocab_size=vocab, tokens_per_second=lambda config: 2e4
    )
    config = cls.resolve(cls.Config(), facts, budget)
    assert [f.name for f in fields(config) if getattr(config, f.name) is None and f.name != "vectors"] == []
    chosen = cls.resolve(cls.Config(width=17, dropout=0.25), facts, budget)
    assert (chosen.width, chosen.dropout) == (17, 0.25)
    assert cls.resolve(config, facts, budget) == config
    if vocab < 100:
        model: NeuralModel = cls(config, LetterTokenizer(vocab))  # type: ignore[call-arg]
        assert model.score(tokens(1, 3, vocab)).shape == (1, 3)


@pytest.mark.parametrize("cls", sorted({cls for cls, _ in CASES.values()}, key=lambda c: c.name))
def test_impossible_settings_are_refused_in_one_line(cls: type[NeuralModel]) -> None:
    for wrong in ({"width": 0}, {"embedding_width": -1}, {"dropout": 1.0}, {"dropout": -0.1}):
        with pytest.raises(ValueError, match=next(iter(wrong))) as caught:
            cls.Config(**wrong)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("cls", "wrong"),
    [
        (FeedForward, {"activation": "swish"}),
        (Attention, {"activation": "swish"}),
        (Attention, {"positions": "rotary"}),
        (RNNAttention, {"score_function": "cosine"}),
        (RNNAttention, {"attend_to": "all"}),
    ],
    ids=str,
)
def test_a_choice_that_is_none_is_not_taken_for_another(cls: type[NeuralModel], wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=f"{cls.name}: {next(iter(wrong))} is one of"):
        cls.Config(**wrong)


@pytest.mark.parametrize("cls", [LSTM, RNNAttention])
def test_a_large_vocabulary_ties_unless_the_widths_were_chosen_to_differ(cls: type[NeuralModel]) -> None:
    few, many = (TextFacts(train_tokens=10**6, train_bytes=10**6, vocab_size=v) for v in (300, 10_000))
    budget = Budget(steps=100)
    assert not cls.resolve(cls.Config(), few, budget).tie
    tied = cls.resolve(cls.Config(width=48), many, budget)
    assert tied.tie
    assert tied.embedding_width == 48
    assert not cls.resolve(cls.Config(width=48, embedding_width=20), many, budget).tie
    assert not cls.resolve(cls.Config(embedding_width=20), many, budget).tie


def test_tying_needs_equal_widths() -> None:
    cls, settings = CASES["lstm, tied"]
    with pytest.raises(ValueError, match="tie needs embedding_width equal to width"):
        cls(replace(cls.Config(**settings), width=8), LetterTokenizer())  # type: ignore[call-arg]
