"""The settings of the training loop, and the errors for wrong ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lmlab.config import Budget, Mistake, a_share, at_least_one, checked_seed, make, one_of, parse_settings, settings_of
from lmlab.learn.schedule import WARMUP, Decay
from lmlab.models.registry import Way, kind_of

OWN_OPTIONS = ("budget", "seed")

MOST_SEEDS = 1000  # maximum number of runs that differ in their seed alone
MOST_STEPS_BETWEEN = 100  # between two Muon updates: momentum forgets older gradients
MOST_ROWS = 2**20  # of a step, which holds all rows in memory

MOST_VALIDATING = 0.1  # share of a budget of seconds that validation may use

Method = Literal["adamw", "muon", "adagrad"]
Stepping = Literal["eager", "captured", "compiled"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The settings of the training loop. None is replaced by a value that suits the model."""

    budget: Budget
    seed: int = 0
    optimizer: Method | None = None  # muon: Muon for matrices between hidden vectors, AdamW for the rest
    learning_rate: float | None = None  # of AdamW or AdaGrad, at the maximum of the schedule
    matrix_learning_rate: float | None = None  # of Muon, for matrices between hidden vectors
    matrix_every: int | None = None  # steps between two Muon updates of a matrix
    warmup: float = WARMUP  # share of the budget over which the learning rate rises
    decay: Decay = "linear"  # shape of its fall afterwards; stable: constant for most of the budget, then linear
    decay_to: float = 0.0  # share of the maximum learning rate at the end of the budget
    clip: float = 1.0  # maximum norm of the gradients of a step, without those of matrices that Muon updates
    weight_decay: float | None = None  # strength of the decay of matrices and embedding tables towards zero
    stepping: Stepping | None = None  # eager, or on a GPU captured as a CUDA graph, or compiled and captured
    rows: int | None = None  # sequences per step
    length: int | None = None  # tokens per sequence
    micro_batches: int | None = None  # number of parts that a step is split into, to use less memory
    validations: int = 20  # number of validations over the whole budget
    patience: int = 6  # validations without improvement after which the run stops early
    calibrate: bool = True  # after repeated epochs, fit one factor for all logits on the validation part

    def __post_init__(self) -> None:
        at_least_one("training", rows=self.rows, length=self.length)
        at_least_one("training", validations=self.validations, patience=self.patience)
        at_least_one("training", matrix_every=self.matrix_every, micro_batches=self.micro_batches)
        if (self.matrix_every or 1) > MOST_STEPS_BETWEEN:
            raise Mistake(
                f"training: matrix_every is a whole number from 1 to {MOST_STEPS_BETWEEN}; got {self.matrix_every}",
                code="matrix-every-out-of-range",
            )
        if (self.rows or 1) > MOST_ROWS:
            raise Mistake(
                f"training: rows is a whole number from 1 to {MOST_ROWS}; got {self.rows}", code="rows-out-of-range"
            )
        if self.optimizer is not None:
            one_of("training", Method, optimizer=self.optimizer)
        if self.stepping is not None:
            one_of("training", Stepping, stepping=self.stepping)
        checked_seed(self.seed)
        rates = {"learning_rate": self.learning_rate, "matrix_learning_rate": self.matrix_learning_rate}
        for name, rate in rates.items():
            if rate is not None and not 0 < rate < math.inf:
                raise Mistake(
                    f"training: {name} is a number above 0, such as 0.002; got {rate:g}", code="rate-not-positive"
                )
        one_of("training", Decay, decay=self.decay)
        a_share("training", warmup=self.warmup)
        if not 0 <= self.decay_to <= 1:
            raise Mistake(
                f"training: decay_to is a share of the learning rate, from 0 to 1; got {self.decay_to:g}",
                code="decay-to-not-a-share",
            )
        if not self.clip > 0:
            raise Mistake(
                f"training: clip is a number above 0, such as 1, or inf for no clipping; got {self.clip:g}",
                code="clip-setting-not-positive",
            )
        if self.weight_decay is not None and not 0 <= self.weight_decay < math.inf:
            raise Mistake(
                f"training: weight_decay is a number from 0 up; got {self.weight_decay:g}",
                code="weight-decay-below-zero",
            )


LEARNING = settings_of(TrainConfig, leave_out=OWN_OPTIONS)  # settings of the loop, without separate options


def training_config(budget: Budget, seed: int, learning: Mapping[str, Any]) -> TrainConfig:
    """Return the settings of the loop from the budget, the seed and the remaining settings by name."""
    refuse_own_options(learning)
    return make(TrainConfig, {"budget": budget, "seed": checked_seed(seed), **learning}, "training")


def checked_until(until: float) -> float:
    """Return a share of the budget after which training pauses; raise a Mistake if it is none."""
    if not 0 < until <= 1:
        raise Mistake(
            f"{{until}} is a share of the budget, above 0 and up to 1; got {until:g}",
            code="until-not-a-share",
            until=None,
        )
    return until


def refuse_own_options(names: Iterable[str]) -> None:
    """Raise a Mistake if a name is an option of its own and not a setting of the loop, such as `budget`."""
    if twice := set(OWN_OPTIONS) & set(names):
        raise Mistake(
            f"{' and '.join(sorted(twice))} is an option of its own, such as {{budget}} or {{seed}}",
            code="setting-is-an-option",
            budget="3m",
            seed=1,
        )


def refuse_if_it_counts(model: str, **of_the_loop: object) -> None:
    """Raise a Mistake if an option of the training loop is given for a counting model, which reads its text once."""
    if kind_of(model).way is Way.COUNTS and (given := next((name for name, v in of_the_loop.items() if v), None)):
        raise Mistake(
            f"{model} counts, and learns nothing: leave {{{given}}} out",
            code="option-of-a-counting-model",
            **{given: None},
        )


def refuse_windows(model: str, learning: Mapping[str, Any]) -> None:
    """Raise a Mistake if a window length is given for a model that reads whole texts, sentences or pairs."""
    if learning.get("length") is not None:
        raise Mistake(
            f"{model} learns from no windows of a text: leave {{length}} out",
            code="length-without-windows",
            length=None,
        )


def parse_learning(assignments: Iterable[str]) -> dict[str, Any]:
    """Parse `key=value` settings of the loop.

    Raises:
        Mistake: a setting is unknown.
    """
    given = list(assignments)
    for name in (assignment.partition("=")[0].strip() for assignment in given):
        refuse_own_options({name})
    return parse_settings(TrainConfig, given, "training", leave_out=OWN_OPTIONS)
