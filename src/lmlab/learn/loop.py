"""The training loop: one for all models that learn by gradients.

Every step is a function of the weights, the optimizer's state, the seed, the step's number and the share of the budget that
is used: batches and dropout are drawn from (seed, step). So a checkpoint holds no generator state, and with a budget of steps
or tokens a run that is killed and resumed ends with the same bits as one that was not. (Seconds depend on the clock.)
"""

from __future__ import annotations

import json
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from lmlab.config import Budget, Mistake, at_least_one
from lmlab.hardware.choice import Hardware
from lmlab.hardware.load import Threads
from lmlab.interface import CarriedLanguageModel, Loss, NeuralLanguageModel
from lmlab.learn.checkpoint import Progress, load_checkpoint, save_checkpoint
from lmlab.learn.clock import Clock, learning_rate_factor
from lmlab.learn.optimizer import Optimizer, OptimizerConfig
from lmlab.learn.unit import Unit
from lmlab.text.batches import draw_stretches, draw_windows, even_windows
from lmlab.text.stream import TokenStream
from lmlab.text.tokenizers import Tokenizer

CARRIED_CHUNKS = 16  # of truncated back-propagation; then a carried state starts afresh, and may be checkpointed
VALIDATION_TOKENS = 16_384  # at most: enough to rank weights, few enough to look at often
CHECKPOINT_EVERY_S = 20.0
SHOW_EVERY_S = 0.5
MOST_SEED = 2**32 - 1  # the seeds of the steps are multiples of it, and torch takes 63 bits
DIVERGED_NATS = 2.0  # above the cost of guessing uniformly

