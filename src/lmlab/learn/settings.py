"""How to train: the settings of the loop, with errors that name what would be right."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lmlab.config import Budget, Mistake, at_least_one, checked_seed, make, one_of, parse_settings, settings_of
from lmlab.models.registry import Way, kind_of

OWN_OPTIONS = ("budget", "seed")
CALLED_ELSEWHERE = {"lr": "learning_rate", "rate": "learning_rate", "muon_lr": "matrix_learning_rate"}
CALLED_ELSEWHERE |= {"batch": "rows", "batch_size": "rows", "decay": "weight_decay", "wd": "weight_decay"}
CALLED_ELSEWHERE |= {"sequence_length": "length", "block_size": "length"}

MOST_SEEDS = 1000  # runs that are to differ by luck alone
MOST_STEPS_BETWEEN = 100  # moves of a matrix: momentum has forgotten what was gathered before
MOST_ROWS = 2**20  # of a step, which holds all of them at once

MOST_VALIDATING = 0.1  # of a budget of seconds: what looking at the validation part may take

Method = Literal["adamw", "muon", "adagrad"]
Stepping = Literal["eager", "captured", "compiled"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How to train; None is filled in by what suits the model."""

    budget: Budget
    seed: int = 0
    optimizer: Method | None = None  # muon: for matrices between hidden vectors, with AdamW for the rest
    learning_rate: float | None = None  # of AdamW or AdaGrad, at its highest
    matrix_learning_rate: float | None = None  # of Muon, for models with hidden matrices
    matrix_every: int | None = None  # steps from one move of a matrix by Muon to its next
    weight_decay: float | None = None  # how strongly matrices and tables are drawn to zero
    stepping: Stepping | None = None  # kernel by kernel, or (on a GPU) recorded and replayed, or of a compiled loss
    rows: int | None = None  # sequences per step
    length: int | None = None  # tokens per sequence
    micro_batches: int | None = None  # into which the rows of a step are cut, so that they take less memory at once
    validations: int = 20  # over the whole budget
    patience: int = 6  # validations without a new best before the run stops early
    calibrate: bool = (
        True  # whether a text read often ends with one factor for all logits, fitted on the validation part
    )

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
        if self.weight_decay is not None and not 0 <= self.weight_decay < math.inf:
            raise Mistake(
                f"training: weight_decay is a number from 0 up; got {self.weight_decay:g}",
                code="weight-decay-below-zero",
            )


LEARNING = settings_of(TrainConfig, leave_out=OWN_OPTIONS)  # what can be set of the loop


def training_config(budget: Budget, seed: int, learning: Mapping[str, Any]) -> TrainConfig:
    """All of it, from the two that are options of their own and the rest."""
    refuse_own_options(learning)
    return make(TrainConfig, {"budget": budget, "seed": checked_seed(seed), **learning}, "training")


def refuse_own_options(names: Iterable[str]) -> None:
    """A Mistake for what is no setting of the loop because it is an option of its own."""
    if twice := set(OWN_OPTIONS) & set(names):
        raise Mistake(
            f"{' and '.join(sorted(twice))} is an option of its own, such as {{budget}} or {{seed}}",
            code="setting-is-an-option",
            budget="3m",
            seed=1,
        )


def refuse_if_it_counts(model: str, **of_the_loop: object) -> None:
    """A Mistake for what is given of the loop where there is none: what counts reads its text once."""
    if kind_of(model).way is Way.COUNTS and (given := next((name for name, v in of_the_loop.items() if v), None)):
        raise Mistake(
            f"{model} counts, and learns nothing: leave {{{given}}} out",
            code="option-of-a-counting-model",
            **{given: None},
        )


def refuse_windows(model: str, learning: Mapping[str, Any]) -> None:
    """A Mistake for the length of windows where nothing is cut into any: texts, sentences and pairs are learned whole."""
    if learning.get("length") is not None:
        raise Mistake(
            f"{model} learns from no windows of a text: leave {{length}} out",
            code="length-without-windows",
            length=None,
        )


def parse_learning(assignments: Iterable[str]) -> dict[str, Any]:
    """Read `key=value` settings of the loop; what others call them is answered with what they are called here."""
    given = list(assignments)
    for name in (assignment.partition("=")[0].strip() for assignment in given):
        refuse_own_options({name})
        if name in CALLED_ELSEWHERE:
            raise Mistake(
                f"training has no setting {name!r}; did you mean {CALLED_ELSEWHERE[name]!r}?",
                code="training-setting-unknown",
            )
    return parse_settings(TrainConfig, given, "training", leave_out=OWN_OPTIONS)
