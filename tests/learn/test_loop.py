"""The training loop: it learns, it stops when it should, and it resumes bit for bit."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from kill_and_resume import trained_and_killed
from safetensors.torch import load_file

import lmlab
from interrupts import InterruptAt
from killed_runs import survives_a_kill
from lmlab.config import Budget
from lmlab.hardware import races
from lmlab.hardware.c_kernels import why_not
from lmlab.interface import Loss, Windows
from lmlab.layers.attention import RACE
from lmlab.layers.fast import attention_in_c
from lmlab.learn import loop
from lmlab.learn.next_token import NextToken
from lmlab.learn.onlookers import Silent
from lmlab.learn.prepare import prepare
from lmlab.learn.prepared import PreparedLearner
from lmlab.learn.request import TrainingRequest
from lmlab.learn.run import Run
from lmlab.learn.sums import Sums
from lmlab.models import gpt
from lmlab.models.gpt import GPT
from mistakes import mistake
from processes import FORKED

SETTINGS = {"layers": 1, "width": 32, "heads": 2, "context": 32}
FEW = {"rows": 8}  # of a batch: what is tested here does not need more
NO_ATTENTION_IN_C = why_not(attention_in_c.SOURCE, shared=True)


def run_gpt(text: Path, out: Path, steps: int = 30, **kwargs: object) -> Run:
    return lmlab.train("gpt", text, out=out, budget=f"{steps}steps", settings=SETTINGS, **{"learning": FEW} | kwargs)


def test_training_lowers_the_loss_and_keeps_the_best_weights(small_text: Path, tmp_path: Path) -> None:
    run = run_gpt(small_text, tmp_path / "run", steps=60)
    losses = [line["valid_nats_per_token"] for line in run.metrics]
    assert run.status == "finished"
    assert losses[-1] < 0.7 * losses[0]
    assert min(losses) == losses[[line["step"] for line in run.metrics].index(run.record.result.best_step)]


def test_a_loaded_run_scores_exactly_as_the_trained_one(small_text: Path, tmp_path: Path) -> None:
    run = run_gpt(small_text, tmp_path / "run")
    tokens_BT = torch.randint(run.model.vocab_size, (2, 50))
    assert torch.equal(lmlab.load(tmp_path / "run").model.score(tokens_BT), run.model.score(tokens_BT))


def test_the_same_seed_gives_the_same_weights_and_another_does_not(small_text: Path, tmp_path: Path) -> None:
    hashes = [run_gpt(small_text, tmp_path / str(i), seed=seed).record.model.sha256 for i, seed in enumerate((1, 1, 2))]
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(("model", "every"), [("gpt", 1), ("gpt", 4), ("lstm", None)])
def test_ctrl_c_saves_and_the_resumed_run_ends_bit_identical(
    model: str, every: int | None, small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SETTINGS if model == "gpt" else {"width": 24}
    learning = FEW | {"matrix_every": every}
    options: dict[str, Any] = {"budget": "40steps", "settings": settings, "learning": learning, "device": "cpu"}
    whole = lmlab.train(model, small_text, out=tmp_path / "whole", **options)
    monkeypatch.setattr(loop, "SHOW_EVERY_S", 0.0)
    broken = lmlab.train(model, small_text, out=tmp_path / "broken", watch=InterruptAt(9), **options)
    assert broken.status == "unfinished"
    resumed = lmlab.resume(tmp_path / "broken")
    assert resumed.record.model.sha256 == whole.record.model.sha256
    keys = ("step", "train_nats_per_token", "valid_nats_per_token")
    assert [[line[k] for k in keys] for line in resumed.metrics] == [[line[k] for k in keys] for line in whole.metrics]


@pytest.mark.skipif(bool(NO_ATTENTION_IN_C), reason=NO_ATTENTION_IN_C)
def test_a_resumed_run_keeps_to_the_functions_in_c_it_began_with(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which are faster is found out by timing, and may come out differently on another day; they round differently."""
    monkeypatch.setattr(loop, "SHOW_EVERY_S", 0.0)
    options: dict[str, Any] = {"budget": "40steps", "settings": SETTINGS, "learning": FEW, "device": "cpu"}
    without = {f"{RACE.what}, {precision}": False for precision in ("float32", "bf16")}
    with races.as_begun(without):
        whole = lmlab.train("gpt", small_text, out=tmp_path / "whole", **options)
        lmlab.train("gpt", small_text, out=tmp_path / "broken", watch=InterruptAt(9), **options)
    resumed = lmlab.resume(tmp_path / "broken")
    assert resumed.record.model.sha256 == whole.record.model.sha256
    today = lmlab.train("gpt", small_text, out=tmp_path / "today", **options)
    assert today.record.model.sha256 != whole.record.model.sha256


