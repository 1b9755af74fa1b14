"""The training loop: one for everything that learns by gradients, whatever its task.

Every step is a function of the weights, the optimizer's state, the seed, the step's number and the share of the budget that
is used: batches and dropout are drawn from (seed, step). So a checkpoint holds no generator state, and with a budget of steps
or tokens a run that is killed and resumed ends with the same bits as one that was not. (Seconds depend on the clock.)
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
from lmlab.learn.micro_batches import MicroBatch, cut, dropout_seed
from lmlab.learn.onlookers import Silent, Watch
from lmlab.learn.outcome import Diverged, Outcome, Status
from lmlab.learn.pace import MOST_PLANNING
from lmlab.learn.progress import Progress
from lmlab.learn.sampling import Samples
from lmlab.learn.schedule import learning_rate_factor
from lmlab.learn.settings import TrainConfig
from lmlab.learn.stepping import COMPILING_FROM_S, CannotRecord, Captured, compiled_if_faster, shapes, steps_for
from lmlab.learn.sums import Sums
from lmlab.learn.task import Task
from lmlab.learn.validation import Validated, Validation
from lmlab.learn.world import ALONE, World

SHOW_EVERY_S = 0.5
SEVERAL = 3  # batches that a rehearsal looks at: whether all have one shape


class Trainer:
    """Trains one model for one task, in a folder where it keeps its checkpoint and metrics."""

    def __init__(
        self,
        model: Learner,
        task: Task,
        config: TrainConfig,
        hardware: Hardware,
        folder: Path,
        watch: Watch,
        earlier: Spent | None = None,
        world: World = ALONE,
    ) -> None:
        """earlier: the model's weights are learned already, and this is what this run spent on it; None: they are fresh.

        world: the processes that train the model together; each has a trainer of its own, with the same arguments.
        """
        self.model, self.task, self.config, self.world = model.to(hardware.device), task, config, world
        self.watch = watch if world.is_writer else Silent()
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
        # Far above guessing where a model begins sure of itself, as one that learned from another text may be.
        self.first_nats: float | Tensor | None = None
        self.validation = Validation(self.model, task, config, self.device, world)
        self.threads, self.guard = hardware.now, None
        if self.device.type == "cpu" and hardware.threads > 1 and config.budget.seconds and hardware.tokens_per_second:
            self.guard = Guard(hardware.threads, hardware.now, hardware.tokens_per_second)

    def rehearse(self) -> float:
        """Take a step and look at validation, to no effect, and begin the budget anew.

        Afterwards every function in C is made and raced, and a GPU has recorded the step, compiled if that is faster.

        Returns:
            The seconds that this took, as far as they are a part of the budget.
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
                if len(parts[0]) > 1 and isinstance(self.steps, Captured):
                    raise CannotRecord("its batches are cut into micro-batches")
                self.steps.rehearse(first)
            except CannotRecord as why:
                self._take_plainer_steps(why)
                self.steps.rehearse(first)
            may_compile = self.config.stepping is None and (seconds or 0.0) >= COMPILING_FROM_S
            alike = len(pieces) == SEVERAL and len({str(shapes(piece)) for piece in pieces}) == 1
            if may_compile and alike and isinstance(self.steps, Captured):  # each shape would be compiled by itself
                self.steps = compiled_if_faster(self.steps, first)
            self.model.eval()
            with torch.no_grad():
                for batch in self.validation.batches[:1]:
                    self.model.loss(batch.to(self.device))
        torch.random.set_rng_state(state)
        if seconds is None:
            return 0.0
        taken_s = min(time.perf_counter() - started, MOST_PLANNING * seconds)
        self.config = replace(self.config, budget=Budget(seconds=seconds - taken_s))
        self.clock = self._clock(self.earlier or Spent())
        return taken_s

    def run(self, kernels: Mapping[str, bool] | None = None) -> Outcome:
        """Train until the budget is used, validation stops improving, the loss diverges, or someone interrupts.

        Args:
            kernels: functions in C that the plan of the run names; None: the checkpoint, if there is one, names them.
        """
        onednn_as_at_first()  # what was multiplied before in this process must not show in the weights
        if self.world.is_writer:
            drop_unfinished(self.checkpoint_path)  # before more is written: a disk may have had room for just that
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
        """From where the checkpoint left off, or from the beginning."""
        with interruptible() as interrupted, using_threads(self.device, self.threads):
            try:
                status, message = self._steps(interrupted)
            except Diverged as trouble:
                status, message = "diverged", str(trouble)
        self.checkpoints.finish()
        if status == "interrupted":
            self.save()
            return Outcome(status=status, message=message, progress=self._progress_now())
        outcome = Outcome(status=status, message=message, progress=self._progress_now())
        self.weights.give_back()
        self.model.eval()
        if self.config.calibrate and (self.earlier is not None or self.progress.best_step):
            # who was taught before may know much by heart
            read = self.clock.tokens if self.earlier is None else math.inf
            outcome = replace(outcome, calibrated=self.task.calibrated(self.model, read))
        if self.world.is_writer and self.samples.any:  # the last word: that of the weights kept
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
            if self.world.broadcast(interrupted()):
                self._check_what_is_kept()
                return "interrupted", "interrupted; everything up to this step is saved"
            if now - saved_at > CHECKPOINT_EVERY_S or self.checkpoints.lack(self.progress):
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
        """They are the best so far, by what validation says of them; and a kill from now on finds them in the checkpoint."""
        nats = self.validation.measure().nats
        self._keep_best(nats)
        self.progress = self._progress_now(lowest_nats=None, highest_nats=nats)
        self.save()

    def _clock(self, spent: Spent | Progress) -> Clock:
        budget, thing = self.config.budget, self.task.thing
        return Clock(budget, spent.steps, spent.tokens, spent.seconds, self.earlier, thing, self.world)

    def _cut_metrics(self) -> None:
        """Begin with the lines that the run had when this budget began."""
        self._cut_back(0 if self.earlier is None else self.earlier.steps)

    def _cut_back(self, step: int, most: int | None = None) -> None:
        """What was measured and written after that step will be again. most: lines of metrics that were counted so far."""
        left = 0
        if self.world.is_writer:
            left = cut_back(self.metrics_path, is_metrics, step, most)
            if self.samples.path.exists():
                cut_back(self.samples.path, is_sample, step)
        self.progress = replace(self.progress, metrics=self.world.broadcast(left))

    def to_be_timed(self) -> Callable[[], int]:
        """Single steps of a trainer that does nothing else."""
        self.guard = None
        return partial(next, self.endless_steps())

    def endless_steps(self) -> Iterator[int]:
        """Steps as `run` takes them; how many things each learned from. The clock is not asked, nothing is kept."""
        while True:
            before = self.clock.tokens
            for _ in self._steps_of_a_batch():
                yield self.clock.tokens - before
                before = self.clock.tokens

    def _steps_of_a_batch(self) -> Iterator[None]:
        """One step; where a batch is worked off in pieces, one for each of them."""
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
        """The steps of one batch, until the budget is used."""
        for _ in self._steps_of_a_batch():
            if self.clock.fraction >= 1:
                break

    def _step(self, micro_batches: Sequence[MicroBatch], count: int) -> Sequence[Any]:
        """Forward, backward, update; returns what to carry on."""
        if self.guard is not None:
            set_threads(self.guard.next_step())
        started = time.perf_counter()
        try:
            loss, carries = self.steps.take(micro_batches, count, learning_rate_factor(self.clock.fraction))
        except CannotRecord as why:
            self._take_plainer_steps(why)
            return self._step(micro_batches, count)
        self.sums.add(loss)
        self.first_nats = loss.mean.detach() if self.first_nats is None else self.first_nats
        self.clock.tick(loss.count)
        if self.guard is not None and self.guard.took(loss.count, time.perf_counter() - started):
            threads = f"from now on with {self.guard.threads} of {self.guard.most} threads"
            self.watch.say(f"{self.model.name}: steps take much longer than planned; {threads}")
        return carries

    def _take_plainer_steps(self, why: CannotRecord) -> None:
        self.steps = self.steps.plainer()
        self.watch.say(f"{self.model.name}: steps cannot be recorded and replayed ({why}), so they take longer")

    def _check_loss(self) -> None:
        """Diverged where the loss since the last line of metrics is no number, or worse than guessing ever is."""
        if self.sums.count:
            self._check(self.sums.mean)

    def _check(self, nats: float) -> None:
        wrong = not math.isfinite(nats) or nats > max(self.task.worst_nats, (self._first() or 0.0) + 1)
        if self.world.broadcast(wrong):
            raise self._diverged(nats)

    def _first(self) -> float | None:
        """Nats of the first batch, which are fetched from a GPU once: it is waited for."""
        self.first_nats = None if self.first_nats is None else float(self.first_nats)
        return self.first_nats

    def _check_what_is_kept(self) -> None:
        """Diverged where the weights are none to keep: by the losses, or by the last step, which no loss has seen."""
        self._check_loss()
        finite = bool(torch.stack([p.isfinite().all() for p in self.model.parameters()]).all())
        if not self.world.broadcast(finite):
            raise self._diverged(math.nan)

    def _diverged(self, nats: float) -> Diverged:
        """With what is kept: the best weights by validation, or, where none were better than at first, those it began with."""
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
        """To who looks on, where anything is known by now; Diverged if it is nothing to go on with."""
        nats = self.world.broadcast(self.sums.lately() if self.clock.fraction < 1 else self.sums.mean)
        best = self.progress.best_nats
        if nats is None:
            return
        self._check(nats)
        valid = None if best is None else self.task.shown(best, "valid")
        self.watch.update(self.clock, self.task.shown(nats, "train"), valid, self.task.unit)

    def validate(self) -> None:
        """Look at the validation batches, keep the weights if they are the best yet, and write a line of metrics."""
        found = self.validation.measure_in_time(self.clock)
        if found.nats is not None and not math.isfinite(found.nats):  # the last step did it: no loss has seen it yet
            raise self._diverged(found.nats)
        self._write_metrics(found)
        if found.nats is None:
            return
        if self.progress.best_nats is None or found.nats < self.progress.best_nats:
            self._keep_best(found.nats)
        else:
            self.progress = self._progress_now().validated(found.nats, self.clock.fraction)

    def _sample(self) -> None:
        """Write down what the model makes now, if that takes no more than a small share of the time so far."""
        started = self.clock.seconds
        if self.samples.is_due(started - self.clock.earlier.seconds):
            if self.world.is_writer:
                self.samples.write(self.clock.steps)
            self.samples.took(self.clock.look() - started)

    def _write_metrics(self, valid: Validated) -> None:
        train = self.task.measured(self.sums.mean, "train")
        held_out = dict.fromkeys(train) if valid.nats is None else self.task.measured(valid.nats, "valid")
        line = {
            "step": self.clock.steps,
            "tokens": self.clock.tokens,
            "seconds": round(self.clock.seconds, 3),
            **{f"train_{name}": value for name, value in {**train, **self.sums.parts_mean}.items()},
            **{f"valid_{name}": value for name, value in {**held_out, **valid.parts}.items()},
            "learning_rate_factor": learning_rate_factor(self.clock.fraction),
            "gradient_norm": float(self.steps.norm),
        }
        if self.world.is_writer:
            append_line(self.metrics_path, json.dumps(line))
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
        """Write the checkpoint. The losses since the last metrics line go along, so that the next line is exact too."""
        self.progress = self._progress_now()
        groups = {"best": self.weights.best, "optimizer": self.optimizer.tensors(), "running": self.sums.tensors()}
        self.checkpoints.save(self.progress, {"weights": dict(self.model.named_parameters()), **groups}, wait=wait)

    def _restore(self) -> None:
        """Go on from the checkpoint; lines of metrics written after it are written again."""
        self.progress, groups = load_checkpoint(self.checkpoint_path)
        if self.earlier is None:  # then the best is the lowest, though older checkpoints do not say so
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
