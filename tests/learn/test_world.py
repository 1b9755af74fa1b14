"""Several processes take the steps of one: the same losses and weights, one writer, one clock, one decision for all."""

from __future__ import annotations

import contextlib
import functools
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch import multiprocessing
from worlds import OutOfStep, ThreadWorld, together

from lmlab.config import Budget
from lmlab.hardware.choice import Hardware
from lmlab.interface import TextLearner
from lmlab.learn import clock, gradients, loop, stepping
from lmlab.learn.loop import Trainer
from lmlab.learn.next_token import NextToken
from lmlab.learn.onlookers import Silent
from lmlab.learn.outcome import Outcome
from lmlab.learn.process_group import ProcessGroup
from lmlab.learn.settings import TrainConfig
from lmlab.learn.sums import Sums
from lmlab.learn.world import SINGLE_PROCESS, SingleProcess, World
from lmlab.models.registry import model_class
from lmlab.tasks.masked.learner import Masking
from lmlab.text.corpus import read
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import train_tokenizer

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
MODELS: dict[str, dict[str, Any]] = {
    "gpt": {"layers": 1, "width": 16, "heads": 2, "context": 12, "stride": 6, "tie": False, "dropout": 0.2},
    "lstm": {"layers": 1, "width": 12, "embedding_width": 8, "tie": False, "dropout": 0.2},
    "bert": {
        "layers": 1, "width": 16, "heads": 2, "hidden": 32, "context": 14, "dropout": 0.2,
        "symbols": True, "pooler": True, "transform": True,
    },
}  # fmt: skip
# Documents of very different lengths: micro-batches of as many rows predict very different numbers of tokens.
DOCUMENTS = [
    "a cat sat",
    "the dog saw a small cat and the cat saw a dog",
    "so",
    "the small dog sat and sat and sat",
] * 6


@dataclass(frozen=True)
class Trained:
    """What came of a training in one process."""

    outcome: Outcome
    weights: dict[str, torch.Tensor]
    steps: int


def trainer(model: str, folder: Path, text: Path, world: World, **changes: Any) -> Trainer:
    corpus = read([text / f"{number}.txt" for number in range(len(DOCUMENTS))], split=(80, 20, 0))
    tokenizer = train_tokenizer("char", corpus.train.pieces())
    train, valid = (tokenize(part, tokenizer, text / "tokens") for part in (corpus.train, corpus.valid))
    cls: Any = model_class(model)
    torch.manual_seed(0)
    fresh: TextLearner = cls(cls.Config(**MODELS[model]), tokenizer.vocab_size)
    settings = {"budget": Budget(steps=10), "rows": 6, "length": 12, "micro_batches": 4, "validations": 5} | changes
    config = TrainConfig(**settings)
    task = (Masking if model == "bert" else NextToken).of(fresh, tokenizer, train, valid, config)
    return Trainer(fresh, task, config, CPU, folder, Silent(), world=world)


def learned(model: str, folder: Path, text: Path, world: World, **changes: Any) -> Trained:
    one = trainer(model, folder, text, world, **changes)
    outcome = one.run()
    return Trained(outcome, {n: p.detach().clone() for n, p in one.model.named_parameters()}, one.clock.steps)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    for number, document in enumerate(DOCUMENTS):
        (folder / f"{number}.txt").write_text(document)
    return folder