def test_what_a_kill_left_half_written_is_gone_when_the_run_ends(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be as large as all that was learned."""
    monkeypatch.setattr(loop, "SHOW_EVERY_S", 0.0)
    run_gpt(small_text, tmp_path / "run", watch=InterruptAt(9))
    half = [
        tmp_path / "run" / name
        for name in ("state/.checkpoint.safetensors.0123456789ab", ".model.safetensors.ba9876543210")
    ]
    other = tmp_path / "run" / ".model.safetensors.of-somebody"
    for path in (*half, other):
        path.write_bytes(b"half")
    assert lmlab.resume(tmp_path / "run").status == "finished"
    assert not any(path.exists() for path in half)
    assert not list((tmp_path / "run" / "state").iterdir())
    assert other.exists()


def test_killed_in_a_step_it_still_ends_bit_identical(small_text: Path, tmp_path: Path) -> None:
    options = {"budget": "16steps", "settings": SETTINGS, "learning": FEW}
    survives_a_kill("train", "gpt", small_text, folder=tmp_path, at_step=9, **options)


@pytest.mark.slow
def test_killed_at_random_moments_it_still_ends_bit_identical(small_text: Path, tmp_path: Path) -> None:
    """SIGKILL, as a power cut would, over and over: what is on disk must always be a checkpoint to go on from."""
    process = FORKED.Process(target=trained_and_killed, args=(str(small_text), tmp_path, 5, dict(os.environ)))
    process.start()
    process.join()
    assert process.exitcode == 0
    mine, whole = (load_file(tmp_path / name / "model.safetensors") for name in ("killed", "whole"))
    assert mine.keys() == whole.keys()
    assert all(torch.equal(mine[name], whole[name]) for name in mine)


def test_what_was_validated_first_is_saved_at_once(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of seconds may be killed before the next checkpoint would be due; until then its best weights answer."""
    saved: list[int] = []
    honest = loop.Trainer.save

    def save(self: loop.Trainer, wait: bool = True) -> None:
        saved.append(self.progress.metrics)
        honest(self, wait)

    monkeypatch.setattr(loop.Trainer, "save", save)
    run = run_gpt(small_text, tmp_path / "run", steps=60)
    assert len(run.metrics) > 3
    assert saved == [1]


def test_a_loss_that_is_not_a_number_stops_the_run_and_keeps_good_weights(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, calls = GPT.loss, 0

    def poisoned(self: GPT, batch: Windows) -> Loss:
        nonlocal calls
        calls += self.training
        loss = honest(self, batch)
        poison = float("nan") if self.training and calls == 20 else 1.0
        return Loss(total=loss.total * poison, count=loss.count)

    monkeypatch.setattr(GPT, "loss", poisoned)
    run = run_gpt(small_text, tmp_path / "run", steps=60, device="cpu")  # a GPU would replay the step it recorded
    assert run.status == "diverged"
    assert "step" in run.record.result.message
    assert all(torch.isfinite(t).all() for t in run.model.tensors().values())
    assert run.record.result.best_step < 20


def poison_the_gradient(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """The loss of that step is as it would be, and its gradient is no number: only the weights show it."""
    honest, calls = GPT.loss, 0

    def poisoned(self: GPT, batch: Windows) -> Loss:
        nonlocal calls
        calls += self.training
        loss = honest(self, batch)
        if not self.training or calls != at:
            return loss
        nothing = next(self.parameters()).sum() * 0
        return Loss(total=loss.total + nothing.abs().sqrt(), count=loss.count)

    monkeypatch.setattr(GPT, "loss", poisoned)


def test_weights_that_the_last_step_made_no_numbers_are_not_kept_where_nothing_validates_them(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison_the_gradient(monkeypatch, at=30)
    run = run_gpt(small_text, tmp_path / "run", steps=30, split=(100, 0, 0), device="cpu")
    assert (run.status, run.learned_nothing) == ("diverged", True)
    assert all(torch.isfinite(t).all() for t in run.model.tensors().values())


@pytest.mark.parametrize("seconds", [math.inf, -1.0])
def test_a_run_that_diverged_is_not_saved_as_one_to_go_on_from(
    seconds: float, small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped between two looks at the loss, or come to the moment of a checkpoint."""
    monkeypatch.setattr(loop, "CHECKPOINT_EVERY_S", seconds)
    monkeypatch.setattr(loop, "SHOW_EVERY_S", math.inf)
    poison_the_gradient(monkeypatch, at=10)  # one is of the rehearsal
    if seconds > 0:
        stopped = InterruptAt(9)
        honest = loop.Trainer._group

        def group(self: loop.Trainer) -> None:
            honest(self)
            stopped.update(self.clock, 0.0, None, "")

        monkeypatch.setattr(loop.Trainer, "_group", group)
    saved: list[bool] = []
    honest_save = loop.Trainer.save

    def save(self: loop.Trainer, wait: bool = True) -> None:
        saved.append(all(bool(p.isfinite().all()) for p in self.model.parameters()))
        honest_save(self, wait)

    monkeypatch.setattr(loop.Trainer, "save", save)
    with contextlib.suppress(KeyboardInterrupt):
        run_gpt(small_text, tmp_path / "run", split=(100, 0, 0), learning=FEW | {"validations": 1}, device="cpu")
    run = lmlab.load(tmp_path / "run")
    assert run.status == "diverged"
    assert "at step 9;" in run.record.result.message
    assert all(saved)
    assert all(torch.isfinite(t).all() for t in run.model.tensors().values())


@pytest.mark.parametrize("rate", [30.0, 1e3])
def test_weights_worse_than_those_it_began_with_are_no_good_ones_before_it_diverged(
    rate: float, small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first step blows them up, validation sees them first, and no loss has seen them yet."""
    monkeypatch.setattr(loop, "SHOW_EVERY_S", -1.0)
    # On a GPU, where several steps are under way, it has ended before it can be stopped.
    options: dict[str, Any] = {"steps": 20, "learning": FEW | {"learning_rate": rate}, "device": "cpu"}
    fresh = run_gpt(
        small_text, tmp_path / "fresh", steps=1, learning=FEW | {"learning_rate": 1e-30, "matrix_learning_rate": 1e-30}
    )
    for name, watch in {"whole": None, "stopped": InterruptAt(1)}.items():
        run = run_gpt(small_text, tmp_path / name, **options, watch=watch)
        assert (run.status == "unfinished") is (watch is not None)
        run = lmlab.resume(run)
        assert run.metrics[0]["valid_nats_per_token"] > math.log(run.tokenizer.vocab_size)
        assert (run.status, run.learned_nothing) == ("diverged", True)
        assert "the weights it began with" in run.record.result.message
        for key, tensor in run.model.tensors().items():
            torch.testing.assert_close(tensor, fresh.model.tensors()[key])


def test_a_learning_rate_far_too_high_is_called_divergence(small_text: Path, tmp_path: Path) -> None:
    run = run_gpt(small_text, tmp_path / "run", steps=200, learning={"learning_rate": 1e4, "matrix_learning_rate": 1e3})
    assert run.status == "diverged"
    assert all(torch.isfinite(t).all() for t in run.model.tensors().values())


def test_it_stops_early_when_validation_gets_worse(tmp_path: Path) -> None:
    """A text to learn by heart, validated on another: more training can only hurt."""
    noise = random.Random(0)
    train, valid = tmp_path / "train.txt", tmp_path / "valid.txt"
    train.write_text("".join(noise.choice("abcdefgh") for _ in range(400)))
    valid.write_text("".join(noise.choice("abcdefgh") for _ in range(400)))
    run = lmlab.train(
        "gpt", train, valid=valid, out=tmp_path / "run", budget="600steps",
        settings=SETTINGS | {"dropout": 0.0}, learning={"weight_decay": 0.0} | FEW,
    )  # fmt: skip
    assert run.status == "stopped early"
    assert run.record.result.best_step < run.record.result.steps < 600


def test_a_part_that_does_not_exist_is_refused_by_name(small_text: Path, tmp_path: Path) -> None:
    run = lmlab.train("bag", small_text, out=tmp_path / "run")
    with mistake("part-unknown"):
        lmlab.evaluate(run, part="validation")


def test_a_text_without_validation_keeps_the_last_weights(small_text: Path, tmp_path: Path) -> None:
    run = run_gpt(small_text, tmp_path / "run", split=(100, 0, 0))
    assert run.status == "finished"
    assert all(line["valid_nats_per_token"] is None for line in run.metrics)
    assert run.record.result.best_step == 30
    page = (tmp_path / "run" / "page.html").read_text()
    assert "Nothing was validated, and the weights that are kept are the last ones." in page
    assert "best validation" not in page


def test_who_looks_on_sees_something_though_a_device_never_knows_its_losses_in_time(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, where a short run may be at its next validation before the losses since the last one are there."""
    seen: list[float] = []
    monkeypatch.setattr(loop, "SHOW_EVERY_S", -1.0)
    monkeypatch.setattr(Sums, "recent_mean", lambda sums: sums._known)
    monkeypatch.setattr(Silent, "update", lambda watch, clock, train, valid, unit: seen.append(clock.fraction))
    run_gpt(small_text, tmp_path / "run", steps=10, learning=FEW | {"validations": 5})
    assert seen == pytest.approx([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


@pytest.mark.parametrize(("budget", "factor"), [("5s", 4), ("5steps", 1)])
def test_a_gpu_gets_larger_batches_where_seconds_count_and_the_same_where_steps_do(
    budget: str, factor: int, small_text: Path, tmp_path: Path
) -> None:
    run = run_gpt(small_text, tmp_path / "run", steps=1)
    training = run.record.training
    assert training.plan is not None
    older = dataclasses.replace(training.plan, machine=None, rows=None, row_factor=4)
    on_a_gpu = dataclasses.replace(training, budget=budget, learning={}, plan=older)
    run.record = dataclasses.replace(run.record, training=on_a_gpu)
    prepared = prepare(TrainingRequest.to_resume(run, Silent()))
    assert isinstance(prepared, PreparedLearner)
    assert isinstance(prepared.task, NextToken)
    assert prepared.task.rows == factor * prepared.model.batch_shape[0]


def test_a_model_that_begins_far_above_guessing_has_not_diverged(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table for embedding and output that begins large expects the token just read; looked at every step, it goes on."""
    monkeypatch.setattr(loop, "SHOW_EVERY_S", -1.0)
    monkeypatch.setattr(gpt, "TIED", 1.0)
    settings = {"layers": 1, "width": 256, "heads": 4, "context": 16, "tie": True}
    run = lmlab.train("gpt", small_text, out=tmp_path / "run", budget="3steps", settings=settings)
    assert run.status == "finished"
    assert run.metrics[0]["train_nats_per_token"] > math.log(run.tokenizer.vocab_size) + 2


def test_a_model_that_began_far_above_guessing_has_not_diverged_when_it_is_resumed(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it began with goes along: the losses before the stop are looked at again, and it had the right to them."""
    monkeypatch.setattr(loop, "SHOW_EVERY_S", -1.0)
    monkeypatch.setattr(gpt, "TIED", 1.0)
    settings = {"layers": 1, "width": 256, "heads": 4, "context": 16, "tie": True}
    learning = {"validations": 1, "rows": 8}
    options: dict[str, Any] = {"budget": "12steps", "settings": settings, "learning": learning}
    whole = lmlab.train("gpt", small_text, out=tmp_path / "whole", **options)
    lmlab.train("gpt", small_text, out=tmp_path / "broken", watch=InterruptAt(4), **options)
    resumed = lmlab.resume(tmp_path / "broken")
    assert resumed.status == whole.status == "finished"
    assert resumed.record.model.sha256 == whole.record.model.sha256


def test_a_budget_of_epochs_with_many_digits_is_resumed_as_it_was(small_text: Path, tmp_path: Path) -> None:
    """The record is what a resumed run counts its tokens from."""
    run = lmlab.train("bag", small_text, out=tmp_path / "run", budget="1.23456789epochs")
    assert Budget.parse(run.record.training.budget) == Budget(epochs=1.23456789)
