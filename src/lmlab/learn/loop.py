"""The training loop of every model that is trained by gradient descent, whatever its task.

A step is a function of the weights, the optimizer's state, the seed, the step number and the share of the budget that is used.
Batches and dropout are drawn from (seed, step), so a checkpoint holds no generator state. With a budget of steps or tokens, a
run that is killed and resumed is bit-identical to an uninterrupted one. With a budget of seconds it is not, because the steps
depend on the clock.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmlab.config import Budget, Mistake, misfit
from lmlab.disk.files import append_line, drop_unfinished
from lmlab.hardware.choice import Hardware
from lmlab.hardware.openmp import set_threads
from lmlab.hardware.precision import onednn_as_at_first
from lmlab.hardware.races import answers, as_begun
from lmlab.hardware.threads import Guard, using_threads
from lmlab.interface import Learner
from lmlab.learn.best_weights import BestWeights
from lmlab.learn.checkpoint import CHECKPOINT_EVERY_S, Checkpoints, kernels_begun_with, load_checkpoint
from lmlab.learn.choose_optimizer import optimizer_for
from lmlab.learn.clock import Clock, Spent
from lmlab.learn.interrupt import interruptible
from lmlab.learn.lines import cut_back, is_metrics, is_sample
from lmlab.learn.metrics_log import LoggingWatch
from lmlab.learn.micro_batches import MicroBatch, cut, dropout_seed
from lmlab.learn.onlookers import Silent, Watch
from lmlab.learn.outcome import Diverged, Outcome, Status
from lmlab.learn.pace import MOST_PLANNING
from lmlab.learn.progress import Progress
from lmlab.learn.sampling import Samples
from lmlab.learn.schedule import Schedule
from lmlab.learn.settings import TrainConfig
from lmlab.learn.stepping import COMPILING_FROM_S, CannotRecord, Captured, compiled_if_faster, shapes, steps_for
from lmlab.learn.sums import Sums
from lmlab.learn.task import Task
from lmlab.learn.validation import Validation, ValidationResult
from lmlab.learn.world import SINGLE_PROCESS, World

SHOW_EVERY_S = 0.5
SEVERAL = 3  # batches that a rehearsal compares in shape


class Trainer:
    """The training of one model for one task, with its checkpoint and metrics in a folder."""

    def __init__(
        self,
        model: Learner,
        task: Task,
        config: TrainConfig,
        hardware: Hardware,
        folder: Path,
        watch: Watch,
        earlier: Spent | None = None,
        world: World = SINGLE_PROCESS,
        until: float = 1.0,
    ) -> None:
        """Prepare the optimizer, clock, validation and checkpoints; nothing is written.

        Args:
            model: the model, with its initial weights.
            task: the training objective.
            config: the settings of the training loop.
            hardware: the device, precision and thread count.
            folder: the folder of the run.
            watch: the progress display.
            earlier: the amounts this run spent on the weights that the model has. None: they are random.
            world: the processes that train the model together. Each has a trainer with the same arguments.
            until: the share of the budget after which training pauses; it is validated there and can be resumed.
        """
        self.model, self.task, self.config, self.world = model.to(hardware.device), task, config, world
        self.watch = watch if world.is_writer else Silent()
        self.until = until
        self.schedule = Schedule(warmup=config.warmup, decay=config.decay, decay_to=config.decay_to)
        self.model.compute_dtype = hardware.dtype
        self.device = hardware.device
        self.optimizer = optimizer_for(model, task, config, hardware)
        self.steps = steps_for(hardware.stepping, self.model, task.loss, self.optimizer, self.device, world)
        self.checkpoint_path, self.metrics_path = folder / "state" / "checkpoint.safetensors", folder / "metrics.jsonl"
        self.checkpoints = Checkpoints(self.checkpoint_path, beside=self.device.type == "cuda", world=world)
        self.earlier = earlier
        self.clock = self._clock(earlier or Spent())
        self.weights = BestWeights(self.model)
        self.progress = Progress()
        self.samples = Samples(folder / "samples.jsonl", task, self.model)
        self.sums = Sums(self.device)
        # Can be far above a uniform guess if the model was trained on another text, which is no divergence.
        self.first_nats: float | Tensor | None = None
        self.validation = Validation(self.model, task, config, self.device, world)
        self.threads, self.guard = hardware.now, None
        # Processes wait for each other in every step, and other threads in one of them would only round differently.
        may_guard = world.size == 1 and self.device.type == "cpu" and hardware.threads > 1
        if may_guard and config.budget.seconds and hardware.tokens_per_second:
            self.guard = Guard(hardware.threads, hardware.now, hardware.tokens_per_second)

    def rehearse(self) -> float:
        """Take one step and one validation batch without effect, then restart the budget.

        Afterwards every C kernel is compiled and timed against its alternative. On a GPU the step is captured as a CUDA graph,
        and compiled if that is faster.

        Returns:
            The seconds this took that count as part of the budget.
        """
        started, seconds = time.perf_counter(), self.config.budget.seconds
        state = torch.random.get_rng_state()
        batches = [self.task.batch(self.config.seed, step) for step in range(SEVERAL)]
        parts = [cut(batch, self.config.micro_batches or self.world.size) for batch in batches]
        pieces = [piece for cut_parts in parts for part in cut_parts for piece in self.task.pieces(part)]
        first = pieces[0].to(self.device)
        self.model.train()
        with using_threads(self.device, self.threads):
            try:
                if (len(parts[0]) > 1 or self.world.size > 1) and isinstance(self.steps, Captured):
                    raise CannotRecord("its batches are cut into micro-batches")
                self.steps.rehearse(first)
            except CannotRecord as why:
                self._use_fallback_steps(why)
                self.steps.rehearse(first)
            may_compile = self.config.stepping is None and (seconds or 0.0) >= COMPILING_FROM_S
            alike = len(pieces) == SEVERAL and len({str(shapes(piece)) for piece in pieces}) == 1
            if may_compile and alike and isinstance(self.steps, Captured):  # each shape would be compiled separately
                self.steps = compiled_if_faster(self.steps, first)
            self.model.eval()
            with torch.no_grad():
                for batch in self.validation.batches[:1]:
                    self.model.loss(batch.to(self.device))
        torch.random.set_rng_state(state)
        if seconds is None:
            return 0.0
        taken_s = self.world.broadcast(min(time.perf_counter() - started, MOST_PLANNING * seconds))
        self.config = replace(self.config, budget=Budget(seconds=seconds - taken_s))
        self.clock = self._clock(self.earlier or Spent())
        return taken_s

    def run(self, kernels: Mapping[str, bool] | None = None) -> Outcome:
        """Train until the budget is used, validation stops improving, the loss diverges, or the user interrupts.

        Args:
            kernels: the C functions that the run's plan names. None: those that the checkpoint names, if there is one.
        """
        onednn_as_at_first()  # earlier products in this process must not change the weights
        if self.world.is_writer:
            drop_unfinished(self.checkpoint_path)  # frees disk space before more is written
        if self.checkpoints.any:
            self._restore()
            named = self.progress.kernels if kernels is None else kernels
            kernels = kernels_begun_with(named, lambda what: self.watch.say(f"{self.model.name}: {what}"))
        else:
            self._cut_metrics()
            self._keep_best(None)
            if self.earlier is None:
                self.weights.fresh = self.weights.best
            else:
                self._begin_with_learned_weights()
        with as_begun(kernels or {}):
            return self._learned()

    def _learned(self) -> Outcome:
        """Train from the checkpoint or from the initial weights, and return the outcome with the best weights in the model."""
        with interruptible() as interrupted, using_threads(self.device, self.threads):
            try:
                status, message = self._steps(interrupted)
            except Diverged as trouble:
                status, message = "diverged", str(trouble)
        self.checkpoints.finish()
        if status in ("interrupted", "paused"):
            self.save()
            return Outcome(status=status, message=message, progress=self._progress_now())
        outcome = Outcome(status=status, message=message, progress=self._progress_now())
        self.weights.restore()
        self.model.eval()
        if self.config.calibrate and (self.earlier is not None or self.progress.best_step):
            # weights trained before may have memorized much of the text
            read = self.clock.tokens if self.earlier is None else math.inf
            outcome = replace(outcome, calibrated=self.task.calibrated(self.model, read))
        if self.world.is_writer and self.samples.any:  # the last sample is by the weights that are kept
            self.samples.write(self.progress.best_step)
        return outcome

    def _steps(self, interrupted: Callable[[], bool]) -> tuple[Status, str]:
        saved_at = shown_at = self.clock.look()
        while self.clock.next_fraction <= 1 + 1e-9 and self.clock.fraction < 1:
            before = self.clock.fraction
            self._group()
            now = self.clock.seconds
            if now - shown_at > SHOW_EVERY_S or self.clock.fraction >= 1:
                shown_at = now
                self._show()
            if self.validation.is_due(self.clock, before):
                self._check_loss()
                self.validate()
                self._sample()
                if self.progress.worse >= self.config.patience:
                    return "stopped early", (
                        f"validation has not improved since step {self.progress.best_step}; the weights of that step are kept"
                    )
            if self.until <= self.clock.fraction < 1:
                self._check_what_is_kept()
                if self.sums.count:
                    self.validate()
                return "paused", f"paused after {self.until:.0%} of the budget"
            if self.world.broadcast(interrupted()):
                self._check_what_is_kept()
                return "interrupted", "interrupted; everything up to this step is saved"
            if now - saved_at > CHECKPOINT_EVERY_S or self.checkpoints.is_missing(self.progress):
                self._check_what_is_kept()
                self.save(wait=False)
                saved_at = self.clock.look()
        self._check_loss()
        if self.sums.count:  # steps since the last validation
            self.validate()
        if not self.validation.batches:
            self._check_what_is_kept()
            self._keep_best(None)
        if self.clock.steps == self.clock.earlier.steps:
            why = "the budget ended before the first step, so it holds the weights it began with (give it a longer one)"
            return "finished" if self.clock.steps else "untrained", why
        if self.earlier is not None and self.progress.best_step == self.earlier.steps:
            return "finished", "by validation no weights were better than those it began with, which are kept"
        return "finished", "the budget is used"

    def _begin_with_learned_weights(self) -> None:
        """Validate the trained initial weights, keep them as the best so far and save a checkpoint."""
        nats = self.validation.measure().nats
        self._keep_best(nats)
        self.progress = self._progress_now(lowest_nats=None, highest_nats=nats)
        self.save()

    def _clock(self, spent: Spent | Progress) -> Clock:
        budget, thing = self.config.budget, self.task.thing
        return Clock(budget, spent.steps, spent.tokens, spent.seconds, self.earlier, thing, self.world)

    def _cut_metrics(self) -> None:
        """Keep the metrics that were logged before the present budget, and remove all others."""
        self._cut_back(0 if self.earlier is None else self.earlier.steps)

    def _cut_back(self, step: int, most: int | None = None) -> None:
        """Remove metrics and samples that were logged after `step`, because training repeats those steps.

        Args:
            step: the last step to keep.
            most: the number of metrics lines at that step; None: unknown.
        """
        left = 0
        if self.world.is_writer:
            left = cut_back(self.metrics_path, is_metrics, step, most)
            if self.samples.path.exists():
                cut_back(self.samples.path, is_sample, step)
        self.progress = replace(self.progress, metrics=self.world.broadcast(left))

    def to_be_timed(self) -> Callable[[], int]:
        """Return a function that takes one step and returns its item count. The trainer must not be used otherwise."""
        self.guard = None
        return partial(next, self.endless_steps())

    def endless_steps(self) -> Iterator[int]:
        """Take steps like those of `run` without end, and yield the number of items of each. Nothing is validated or saved."""
        while True:
            before = self.clock.tokens
            for _ in self._steps_of_a_batch():
                yield self.clock.tokens - before
                before = self.clock.tokens

    def _steps_of_a_batch(self) -> Iterator[None]:
        """Train on the next batch; yield after each optimizer step, one per piece."""
        batch, world = self.task.batch(self.config.seed, self.clock.steps), self.world
        parts = cut(batch, self.config.micro_batches or world.size)
        mine = range(world.rank, len(parts), world.size)
        counts, mine = bool(mine), mine or range(1)
        pieces = [
            self.task.pieces(part.to(self.device) if number in mine else part) for number, part in enumerate(parts)
        ]
        self.model.train()
        carries: Sequence[Any] = [None] * len(mine)
        for together in zip(*pieces, strict=True):  # one piece of every micro-batch
            seeds = [dropout_seed(self.config.seed, self.clock.steps, number) for number in mine]
            micro_batches = [
                MicroBatch(piece=together[number], carry=carry, seed=seed, counts=counts)
                for number, carry, seed in zip(mine, carries, seeds, strict=True)
            ]
            carries = self._step(micro_batches, sum(piece.count for piece in together))
            yield

    def _group(self) -> None:
        """Train on the next batch, but stop between its pieces if the budget is used."""
        for _ in self._steps_of_a_batch():
            if self.clock.fraction >= 1:
                break

    def _step(self, micro_batches: Sequence[MicroBatch], count: int) -> Sequence[Any]:
        """Take one optimizer step (forward, backward, update) and return the states to carry to the next pieces."""
        if self.guard is not None:
            set_threads(self.guard.next_step())
        started = time.perf_counter()
        try:
            loss, carries = self.steps.take(micro_batches, count, self.schedule.factor(self.clock.fraction))
        except CannotRecord as why:
            self._use_fallback_steps(why)
            return self._step(micro_batches, count)
        self.sums.add(loss)
        self.first_nats = loss.mean.detach() if self.first_nats is None else self.first_nats
        self.clock.tick(loss.count)
        if self.guard is not None and self.guard.took(loss.count, time.perf_counter() - started):
            threads = f"from now on with {self.guard.threads} of {self.guard.most} threads"
            self.watch.say(f"{self.model.name}: steps take much longer than planned; {threads}")
        return carries

    def _use_fallback_steps(self, why: CannotRecord) -> None:
        self.steps = self.steps.fallback()
        self.watch.say(f"{self.model.name}: steps cannot be recorded and replayed ({why}), so they take longer")

    def _check_loss(self) -> None:
        """Raise Diverged if the mean training loss since the last metrics is NaN, infinite or far above a uniform guess."""
        if self.sums.count:
            self._check(self.sums.mean)

    def _check(self, nats: float) -> None:
        wrong = not math.isfinite(nats) or nats > max(self.task.worst_nats, (self._first() or 0.0) + 1)
        if self.world.broadcast(wrong):
            raise self._diverged(nats)

    def _first(self) -> float | None:
        """Return the loss of the first batch in nats per item. The first call waits for the GPU."""
        self.first_nats = None if self.first_nats is None else float(self.first_nats)
        return self.first_nats

    def _check_what_is_kept(self) -> None:
        """Raise Diverged if the loss diverged or a weight is not finite.

        The weights are checked too, because the last step changed them after its loss was computed.
        """
        self._check_loss()
        finite = bool(torch.stack([p.isfinite().all() for p in self.model.parameters()]).all())
        if not self.world.broadcast(finite):
            raise self._diverged(math.nan)

    def _diverged(self, nats: float) -> Diverged:
        """Return the Diverged error, and select the weights to keep: the best by validation, else the initial ones."""
        kept = f"the best weights before that, of step {self.progress.best_step}, are kept"
        if self.progress.best_nats is not None and self.weights.fall_back():
            kept = (
                "nothing validated before that was better than it was at first, so it holds the weights it began with"
            )
            self.progress = replace(self.progress, best_nats=None, best_step=0)
        elif self.progress.best_nats is None:
            kept = "nothing was validated before that, so it holds the weights it began with"
        return Diverged(
            f"the loss went to {nats:.3g} nats per {self.task.thing} at step {self.clock.steps}; {kept}"
            f" (try a learning rate below {self.optimizer.config.learning_rate:g})"
        )

    def _show(self) -> None:
        """Update the progress display if a loss is known, and raise Diverged if it diverged."""
        nats = self.world.broadcast(self.sums.recent_mean() if self.clock.fraction < 1 else self.sums.mean)
        best = self.progress.best_nats
        if nats is None:
            return
        self._check(nats)
        valid = None if best is None else self.task.shown(best, "valid")
        self.watch.update(self.clock, self.task.shown(nats, "train"), valid, self.task.unit)

    def validate(self) -> None:
        """Measure the validation loss, keep the weights if they are the best so far, and log a line of metrics."""
        found = self.validation.measure_in_time(self.clock)
        if found.nats is not None and not math.isfinite(found.nats):  # the last step diverged after its loss
            raise self._diverged(found.nats)
        self._write_metrics(found)
        if found.nats is None:
            return
        if self.progress.best_nats is None or found.nats < self.progress.best_nats:
            self._keep_best(found.nats)
        else:
            self.progress = self._progress_now().validated(found.nats, self.clock.fraction)

    def _sample(self) -> None:
        """Log a generated text if samples have used no more than their share of the time."""
        started = self.clock.seconds
        if self.samples.is_due(started - self.clock.earlier.seconds):
            if self.world.is_writer:
                self.samples.write(self.clock.steps)
            self.samples.took(self.clock.look() - started)

    def _write_metrics(self, valid: ValidationResult) -> None:
        train = self.task.measured(self.sums.mean, "train")
        held_out = dict.fromkeys(train) if valid.nats is None else self.task.measured(valid.nats, "valid")
        line = {
            "step": self.clock.steps,
            "tokens": self.clock.tokens,
            "seconds": round(self.clock.seconds, 3),
            **{f"train_{name}": value for name, value in {**train, **self.sums.parts_mean}.items()},
            **{f"valid_{name}": value for name, value in {**held_out, **valid.parts}.items()},
            "learning_rate_factor": self.schedule.factor(self.clock.fraction),
            "gradient_norm": float(self.steps.norm),
        }
        if self.world.is_writer:
            append_line(self.metrics_path, json.dumps(line))
            if isinstance(self.watch, LoggingWatch):
                self.watch.log(line)
        self.sums = Sums(self.device, self.sums.mean)
        self.progress = self._progress_now(metrics=self.progress.metrics + 1)

    def _keep_best(self, valid_nats: float | None) -> None:
        self.weights.keep()
        step = self.clock.steps
        self.progress = self._progress_now(best_nats=valid_nats, lowest_nats=valid_nats, best_step=step, worse=0)
        if self.progress.has_learned:
            self.weights.fresh = None

    def _progress_now(self, **changes: Any) -> Progress:
        spent = {"steps": self.clock.steps, "tokens": self.clock.tokens, "seconds": self.clock.seconds}
        return replace(self.progress, **{**spent, "first_nats": self._first(), "kernels": answers(), **changes})

    def save(self, wait: bool = True) -> None:
        """Write the checkpoint. It includes the losses since the last metrics line, so that the next line is exact after a
        resume.

        Args:
            wait: False: on a GPU, write in a background thread.
        """
        self.progress = self._progress_now()
        groups = {"best": self.weights.best, "optimizer": self.optimizer.tensors(), "running": self.sums.tensors()}
        self.checkpoints.save(self.progress, {"weights": dict(self.model.named_parameters()), **groups}, wait=wait)

    def _restore(self) -> None:
        """Load the checkpoint, and remove metrics that were logged after it.

        Raises:
            Mistake: the checkpoint does not fit the model or the run.
        """
        self.progress, groups = load_checkpoint(self.checkpoint_path)
        if self.earlier is None:  # the best is then the lowest, which older checkpoints lack
            self.progress = replace(self.progress, lowest_nats=self.progress.best_nats)
        try:
            if wrong := misfit({name: p.shape for name, p in self.model.named_parameters()}, groups["weights"]):
                raise Mistake(
                    f"{self.checkpoint_path} does not fit the record of this run: {wrong}; train again",
                    code="checkpoint-does-not-fit-record",
                )
            if self.earlier is None and not self.progress.has_learned:
                self.weights.fresh = self.weights.copied()
            with torch.no_grad():
                for name, p in self.model.named_parameters():
                    p.copy_(groups["weights"][name])
            self.weights.best = {
                name: groups["best"][name].to(self.device) for name, _ in self.model.named_parameters()
            }
            self.optimizer.load(groups["optimizer"], self.progress.steps - self.clock.earlier.steps)
            self.sums = Sums.from_tensors(groups["running"], self.device)
            if self.progress.first_nats is not None:
                self.first_nats = self.progress.first_nats
        except (KeyError, RuntimeError) as error:
            raise Mistake(
                f"{self.checkpoint_path} does not fit this run ({error}); train again",
                code="checkpoint-does-not-fit-run",
            ) from None
        self._cut_back(self.progress.steps, self.progress.metrics)
        self.clock = self._clock(self.progress)