def metrics(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def assert_same(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(found) == len(expected) > 0
    for line, other in zip(found, expected, strict=True):
        assert line == pytest.approx(other, rel=1e-4)


def compare(model: str, size: int, text: Path, folder: Path, **changes: Any) -> None:
    """Ten steps of one process and of several, the losses and weights of which must be the same but for rounding."""
    alone = learned(model, folder / "alone", text, SINGLE_PROCESS, **changes)
    several = together(size, lambda world: learned(model, folder / "several", text, world, **changes))
    assert_same(metrics(folder / "several"), metrics(folder / "alone"))
    for one in several:
        assert (one.outcome.status, one.steps) == (alone.outcome.status, alone.steps)
        for name, weight in alone.weights.items():
            # Adam makes steps of rounding where a gradient is zero, as that of the bias of keys is.
            torch.testing.assert_close(
                one.weights[name], weight, rtol=1e-2, atol=2e-3, msg=lambda m, n=name: f"{n}: {m}"
            )


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("model", list(MODELS))
def test_several_processes_take_the_steps_of_one(model: str, size: int, text: Path, tmp_path: Path) -> None:
    compare(model, size, text, tmp_path)


def test_a_process_without_rows_takes_the_steps_of_the_others(text: Path, tmp_path: Path) -> None:
    """Four processes, and batches of three rows."""
    compare("gpt", 4, text, tmp_path, rows=3)


def test_a_mean_of_means_is_noticed(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: every process divides by what its own rows predict, and the results are averaged."""
    honest = Trainer._step

    def step(self: Trainer, micro_batches: Any, count: int) -> Any:
        own = sum(one.piece.count for one in micro_batches)
        return honest(self, micro_batches, own * self.world.size)

    monkeypatch.setattr(Trainer, "_step", step)
    with pytest.raises(AssertionError, match=r"failed|not close"):
        compare("gpt", 2, text, tmp_path)


def test_gradients_that_are_not_added_up_are_noticed(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted bug: losses are added up, and every process goes its own way."""

    def sum_of_losses(parameters: Any, loss: Any, world: World) -> None:
        world.sum([loss.total])

    monkeypatch.setattr(stepping, "sum_over_processes", sum_of_losses)
    with pytest.raises(AssertionError, match=r"failed|not close"):
        compare("lstm", 2, text, tmp_path)


def test_rows_of_a_table_are_added_up_once_each() -> None:
    """A sparse gradient has each row once, and only rows that some process read: the others must not move."""

    def gradient(world: World) -> torch.Tensor:
        table = torch.nn.Parameter(torch.zeros(6, 2))
        for rows in ([0, 2], [2, 3]) if world.rank == 0 else ([2, 5],):
            torch.nn.functional.embedding(torch.tensor(rows), table, sparse=True).sum().backward()
        gradients.join_rows([table])
        gradients.sum_over_processes([table], loss_of_nothing(), world)
        assert table.grad is not None
        assert table.grad.is_sparse
        return table.grad

    for found in together(2, gradient):
        assert found._indices()[0].tolist() == [0, 2, 3, 5]
        assert found._values()[:, 0].tolist() == [1.0, 3.0, 1.0, 1.0]


def loss_of_nothing() -> Any:
    return gradients.Loss(total=torch.zeros(()), count=0)


def test_one_process_writes(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_EVERY_S", -1.0)
    monkeypatch.setattr(loop, "SHOW_EVERY_S", -1.0)
    seen: list[str] = []
    monkeypatch.setattr(Silent, "update", lambda *_: seen.append(threading.current_thread().name))
    found = together(2, lambda world: learned("gpt", tmp_path / f"{world.rank}", text, world))
    assert [one.outcome.progress.metrics for one in found] == [5, 5]
    assert (tmp_path / "0" / "metrics.jsonl").exists()
    assert (tmp_path / "0" / "state" / "checkpoint.safetensors").exists()
    assert not (tmp_path / "1").exists()


class Uneven:
    """In the place of time: it passes faster in one process than in another."""

    def __init__(self) -> None:
        self.now = dict.fromkeys(("MainThread", "process 0", "process 1"), 0.0)

    def perf_counter(self) -> float:
        name = threading.current_thread().name
        self.now[name] += 0.07 if name == "process 1" else 0.05
        return self.now[name]


def in_seconds(text: Path, folder: Path) -> None:
    """Train in seconds; both processes must have the same steps and the same weights, to the last bit."""
    budget = Budget(seconds=1)
    one, other = together(2, lambda world: learned("gpt", folder, text, world, budget=budget, validations=2))
    assert one.steps == other.steps > 5
    assert one.outcome.progress.seconds == other.outcome.progress.seconds
    assert all(torch.equal(weight, other.weights[name]) for name, weight in one.weights.items())


def test_one_clock_counts_for_all(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "time", Uneven())
    in_seconds(text, tmp_path)


def test_a_clock_for_every_process_is_noticed(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug."""

    def look(self: clock.Clock) -> float:
        self.seconds = self._before + clock.time.perf_counter() - self._started
        return self.seconds

    monkeypatch.setattr(clock, "time", Uneven())
    monkeypatch.setattr(clock.Clock, "look", look)
    with pytest.raises(AssertionError):
        in_seconds(text, tmp_path)


def interrupt_the_writer(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Only one process hears Ctrl-C."""

    @contextlib.contextmanager
    def interruptible() -> Iterator[Callable[[], bool]]:
        asked = 0

        def heard() -> bool:
            nonlocal asked
            asked += threading.current_thread().name in ("MainThread", "process 0")
            return asked == after

        yield heard

    monkeypatch.setattr(loop, "interruptible", interruptible)


@pytest.mark.parametrize("model", ["gpt", pytest.param("lstm", marks=pytest.mark.slow)])
def test_a_checkpoint_of_four_processes_is_resumed_by_two_and_by_one(
    model: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Budget(steps=40 if model == "lstm" else 10)
    learned(model, tmp_path / "whole", text, SINGLE_PROCESS, budget=steps)
    for size in (1, 2):
        folder = tmp_path / f"{size}"
        with monkeypatch.context() as patch:
            interrupt_the_writer(patch, after=2)
            stopped = together(4, lambda world, at=folder: learned(model, at, text, world, budget=steps))
        assert {one.outcome.status for one in stopped} == {"interrupted"}
        assert len({one.steps for one in stopped}) == 1
        again = together(size, lambda world, at=folder: learned(model, at, text, world, budget=steps))
        assert {one.outcome.status for one in again} == {"finished"}
        assert_same(metrics(folder), metrics(tmp_path / "whole"))


def test_a_decision_that_is_not_passed_on_is_noticed(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted bug."""
    interrupt_the_writer(monkeypatch, after=2)
    honest = ThreadWorld.broadcast
    monkeypatch.setattr(ThreadWorld, "broadcast", lambda self, value: value if value is True else honest(self, value))
    with pytest.raises(OutOfStep):
        together(2, lambda world: learned("gpt", tmp_path, text, world))


def test_what_has_diverged_in_the_writer_has_diverged_everywhere(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Sums.mean.fget
    assert honest is not None
    monkeypatch.setattr(
        Sums, "mean", property(lambda s: float("nan") if threading.current_thread().name == "process 0" else honest(s))
    )
    found = together(2, lambda world: learned("gpt", tmp_path, text, world))
    assert {one.outcome.status for one in found} == {"diverged"}
    assert len({one.steps for one in found}) == 1


def test_a_world_of_one_looks_at_nothing() -> None:
    world = SingleProcess()
    tensors = iter([torch.ones(1)])
    world.sum(tensors)
    assert next(tensors, None) is not None
    assert world.sum_numbers(1.0, 2) == (1.0, 2)
    assert world.is_writer


def _in_a_process(rank: int, size: int, folder: Path, text: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=size)
    found = learned("gpt", folder / "several", text, ProcessGroup())
    save_file(found.weights, folder / f"{rank}.safetensors")
    dist.destroy_process_group()


@pytest.mark.slow
def test_processes_that_torch_connects_take_the_steps_of_one(text: Path, tmp_path: Path) -> None:
    alone = learned("gpt", tmp_path / "alone", text, SINGLE_PROCESS)
    run = functools.partial(multiprocessing.spawn, nprocs=2, args=(2, tmp_path, text))
    run(_in_a_process)
    assert_same(metrics(tmp_path / "several"), metrics(tmp_path / "alone"))
    for rank in range(2):
        for name, weight in load_file(tmp_path / f"{rank}.safetensors").items():
            torch.testing.assert_close(weight, alone.weights[name], rtol=1e-3, atol=1e-4)
