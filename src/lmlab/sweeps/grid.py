"""The points of a grid, and the jobs that it takes: one a point and seed, each with a folder of its own."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmlab.config import Mistake, nearest, parse_settings, settings_of
from lmlab.learn.settings import CALLED_ELSEWHERE, LEARNING, OWN_OPTIONS, parse_learning
from lmlab.models.registry import Way, file_name, kind_of, trainable_kind
from lmlab.text.tokenizers import plain_spec

Point = Mapping[str, Any]  # one value for each axis: settings of the model or of the training loop, or the tokenizer

TOKENIZER = "tokenizer"
HISTORY_BYTES = 2048  # read before each stretch that is measured, where no window that is asked for holds more


@dataclass(frozen=True, kw_only=True)
class Job:
    """One point and seed: all that a process, here or elsewhere, needs to run it."""

    model: str
    corpus: dict[str, Any]  # Corpus.spec()
    settings: dict[str, Any]
    tokenizer: str
    budget: str
    seed: int
    out: str
    device: str = "cpu"
    learning: dict[str, Any] = field(default_factory=dict)
    history_bytes: int = HISTORY_BYTES  # the same for all jobs, so that all are measured on the same bytes

    def is_of(self, point: Point) -> bool:
        """Whether it belongs to this point of the grid."""
        mine = {**self.settings, **self.learning, TOKENIZER: self.tokenizer}
        return all(mine[key] == value for key, value in point.items())


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The part of the text and which bytes of it; see `lmlab.measure.Spread`."""

    part: str
    bytes: int
    sha256: str = ""
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a job: either what was measured, or an error."""

    job: Job
    perplexity: float = 0.0  # per token
    bits_per_byte: float = 0.0
    valid_bits_per_byte: float | None = None  # of the validation part, by which cells are chosen; None: there is none
    parameters: int = 0
    measured: Measured | None = None
    diverged: bool = False  # its loss did: it was measured with the best weights before that
    error: str = ""


def grid(model: str, over: Sequence[str] | Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The points of a grid: {"layers": [2, 4], "tokenizer": ["char", "words"]}, or ["layers=2,4", "tokenizer=char,words"]."""
    axes: dict[str, list[Any]] = {}
    written = over if not isinstance(over, Mapping) else [f"{k}={','.join(map(str, v))}" for k, v in over.items()]
    for axis in written:
        key, equals, values = (part.strip() for part in axis.partition("="))
        if not equals or not all(value.strip() for value in values.split(",")):
            raise Mistake(
                f"{{over}} is key=value,value,…, such as layers=2,4; got {axis!r}",
                code="over-not-understood",
                over=None,
            )
        typed = [_typed(model, key, value.strip()) for value in values.split(",")]
        if key in axes or len(set(typed)) < len(typed):
            raise Mistake(
                f"{{over}} repeats {axis}; name every axis once, and every value of it once",
                code="over-repeats",
                over=None,
            )
        axes[key] = typed
    if not axes:
        raise Mistake("name at least one axis, such as {over}", code="no-axis", over="layers=2,4")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _typed(model: str, key: str, value: str) -> Any:
    """A value of an axis, of the type that its setting has."""
    if key == TOKENIZER:
        return plain_spec(value)
    config = trainable_kind(model).load().Config
    if key in settings_of(config):
        return parse_settings(config, [f"{key}={value}"], model)[key]
    if key in OWN_OPTIONS:
        raise Mistake(
            "every cell has the same {budget}, and {seeds} says how many seeds; name another axis",
            code="axis-is-an-option",
            budget=None,
            seeds=None,
        )
    if key in LEARNING or key in CALLED_ELSEWHERE:
        if kind_of(model).way is Way.COUNTS:
            raise Mistake(
                f"{model} counts, and {key} is a setting of learning; name another axis with {{over}}",
                code="axis-of-a-counting-model",
                over=None,
            )
        return parse_learning([f"{key}={value}"])[key]
    raise Mistake(
        f"{model} has no setting {key!r}; {nearest(key, [*settings_of(config), *LEARNING, TOKENIZER])}",
        code="axis-unknown",
    )


def plan(
    model: str,
    corpus: Mapping[str, Any],
    points: Sequence[Point],
    *,
    fixed: Mapping[str, Any],
    learning: Mapping[str, Any] | None = None,
    tokenizer: str,
    budget: str,
    seeds: int,
    folder: Path,
    device: str = "cpu",
    history_bytes: int = HISTORY_BYTES,
) -> list[Job]:
    """The jobs of a sweep. fixed, learning: settings of the model and of the loop that all points share."""
    return [
        Job(
            model=model,
            corpus=dict(corpus),
            settings={**fixed, **{k: v for k, v in point.items() if k not in LEARNING and k != TOKENIZER}},
            learning={**(learning or {}), **{k: v for k, v in point.items() if k in LEARNING}},
            tokenizer=point.get(TOKENIZER, tokenizer),
            budget=budget,
            seed=seed,
            out=str(folder.resolve() / file_name("-".join(f"{k}={v}" for k, v in point.items()) + f"-seed{seed}")),
            device=device,
            history_bytes=history_bytes,
        )
        for point in points
        for seed in range(seeds)
    ]
