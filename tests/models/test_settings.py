"""How models that learn fill in their settings, and which they refuse."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

from lmlab.config import Budget, Mistake, TextFacts, resolved_settings_of
from lmlab.interface import Learner, NeuralLanguageModel
from lmlab.models.attention import Attention
from lmlab.models.bert import BERT
from lmlab.models.classifier import Classifier
from lmlab.models.feedforward import FeedForward
from lmlab.models.gpt import GPT
from lmlab.models.lstm import LSTM
from lmlab.models.registry import KINDS, Role, Way
from lmlab.models.rnn_attention import RNNAttention
from lmlab.models.translator import Translator
from mistakes import mistake

LEARNED = [kind.load() for kind in KINDS.values() if kind.way is Way.LEARNS and kind.role is Role.LANGUAGE_MODEL]

BUDGETS = [Budget(seconds=5), Budget(seconds=60), Budget(seconds=3600), Budget(steps=10), Budget(tokens=50_000_000)]


@pytest.mark.parametrize("cls", LEARNED, ids=lambda c: c.name)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(("train_tokens", "vocab"), [(10, 3), (3_000, 40), (1_000_000, 321), (1_000_000, 10_000)])
def test_resolve_leaves_nothing_open_and_keeps_what_was_chosen(
    cls: type[NeuralLanguageModel], budget: Budget, train_tokens: int, vocab: int
) -> None:
    facts = TextFacts(
        train_tokens=train_tokens, train_bytes=4 * train_tokens, vocab_size=vocab, tokens_per_second=lambda config: 2e4
    )
    config = cls.resolve(cls.Config(), facts, budget)
    assert [
        name for name in resolved_settings_of(cls.Config) if getattr(config, name) is None and name != "vectors"
    ] == []
    chosen = cls.resolve(cls.Config(width=18, dropout=0.25), facts, budget)
    assert (chosen.width, chosen.dropout) == (18, 0.25)
    assert cls.resolve(config, facts, budget) == config
    if vocab < 100:
        model = cls(config, vocab)
        assert model.score(torch.randint(vocab, (1, 3))).shape == (1, 3)


FOLLOWS = {  # by definition: heads of one width, an embedding no wider than the state, windows that overlap by half
    "width": {"heads", "embedding_width", "score_width", "key_width", "value_width"},
    "context": {"stride"},
}


@pytest.mark.parametrize("vocab", [60, 10_000])
@pytest.mark.parametrize("setting", ["layers", "width", "context", "embedding_width", "memory", "dropout"])
@pytest.mark.parametrize("cls", LEARNED, ids=lambda c: c.name)
def test_a_setting_changes_itself_and_what_follows_from_it_alone(
    cls: type[NeuralLanguageModel], setting: str, vocab: int
) -> None:
    if setting not in {f.name for f in fields(cls.Config)}:
        return
    facts, budget = TextFacts(train_tokens=10**6, train_bytes=10**6, vocab_size=vocab), Budget(steps=300)
    free = cls.resolve(cls.Config(), facts, budget)
    swept = cls.resolve(cls.Config(**{setting: 0.4 if setting == "dropout" else 6}), facts, budget)
    changed = {f.name for f in fields(free) if getattr(free, f.name) != getattr(swept, f.name)}
    untied = {"tie"} if setting == "embedding_width" else set()  # which a width of its own makes impossible
    assert changed <= {setting} | FOLLOWS.get(setting, set()) | untied


@pytest.mark.parametrize("cls", LEARNED, ids=lambda c: c.name)
def test_impossible_settings_are_refused_in_one_line(cls: type[NeuralLanguageModel]) -> None:
    for wrong in ({"width": 0}, {"width": -1}, {"dropout": 1.0}, {"dropout": -0.1}):
        with pytest.raises(Mistake, match=next(iter(wrong))) as caught:
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
def test_a_choice_that_is_none_is_not_taken_for_another(cls: type[NeuralLanguageModel], wrong: dict[str, str]) -> None:
    with pytest.raises(Mistake, match=f"{cls.name}: {next(iter(wrong))} is one of"):
        cls.Config(**wrong)


@pytest.mark.parametrize("cls", [LSTM, RNNAttention])
def test_a_large_vocabulary_ties_unless_the_widths_were_chosen_to_differ(cls: type[NeuralLanguageModel]) -> None:
    few, many = (TextFacts(train_tokens=10**6, train_bytes=10**6, vocab_size=v) for v in (300, 10_000))
    budget = Budget(steps=100)
    assert not cls.resolve(cls.Config(), few, budget).tie
    tied = cls.resolve(cls.Config(width=48), many, budget)
    assert tied.tie
    assert tied.embedding_width == 48
    assert not cls.resolve(cls.Config(width=48, embedding_width=20), many, budget).tie
    assert not cls.resolve(cls.Config(embedding_width=20), many, budget).tie


def test_tying_needs_equal_widths() -> None:
    config = LSTM.Config(layers=1, width=8, embedding_width=6, tie=True, dropout=0.0)
    with mistake("tie-needs-equal-widths"):
        LSTM(config, 5)


@pytest.mark.parametrize("cls", [FeedForward, Attention, GPT])
def test_a_context_longer_than_the_text_is_refused(cls: type[NeuralLanguageModel]) -> None:
    facts = TextFacts(train_tokens=100, train_bytes=100, vocab_size=10)
    with mistake("setting-longer-than-text"):
        cls.resolve(cls.Config(context=101), facts, Budget(steps=1))


@pytest.mark.parametrize("width", [2, 66, 130, 200, 250, 320, 1000])
@pytest.mark.parametrize("cls", [GPT, BERT, Classifier, Translator], ids=lambda c: c.name)
def test_any_even_width_has_heads_that_share_it(cls: type[Learner], width: int) -> None:
    """Nobody who sets a width alone should have to know how many heads were about to be taken."""
    facts, budget = TextFacts(train_tokens=10**6, train_bytes=10**6, vocab_size=60), Budget(steps=300)
    config = cls.resolve(cls.Config(width=width, layers=1), facts, budget)
    assert config.width % config.heads == 0
    assert width // config.heads >= min(width, 64)
    cls(config, 60)
    assert cls.resolve(cls.Config(width=width, heads=2, layers=1), facts, budget).heads == 2


@pytest.mark.parametrize("width", [1, 2, 3])
def test_what_follows_from_a_narrow_layer_is_at_least_one_wide(width: int) -> None:
    facts = TextFacts(train_tokens=10**6, train_bytes=10**6, vocab_size=60)
    config = Attention.resolve(Attention.Config(width=width), facts, Budget(steps=3))
    assert (config.width, config.key_width) == (width, 1)
