"""Functions that fit a prepared model, by counting or by the training loop, and save it in its run."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lmlab.config import Mistake, Stopped, recorded
from lmlab.disk.files import cache_folder, write_atomically
from lmlab.hardware.choice import Hardware, as_asked, choose
from lmlab.hardware.threads import at_this_moment
from lmlab.interface import CountModel, Learner
from lmlab.learn.interrupt import interruptible
from lmlab.learn.loop import Trainer
from lmlab.learn.onlookers import Watch
from lmlab.learn.outcome import Outcome
from lmlab.learn.planning import left_after_planning, rehearsed
from lmlab.learn.record import Result
from lmlab.learn.run import Run
from lmlab.learn.run_advice import what_is_kept
from lmlab.learn.run_files import finish_run, write_record
from lmlab.learn.settings import TrainConfig
from lmlab.learn.task import Task
from lmlab.learn.undertrained import UNTOLD, Undertrained, too_short_to_tell, undertrained
from lmlab.learn.world import SINGLE_PROCESS, World


def stream_folder() -> Path:
    """Return the cache folder of tokenized texts."""
    return cache_folder() / "tokens"


def hardware_for(config: TrainConfig, device: str, precision: str) -> Hardware:
    """Choose the device, precision and thread count of a new run.

    With a budget of seconds, the thread count that is fastest under the present load is measured.

    Raises:
        Mistake: `matrix_every` is above 1 with captured or compiled steps.
    """
    hardware = choose(device, precision)
    if config.stepping is not None:
        hardware = as_asked(hardware, config.stepping)
    if (config.matrix_every or 1) > 1 and hardware.stepping != "eager":
        raise Mistake(
            f"steps that are {hardware.stepping} are all alike: leave matrix_every at 1, or take stepping=eager",
            code="matrix-every-beside-stepping",
        )
    if config.budget.seconds is None:  # steps and tokens mean the same everywhere, so speed does not change the result
        return hardware
    return at_this_moment(hardware)


def count(run: Run, fit: Callable[[], CountModel], tokens: int) -> Run:
    """Fit a model by counting and save it.

    Args:
        run: the run to save it in.
        fit: counts the tokens and returns the model.
        tokens: the number of tokens that it counts.
    """
    with run.alone(), explain_interrupt(run):
        started = time.perf_counter()
        fitted = fit()
        result = Result(status="finished", seconds=time.perf_counter() - started, tokens=tokens)
        finish_run(run, fitted, recorded(fitted.config), result)
    return run


def learn(
    run: Run,
    model: Learner,
    task: Task,
    config: TrainConfig,
    hardware: Hardware,
    watch: Watch,
    world: World = SINGLE_PROCESS,
    until: float = 1.0,
) -> Run:
    """Train a model from its initial weights or its checkpoint, and save it in its run.

    Ctrl-C ends the training after the current step and saves a checkpoint. If it arrives when training has ended, the model is
    saved first. Training pauses after the share `until` of the budget. Of several processes the writer saves, and all return
    the run with the same record and weights.
    """
    with run.alone(world), explain_interrupt(run):
        with interruptible() as interrupted:
            world.share(model.parameters())
            _learn(run, model, task, config, hardware, watch, world, until)
            run.record = world.broadcast(run.record)
            if not world.is_writer and run.status != "unfinished":
                run.__dict__["saved"] = model.to("cpu")
        if interrupted() and run.status != "unfinished":
            raise KeyboardInterrupt
    return run


@contextmanager
def explain_interrupt(run: Run) -> Iterator[None]:
    """Turn a KeyboardInterrupt into `Stopped`, whose message says what is saved and how to resume."""
    try:
        yield
    except Stopped:
        raise
    except KeyboardInterrupt:
        raise Stopped(what_is_kept(run)) from None


def _learn(
    run: Run,
    model: Learner,
    task: Task,
    config: TrainConfig,
    hardware: Hardware,
    watch: Watch,
    world: World,
    until: float,
) -> None:
    training = run.record.training
    shorter = dataclasses.replace(config, budget=left_after_planning(config.budget, training.plan))
    trainer = Trainer(model, task, shorter, hardware, run.folder, watch, training.earlier, world, until)
    if training.plan is not None and training.plan.machine is not None and training.plan.kernels is None:
        training = dataclasses.replace(training, plan=rehearsed(training.plan, trainer))
        run.record = dataclasses.replace(run.record, training=training)
        if world.is_writer:
            write_record(run)
    outcome = trainer.run(None if training.plan is None else training.plan.kernels)
    watch.say(f"{run.record.model.name}: {outcome.message}")
    run.paused = outcome.status == "paused"
    if outcome.status not in ("interrupted", "paused") and world.is_writer:
        _save(run, model, task, config, hardware, watch, outcome)


def _save(
    run: Run, model: Learner, task: Task, config: TrainConfig, hardware: Hardware, watch: Watch, outcome: Outcome
) -> None:
    """Save a run whose training ended, and report its outcome."""
    assert outcome.status != "interrupted" and outcome.status != "paused"  # noqa: PT018 (mypy reads it)
    p, per_thing = outcome.progress, task.training_flops(model)
    result = Result(
        status=outcome.status,
        steps=p.steps,
        tokens=p.tokens,
        seconds=p.seconds,
        best_step=p.best_step,
        training_flops=None if per_thing is None else per_thing * p.tokens,
        hardware=str(hardware),
        message=outcome.message,
        undertrained=_undertrained(run, task) if outcome.status == "finished" else None,
        calibrated=outcome.calibrated,
    )
    finish_run(run, model, recorded(model.config), result)
    if result.calibration_note:
        watch.say(f"{run.record.model.name}: {result.calibration_note}")
    if result.undertrained is not None:
        watch.say(f"{run.record.model.name}: {result.undertrained}")
    elif result.status == "finished" and too_short_to_tell(run.metrics, run.record.training.earlier):
        watch.say(f"{run.record.model.name}: {UNTOLD}")
    from lmlab.learn.curve_figures import loss_figure  # imported here, because counting models have no curve
    from lmlab.learn.run_page import run_page
    from lmlab.page.figures import standalone

    figure = loss_figure(run.metrics, run.record.model.name, task.unit, run.record.training.extension_steps)
    write_atomically(run.folder / "loss.svg", standalone(figure).encode())
    write_atomically(run.folder / "page.html", run_page(run, figure).encode())


def _undertrained(run: Run, task: Task) -> Undertrained | None:
    if task.enough_steps is not None and run.metrics[-1]["step"] >= task.enough_steps:
        return None
    return undertrained(run.metrics, task.unit, run.record.training.earlier)
