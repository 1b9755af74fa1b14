"""Steps that are recorded and replayed, or compiled, against steps that are asked for kernel by kernel."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import lmlab
from lmlab.config import Budget, Mistake
from lmlab.hardware.choice import Hardware, as_asked
from lmlab.interface import Loss, Windows
from lmlab.learn.loop import Trainer
from lmlab.learn.next_token import NextToken
from lmlab.learn.onlookers import Silent
from lmlab.learn.settings import TrainConfig
from lmlab.learn.stepping import Captured, Eager, mapped, shapes, tensors
from lmlab.models.registry import model_class
from lmlab.text.corpus import read
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import train_tokenizer

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
compiles = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # of torch, about itself, when its compiler is loaded

CPU, CUDA = Hardware(device=torch.device("cpu"), dtype=torch.float32), torch.device("cuda")
SMALL: dict[str, dict[str, Any]] = {
    "gpt": {"layers": 2, "width": 32, "heads": 2, "context": 16, "stride": 8, "tie": False, "dropout": 0.2},
    "lstm": {"layers": 2, "width": 24, "embedding_width": 16, "tie": False, "dropout": 0.2},
    "feedforward": {"context": 4, "embedding_width": 8, "width": 24, "dropout": 0.2},
    "bigram": {"embedding_width": 8, "width": 24, "dropout": 0.0},
}
TEXT = [f"the {i % 7} small cats saw {i * i % 11} large dogs" for i in range(40)]


class Told(Silent):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def trainer(model: str, way: str, folder: Path, device: str = "cuda", watch: Silent | None = None) -> Trainer:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text.txt").write_text("\n".join(TEXT))
    corpus = read(folder / "text.txt")
    tokenizer = train_tokenizer("char", corpus.train.pieces())
    stream = tokenize(corpus.train, tokenizer, folder)
    torch.manual_seed(0)
    cls = model_class(model)
    fresh = cls(cls.Config(**SMALL[model]), tokenizer.vocab_size)  # type: ignore[call-arg]
    config = TrainConfig(budget=Budget(steps=24), rows=4, length=8)
    task = NextToken.of(fresh, tokenizer, stream, None, config)  # type: ignore[arg-type]
    hardware = Hardware(device=torch.device(device), dtype=torch.float32, stepping=way)
    return Trainer(fresh, task, config, hardware, folder, watch or Silent())  # type: ignore[arg-type]


def weights(trained: Trainer) -> dict[str, Tensor]:
    trained.run()
    return {name: p.detach().cpu().clone() for name, p in trained.model.named_parameters()}


def test_tensors_of_records_and_tuples_are_changed_where_they_stand() -> None:
    one, two = torch.ones(2, 3), torch.zeros(4)
    structure = (Windows(one, known=6), (two, None), 5)
    changed = mapped(structure, lambda t: t + 1)
    assert isinstance(changed[0], Windows)
    assert changed[0].known == 6
    assert torch.equal(changed[0].tokens_BT, one + 1)
    assert changed[1][1] is None
    assert changed[2] == 5
    assert [t is s for t, s in zip(tensors(structure), (one, two), strict=True)] == [True, True]


def test_a_batch_with_a_mask_has_another_shape_than_one_without() -> None:
    tokens_BT = torch.zeros(2, 3, dtype=torch.long)
    assert shapes(Windows(tokens_BT)) == shapes(Windows(tokens_BT + 1, known=6))
    assert shapes(Windows(tokens_BT)) != shapes(Windows(tokens_BT, tokens_BT == 0))
    assert shapes(Windows(tokens_BT)) != shapes(Windows(tokens_BT[:1]))


def test_recorded_steps_are_refused_where_nothing_can_record_them() -> None:
    assert as_asked(CPU, "eager").stepping == "eager"
    with pytest.raises(Mistake, match="needs a CUDA device"):
        as_asked(CPU, "captured")
    with pytest.raises(Mistake, match="stepping"):
        TrainConfig(budget=Budget(steps=1), stepping="rewound")  # type: ignore[arg-type]


def test_windows_know_how_many_tokens_they_predict() -> None:
    tokens_BT = torch.zeros(2, 3, dtype=torch.long)
    assert Windows(tokens_BT).count == 6
    assert Windows(tokens_BT, torch.tensor([[True, False, True], [False, False, False]])).count == 2


@gpu
@compiles
@pytest.mark.parametrize("way", ["captured", "compiled"])
@pytest.mark.parametrize("model", list(SMALL))
def test_recorded_steps_learn_what_eager_steps_learn(model: str, way: str, tmp_path: Path) -> None:
    if way == "compiled" and model != "gpt":
        pytest.skip("one model is enough for the compiler")
    eager = weights(trainer(model, "eager", tmp_path / "eager"))
    recorded = weights(trainer(model, way, tmp_path / "recorded"))
    for name, expected in eager.items():
        torch.testing.assert_close(recorded[name], expected, rtol=2e-3, atol=2e-4, msg=lambda m, n=name: f"{n}: {m}")


@gpu
@pytest.mark.parametrize("model", ["gpt", "lstm"])
def test_a_run_that_was_stopped_and_recorded_anew_ends_with_the_same_bits(model: str, tmp_path: Path) -> None:
    whole = weights(trainer(model, "captured", tmp_path / "whole"))
    first = trainer(model, "captured", tmp_path / "halves")
    first._keep_best(None)
    while first.clock.steps < 11:
        first._group()
    first.save()
    second = weights(trainer(model, "captured", tmp_path / "halves"))
    for name, expected in whole.items():
        assert torch.equal(second[name], expected), name


@gpu
def test_recording_changes_neither_weights_nor_moments(tmp_path: Path) -> None:
    one = trainer("gpt", "captured", tmp_path)
    assert isinstance(one.steps, Captured)
    before = [t.detach().clone() for t in (*one.optimizer.parameters.values(), *one.optimizer.slots.values())]
    batch = one.task.batch(0, 0).to(CUDA)
    one.steps._record(batch, None)
    after = [*one.optimizer.parameters.values(), *one.optimizer.slots.values()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@gpu
def test_a_model_that_looks_at_numbers_is_trained_without_recording_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    eager = weights(trainer("feedforward", "eager", tmp_path / "eager"))
    cls = model_class("feedforward")
    honest = cls.loss  # type: ignore[attr-defined]

    def looks(self: Any, batch: Windows) -> Loss:
        loss: Loss = honest(self, batch)
        assert float(loss.total.detach()) > 0
        return loss

    monkeypatch.setattr(cls, "loss", looks)
    told = Told()
    one = trainer("feedforward", "captured", tmp_path / "recorded", watch=told)
    found = weights(one)
    assert isinstance(one.steps, Eager)
    assert any("cannot be recorded" in line for line in told.lines)
    for name, expected in eager.items():
        torch.testing.assert_close(found[name], expected, rtol=1e-4, atol=1e-5)


@gpu
@compiles
def test_with_time_enough_compiled_steps_are_tried_and_the_faster_ones_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trainer("gpt", "captured", tmp_path)
    one.config = dataclasses.replace(one.config, budget=Budget(seconds=1e4))
    before = [t.detach().clone() for t in (*one.optimizer.parameters.values(), *one.optimizer.slots.values())]
    timed: list[float] = []
    honest = Captured.replay_ms

    def replay_ms(self: Captured, *given: Any) -> float:
        timed.append(honest(self, *given))
        return timed[-1]

    monkeypatch.setattr(Captured, "replay_ms", replay_ms)
    one.rehearse()
    compiled_ms, recorded_ms = timed
    assert one.steps.name == ("compiled" if compiled_ms < recorded_ms else "captured")
    after = [*one.optimizer.parameters.values(), *one.optimizer.slots.values()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True)), "to no effect"
    next(one.endless_steps())


@gpu
def test_steps_under_a_mask_count_only_what_is_kept(tmp_path: Path) -> None:
    one = trainer("gpt", "captured", tmp_path)
    tokens_BT = one.task.batch(0, 0).tokens_BT.cpu()  # type: ignore[attr-defined]
    mask_BT = torch.rand(tokens_BT.shape, generator=torch.Generator().manual_seed(1)) < 0.5
    one.model.config = dataclasses.replace(one.model.config, dropout=0.0)
    one.model.eval()
    expected = one.model.to("cpu").loss(Windows(tokens_BT, mask_BT))
    found = one.model.to("cuda").loss(Windows(tokens_BT, mask_BT).to(CUDA))
    assert found.count == expected.count == int(mask_BT.sum())
    torch.testing.assert_close(found.total.cpu(), expected.total, rtol=1e-4, atol=1e-4)


@gpu
def test_a_recorded_run_is_resumed_in_the_way_it_began(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(TEXT * 20))
    run = lmlab.train("feedforward", text, out=tmp_path / "run", budget="5steps", device="cuda")
    assert run.record.training.plan is not None
    assert run.record.training.plan.stepping == "captured"
