"""Formula, instance and dispatcher agree exactly, for every kind of model and random configs of it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import random_configs
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lmlab.costs.counting import count_config, count_learned, count_stored
from lmlab.costs.dispatcher import counted
from lmlab.costs.symbolic import symbolic_parts, values_of
from lmlab.formulas import Part, Shape, weights, work
from lmlab.interface import CarriedLanguageModel, Learner, NeuralLanguageModel, Windows
from lmlab.layers.cells import GRUCell, LSTMCell, TanhCell
from lmlab.layers.recurrent import RecurrentLayer
from lmlab.models.attention import BLOCK
from lmlab.models.registry import KINDS, Way, model_class
from lmlab.promises import subjects
from thinning import examples, thinned

LEARNED = [kind.name for kind in KINDS.values() if kind.way is Way.LEARNS]
SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
LONGEST = {"attention": 2 * BLOCK + 5}  # tokens: more than a block of that model
thorough = settings(
    max_examples=200 if os.environ.get("LMLAB_THOROUGH") else examples(20),
    deadline=None,
    derandomize=True,
    suppress_health_check=SLOW_TO_DRAW,
)
brief = settings(thorough, max_examples=examples(20))


def drawn(data: st.DataObject, name: str) -> tuple[type[Learner], Any, int]:
    return model_class(name), data.draw(random_configs.of(name)), data.draw(st.integers(1, 9))


@pytest.mark.parametrize("name", LEARNED)
@thorough
@given(data=st.data())
def test_formula_instance_and_parts_have_the_same_weights(name: str, data: st.DataObject) -> None:
    cls, config, vocab = drawn(data, name)
    model = cls(config, vocab)
    parts = cls.parts(config, vocab)
    there = sum(p.numel() for p in model.parameters())
    assert weights(parts) == there == model.parameters_count
    assert sum(part.times * part.weights for part in parts) == there


@pytest.mark.parametrize("name", [name for name in LEARNED if issubclass(model_class(name), NeuralLanguageModel)])
@thorough
@given(data=st.data())
def test_formula_and_dispatcher_count_the_same_operations(name: str, data: st.DataObject) -> None:
    cls, config, vocab = drawn(data, name)
    model = cls(config, vocab).train()
    assert isinstance(model, NeuralLanguageModel)
    longest = min(model.longest_window or LONGEST.get(name, 9), LONGEST.get(name, 9))
    rows, length = data.draw(st.integers(1, 3)), data.draw(st.integers(1, longest))
    tokens_BT = torch.zeros(rows, length, dtype=torch.long)
    said = work(cls.parts(config, vocab, Shape(rows, length)))
    assert counted(lambda: model.loss(Windows(tokens_BT)).total) == said


OTHERS = [name for name in LEARNED if not issubclass(model_class(name), NeuralLanguageModel)]


@pytest.mark.parametrize("name", OTHERS)
@thorough
@given(data=st.data())
def test_formula_and_dispatcher_agree_for_the_other_tasks(name: str, data: st.DataObject) -> None:
    cls, config, vocab = drawn(data, name)
    model, rows, words = cls(config, vocab).train(), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5))
    batch = model.blank(rows, words)
    assert counted(lambda: model.loss(batch).total) == work(cls.parts(config, vocab, Shape(rows, words)))


@pytest.mark.parametrize("name", LEARNED)
def test_count_runs_a_model_of_every_task(name: str) -> None:
    found = count_learned(name, vocab_size=30)
    assert found.dispatched == (found.forward, found.backward)
    assert found.agrees


@pytest.mark.parametrize("name", [name for name in LEARNED if issubclass(model_class(name), CarriedLanguageModel)])
@brief
@given(data=st.data())
def test_formula_and_dispatcher_agree_in_the_middle_of_a_text(name: str, data: st.DataObject) -> None:
    cls, config, vocab = drawn(data, name)
    model = cls(config, vocab).train()
    assert isinstance(model, CarriedLanguageModel)
    before_BT, after_BT = (torch.zeros(2, data.draw(st.integers(1, 9)), dtype=torch.long) for _ in range(2))
    carry = model.loss_carried(before_BT, None)[1]
    said = work(cls.parts(config, vocab, Shape(2, after_BT.shape[1], past=before_BT.shape[1])))
    assert counted(lambda: model.loss_carried(after_BT, carry)[0].total) == said


@pytest.mark.parametrize("name", thinned(LEARNED, ["gpt", "lstm", "cnn", "bert", "translator", "dan"]))
@brief
@given(data=st.data())
def test_the_printed_formula_is_the_one_that_computes(name: str, data: st.DataObject) -> None:
    cls, config, vocab = drawn(data, name)
    shape = Shape(1, data.draw(st.integers(1, 200)))
    values = values_of(config, cls.letters, vocab, shape)
    symbols, numbers = symbolic_parts(cls, config), cls.parts(config, vocab, shape)
    for part, number in zip(symbols, numbers, strict=True):
        for said, is_so in (
            (part.all_weights, number.all_weights),
            (part.all_work.forward, number.all_work.forward),
            (part.all_work.backward, number.all_work.backward),
        ):
            assert (said.subs(values).doit() if hasattr(said, "subs") else said) == is_so


@pytest.mark.parametrize("cell", [TanhCell(), GRUCell(), LSTMCell()], ids=lambda cell: type(cell).__name__)
@pytest.mark.parametrize("length", [2, 5])
def test_a_fused_recurrence_counts_as_its_equations_step_by_step(cell: Any, length: int) -> None:
    layer = RecurrentLayer(cell, 6, 5, bias=True)
    x_BTX = torch.randn(3, length, 6, requires_grad=True)
    start = tuple(torch.zeros(3, 5) for _ in range(cell.memories))

    def step_by_step() -> torch.Tensor:
        state, total = start, torch.zeros(())
        for x_B1X in x_BTX.split(1, dim=1):
            out, state = layer(x_B1X, state)
            total = total + out.sum()
        return total

    fused = counted(lambda: layer(x_BTX, start)[0].sum())
    with FlopCounterMode(display=False) as counter:  # PyTorch's own formulas, and none of ours
        total = step_by_step()
        forward = counter.get_total_flops()
        total.backward()
    assert (fused.forward, fused.both) == (forward, counter.get_total_flops())


def test_attention_on_a_cpu_counts_as_its_products() -> None:
    q, k, v = (torch.randn(2, 3, length, 4, requires_grad=True) for length in (5, 7, 7))
    with FlopCounterMode(display=False) as counter:
        out = (q @ k.mT).softmax(-1) @ v
        forward = counter.get_total_flops()
        out.sum().backward()
    fused = counted(lambda: nn.functional.scaled_dot_product_attention(q, k, v).sum())
    assert (fused.forward, fused.both) == (forward, counter.get_total_flops())


def test_a_large_model_is_counted_without_being_made() -> None:
    cls = model_class("gpt")
    config = cls.Config(layers=40, width=5120, heads=40, context=2048, stride=1, tie=False, dropout=0.0)
    found = count_config(cls, config, 32_000)
    assert found.agrees
    assert found.instance == found.parameters > 10**10
    assert found.dispatched == (found.forward, found.backward)


def test_a_wrong_formula_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    cls = model_class("feedforward")
    config = cls.Config(context=2, embedding_width=3, width=4, dropout=0.0)
    sound = cls.parts

    def without_bias(*arguments: Any) -> list[Part]:
        return [
            Part(p.name, p.weights - (4 if p.name == "hidden layer" else 0), p.multiplied, p.work)
            for p in sound(*arguments)
        ]

    assert count_config(cls, config, 5).agrees
    monkeypatch.setattr(cls, "parts", without_bias)
    assert not count_config(cls, config, 5).agrees


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("smoothing", ["kneser-ney", "add-k", "ml"])
@pytest.mark.parametrize("restart", ["line", "never"])
@pytest.mark.parametrize("kind", ["char", "words"])
def test_an_ngram_model_stores_what_the_different_ngrams_of_its_text_make(
    order: int, smoothing: str, restart: str, kind: str
) -> None:
    tokens = subjects.tokenizer(kind)
    stream = subjects.stream_of(subjects.TEXT, tokens)
    cls = model_class("ngram")
    model = cls.fit(cls.Config(order=order, smoothing=smoothing, restart=restart), tokens.vocabulary, stream)
    found = count_stored(model)
    # Independently: n-grams as tuples in sets, every stretch from its own begin.
    restarts, stretches = set(np.flatnonzero(model.tables.restarts_V).tolist()), [[tokens.vocab_size]]
    for token in map(int, stream.ids):
        stretches[-1].append(token)
        if token in restarts:
            stretches.append([tokens.vocab_size])
    seen = [len({tuple(s[i : i + k]) for s in stretches for i in range(len(s) - k + 1)}) for k in range(1, order + 1)]
    assert found.agrees
    assert found.parameters == weights(cls.stored(model.config, tokens.vocab_size, seen)) == model.parameters_count


@pytest.mark.parametrize("name", ["uniform", "bag"])
def test_other_counted_models_store_a_table_or_nothing(name: str) -> None:
    tokens, cls = subjects.tokenizer("char"), model_class(name)
    found = count_stored(cls.fit(cls.Config(), tokens.vocabulary, subjects.stream_of(subjects.TEXT, tokens)))
    assert found.agrees
    assert found.parameters == (tokens.vocab_size if name == "bag" else 0)