Status = Literal["finished", "stopped early", "interrupted", "diverged"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How to train; None is filled in by what suits the model."""

    budget: Budget
    seed: int = 0
    learning_rate: float | None = None  # of AdamW
    matrix_learning_rate: float = 0.02  # of Muon, for models with hidden matrices
    weight_decay: float = 0.1
    rows: int | None = None  # sequences per step
    length: int | None = None  # tokens per sequence
    validations: int = 20  # over the whole budget
    patience: int = 6  # validations without a new best before the run stops early

    def __post_init__(self) -> None:
        at_least_one("training", rows=self.rows, length=self.length)
        at_least_one("training", validations=self.validations, patience=self.patience)
        if not 0 <= self.seed <= MOST_SEED:
            raise Mistake(f"training: seed is a whole number from 0 to {MOST_SEED}; got {self.seed}")
        rates = {"learning_rate": self.learning_rate, "matrix_learning_rate": self.matrix_learning_rate}
        for name, rate in rates.items():
            if rate is not None and not 0 < rate < math.inf:
                raise Mistake(f"training: {name} is a number above 0, such as 0.002; got {rate:g}")
        if not 0 <= self.weight_decay < math.inf:
            raise Mistake(f"training: weight_decay is a number from 0 up; got {self.weight_decay:g}")


class Watch(Protocol):
    """Who looks on: a progress line, a live table, or nobody."""

    def update(self, clock: Clock, train_bits: float, valid_bits: float | None) -> None:
        """Called about twice a second with bits per byte: of training since the last validation, and the best so far."""

    def say(self, line: str) -> None:
        """Something the user should read."""


class Silent:
    """A watch that shows nothing."""

    def update(self, clock: Clock, train_bits: float, valid_bits: float | None) -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended. The model then holds its best weights by validation (its last ones if there is no validation)."""

    status: Status
    message: str
    progress: Progress


class Trainer:
    """Trains one model on one token stream, in a folder where it keeps its checkpoint and metrics."""

    def __init__(
        self,
        model: NeuralLanguageModel,
        tokenizer: Tokenizer,
        train: TokenStream,
        valid: TokenStream | None,
        config: TrainConfig,
        hardware: Hardware,
        folder: Path,
        watch: Watch,
    ) -> None:
        self.model, self.train, self.config, self.watch = model.to(hardware.device), train, config, watch
        self.model.compute_dtype = hardware.dtype
        self.device = hardware.device
        rows, length = model.batch_shape
        if config.budget.seconds is not None:  # steps and tokens mean the same everywhere, seconds do not
            rows *= hardware.batch
        self.rows, self.length = config.rows or rows, min(config.length or length, train.tokens)
        self.chunks = (
            min(CARRIED_CHUNKS, max(1, train.tokens // self.length)) if isinstance(model, CarriedLanguageModel) else 1
        )
        self.optimizer = Optimizer(
            dict(model.named_parameters()),
            OptimizerConfig(
                learning_rate=config.learning_rate or model.default_learning_rate,
                matrix_learning_rate=config.matrix_learning_rate,
                weight_decay=config.weight_decay,
                iteration_dtype=hardware.iteration_dtype,
            ),
            model.hidden_matrices(),
        )
        self.train_unit = self.valid_unit = Unit.of(train, tokenizer)
        self.validation = None
        if valid is not None and valid.tokens:
            self.valid_unit = Unit.of(valid, tokenizer)
            length = min(self.length, valid.tokens)
            self.validation = even_windows(valid, VALIDATION_TOKENS // length, length)
        self.checkpoint_path, self.metrics_path = folder / "state" / "checkpoint.safetensors", folder / "metrics.jsonl"
        self.clock = Clock(config.budget)
        self.best: dict[str, Tensor] = {}
        self.progress = Progress()
        self.nats, self.count = torch.zeros((), device=self.device), 0
        self.validation_s = 0.0
        self.threads: Threads | None = None
        if self.device.type == "cpu" and config.budget.seconds is not None and hardware.threads > 1:
            self.threads = Threads(hardware.threads, hardware.now)

    def run(self) -> Outcome:
        """Train until the budget is used, validation stops improving, the loss diverges, or someone interrupts."""
        if self.checkpoint_path.exists():
            self._restore()
        else:
            self.metrics_path.write_text("")
            self._keep_best(None)
        with interruptible() as interrupted:
            status, message = self._steps(interrupted)
        if status == "interrupted":
            self._save()
            return Outcome(status=status, message=message, progress=self._progress_now())
        outcome = Outcome(status=status, message=message, progress=self._progress_now())
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                p.copy_(self.best[name])
        self.model.eval()
        return outcome

    def _steps(self, interrupted: Callable[[], bool]) -> tuple[Status, str]:
        saved_at = shown_at = self.clock.seconds
        while self.clock.next_fraction <= 1 + 1e-9 and self.clock.fraction < 1:
            before = self.clock.fraction
            self._group()
            now = self.clock.seconds
            if now - shown_at > SHOW_EVERY_S or self.clock.fraction >= 1:
                shown_at = now
                if trouble := self._trouble():
                    return "diverged", trouble
                self.watch.update(self.clock, self._train_bits(), self._valid_bits(self.progress.best_nats))
            if self._validation_is_due(before):
                if trouble := self._trouble():
                    return "diverged", trouble
                self._validate()
                if self.progress.worse >= self.config.patience:
                    return "stopped early", (
                        f"validation has not improved since step {self.progress.best_step}; the weights of that step are kept"
                    )
            if interrupted():
                return "interrupted", "interrupted; everything up to this step is saved"
            if now - saved_at > CHECKPOINT_EVERY_S:
                self._save()
                saved_at = self.clock.seconds
        if trouble := self._trouble():
            return "diverged", trouble
        if self.count:  # steps since the last validation
            self._validate()
        if self.validation is None:
            self._keep_best(None)
        return "finished", "the budget is used"

    def _validation_is_due(self, before: float) -> bool:
        """At every 1/validations of the budget; but in a budget of seconds never for more than a tenth of the time."""
        if not _crossed(before, self.clock.fraction, self.config.validations):
            return False
        if self.config.budget.seconds is None or self.clock.fraction >= 1:
            return True
        return self.validation_s + self.clock.reserve_s <= 0.1 * self.clock.seconds

    def single_step(self) -> int:
        """One step on real data, to be timed; its tokens. Not for training: the clock is not asked."""
        before, model = self.clock.tokens, self.model
        if isinstance(model, CarriedLanguageModel):
            stretch_BT = draw_stretches(self.train, self.rows, self.length, self.config.seed, 0).to(self.device)
            self._step(lambda: model.loss_carried(stretch_BT, None)[0])
        else:
            windows = draw_windows(self.train, self.rows, self.length, self.config.seed, 0).to(self.device)
            self._step(lambda: model.loss(windows))
        return self.clock.tokens - before

    def _group(self) -> None:
        """One step; for models that carry a state, the steps from one fresh start to the next."""
        first = self.clock.steps
        model = self.model
        if not isinstance(model, CarriedLanguageModel):
            windows = draw_windows(self.train, self.rows, self.length, self.config.seed, first).to(self.device)
            self._step(lambda: model.loss(windows))
            return
        tokens_BT = draw_stretches(self.train, self.rows, self.length * self.chunks, self.config.seed, first)
        carry: Any = None
        for chunk_BT in tokens_BT.to(self.device).split(self.length, dim=1):
            if self.clock.fraction >= 1:
                return

            def carried(chunk_BT: Tensor = chunk_BT) -> Loss:
                nonlocal carry
                loss, carry = model.loss_carried(chunk_BT, carry)
                return loss

            self._step(carried)

    def _step(self, compute: Callable[[], Loss]) -> None:
        """Forward, backward, update; where seconds count, with as many threads as are fastest now."""
        if self.threads is not None:
            torch.set_num_threads(self.threads.next_step())
        started = self.clock.seconds
        torch.manual_seed(self.config.seed * 1_000_003 + self.clock.steps)  # for dropout
        self.model.train()
        loss = compute()
        loss.mean.backward()
        self.norm = self.optimizer.step(learning_rate_factor(self.clock.fraction))
        for p in self.optimizer.parameters.values():
            p.grad = None
        self.nats += loss.total.detach()
        self.count += loss.count
        self.clock.tick(loss.count)
        if self.threads is not None:
            self.threads.took(self.clock.seconds - started)

    def _trouble(self) -> str:
        """What is wrong with the loss, or nothing."""
        nats = self._train_nats()
        limit = math.log(self.model.vocab_size) + DIVERGED_NATS
        if self.count and (not math.isfinite(nats) or nats > limit):
            return (
                f"the loss went to {nats:.3g} nats per token at step {self.clock.steps}; the best weights before that are"
                f" kept (try a learning rate below {self.optimizer.config.learning_rate:g})"
            )
        return ""

    @torch.no_grad()
    def _validate(self) -> None:
        """Look at the validation windows, keep the weights if they are the best yet, and write a line of metrics."""
        valid_nats, started = None, self.clock.seconds
        if self.validation is not None:
            self.model.eval()
            total, count = 0.0, 0
            for part in self.validation.split(self.rows):
                loss = self.model.loss(part.to(self.device))
                total, count = total + float(loss.total), count + loss.count
            valid_nats = total / count
            if self.config.budget.seconds is not None:
                self.clock.reserve_s = self.clock.seconds - started
                self.validation_s += self.clock.reserve_s
        self._write_metrics(valid_nats)
        if valid_nats is None:
            return
        if self.progress.best_nats is None or valid_nats < self.progress.best_nats:
            self._keep_best(valid_nats)
        else:
            self.progress = self._progress_now(worse=self.progress.worse + 1)

    def _train_nats(self) -> float:
        """Nats per token since the last validation."""
        return float(self.nats) / max(1, self.count)

    def _train_bits(self) -> float:
        """Bits per byte since the last validation."""
        return self.train_unit.bits_per_byte(self._train_nats())

    def _valid_bits(self, valid_nats: float | None) -> float | None:
        """Nats per token of the validation part as bits per byte."""
        return None if valid_nats is None else self.valid_unit.bits_per_byte(valid_nats)

    def _write_metrics(self, valid_nats: float | None) -> None:
        line = {
            "step": self.clock.steps,
            "tokens": self.clock.tokens,
            "seconds": round(self.clock.seconds, 3),
            "train_nats_per_token": self._train_nats(),
            "valid_nats_per_token": valid_nats,
            "train_bits_per_byte": self._train_bits(),
            "valid_bits_per_byte": self._valid_bits(valid_nats),
            "learning_rate_factor": learning_rate_factor(self.clock.fraction),
            "gradient_norm": float(self.norm),
        }
        with open(self.metrics_path, "a") as file:
            file.write(json.dumps(line) + "\n")
        self.nats, self.count = torch.zeros((), device=self.device), 0
        self.progress = self._progress_now(metrics=self.progress.metrics + 1)

    def _keep_best(self, valid_nats: float | None) -> None:
        with torch.no_grad():
            self.best = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        self.progress = self._progress_now(best_nats=valid_nats, best_step=self.clock.steps, worse=0)

    def _progress_now(self, **changes: Any) -> Progress:
        fields = {
            "best_nats": self.progress.best_nats,
            "best_step": self.progress.best_step,
            "worse": self.progress.worse,
            "metrics": self.progress.metrics,
        } | changes
        return Progress(steps=self.clock.steps, tokens=self.clock.tokens, seconds=self.clock.seconds, **fields)

    def _save(self) -> None:
        """Write the checkpoint. The losses since the last metrics line go along, so that the next line is exact too."""
        self.progress = self._progress_now()
        running = {"nats": self.nats, "count": torch.tensor(self.count)}
        groups = {"best": self.best, "optimizer": self.optimizer.tensors(), "running": running}
        save_checkpoint(self.checkpoint_path, self.progress, {"weights": dict(self.model.named_parameters()), **groups})

    def _restore(self) -> None:
        """Go on from the checkpoint; lines of metrics written after it are written again."""
        self.progress, groups = load_checkpoint(self.checkpoint_path)
        try:
            with torch.no_grad():
                for name, p in self.model.named_parameters():
                    p.copy_(groups["weights"][name])
            self.best = {name: groups["best"][name].to(self.device) for name, _ in self.model.named_parameters()}
            self.optimizer.load(groups["optimizer"], self.progress.steps)
            self.nats, self.count = groups["running"]["nats"].to(self.device), int(groups["running"]["count"])
        except (KeyError, RuntimeError) as error:
            raise Mistake(f"{self.checkpoint_path} does not fit this run ({error}); train again") from None
        lines = self.metrics_path.read_text().splitlines(keepends=True) if self.metrics_path.exists() else []
        self.metrics_path.write_text("".join(lines[: self.progress.metrics]))
        done = self.progress
        self.clock = Clock(self.config.budget, steps=done.steps, tokens=done.tokens, seconds=done.seconds)


def _crossed(before: float, after: float, marks: int) -> bool:
    """Whether a multiple of 1/marks lies between two fractions."""
    return math.floor(after * marks + 1e-9) > math.floor(before * marks + 1e-9)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C (or a polite kill) into a question that can be asked between steps; a second one is final."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def ask(signum: int, frame: Any) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
