"""`lmlab.compare_logs`: which of several models does better on tasks of lm-evaluation-harness, told apart from chance.

All models of a task answered the same documents, so differences are taken document by document. An interval is that of
`over_rows` (jackknife, Student's t, corrected for skewness). The intervals of all pairs of a task hold together: each has the
level 1 - α/P for P pairs. Two models are told apart if their interval excludes zero and so many documents differ that a fair
coin would not give one sign to all of them with probability α/P. Models that are not told apart share a letter.

Documents are taken for independent. Questions about one passage are not, and then the intervals are too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from lmlab.config import Mistake
from lmlab.exchange.lm_eval_logs import Samples, read_samples
from lmlab.measure.letters import letters_of
from lmlab.measure.row_intervals import LEVEL, over_rows, quotient
from lmlab.records import JsonRecord

LOWER_IS_BETTER = ("bits_per_byte", "perplexity", "brier", "ter", "loss", "error")
FEWEST_DOCUMENTS = 2


@dataclass(frozen=True, kw_only=True)
class LoggedModel(JsonRecord):
    """A model on one task. low, high: of its own figure, at the level of one interval."""

    model: str
    value: float
    low: float
    high: float
    letters: str


@dataclass(frozen=True, kw_only=True)
class LoggedPair(JsonRecord):
    """The figure of a minus that of b, with an interval that holds for all pairs of the task together."""

    a: str
    b: str
    difference: float
    low: float
    high: float
    differing: int  # documents
    apart: bool


@dataclass(frozen=True, kw_only=True)
class LoggedTask(JsonRecord):
    """One metric of one task; the best model comes first."""

    task: str
    metric: str
    documents: int
    left_out: int  # documents that not every model has
    lower_is_better: bool
    models: tuple[LoggedModel, ...]
    pairs: tuple[LoggedPair, ...]


@dataclass(frozen=True, kw_only=True)
class LogComparison(JsonRecord):
    """All tasks and metrics that two models or more have in common."""

    level: float
    tasks: tuple[LoggedTask, ...]


def compare_logs(logs: Sequence[str | Path], *, level: float = LEVEL) -> LogComparison:
    """Compare models by the samples that lm-eval logged, document by document.

    Args:
        logs: `samples_TASK_….jsonl` files, of two models or more on one task or more. Files of several folders are of the
            models after which the folders are called; of one folder, of the models after which the files are.
        level: the probability with which all intervals of a task hold together.

    Raises:
        Mistake: a file is no such log, or no task has two models.
    """
    if not 0 < level < 1:
        raise Mistake(f"{{level}} is a share such as 0.95; got {level}", code="level-out-of-range", level=None)
    by_task: dict[str, list[Samples]] = {}
    for one in read_samples([Path(file) for file in logs]):
        by_task.setdefault(one.task, []).append(one)
    tasks = [
        _compared(task, metric, samples, level)
        for task, samples in by_task.items()
        if len(samples) > 1
        for metric in samples[0].values
        if all(metric in other.values for other in samples)
    ]
    if not tasks:
        raise Mistake(
            "no task and metric is in two of these logs; name the logs of two models or more on one task",
            code="logs-without-pairs",
        )
    return LogComparison(level=level, tasks=tuple(tasks))


def _compared(task: str, metric: str, samples: Sequence[Samples], level: float) -> LoggedTask:
    every = [set(one.values[metric]) for one in samples]
    common = sorted(set.intersection(*every))
    if len(common) < FEWEST_DOCUMENTS:
        raise Mistake(
            f"{task}: the logs have {len(common)} documents in common; they are of other parts of it, or too short",
            code="logs-without-common-documents",
        )
    for document in common:
        if len({one.hashes[document] for one in samples if document in one.hashes}) > 1:
            raise Mistake(
                f"{task}: document {document} is another text in some of these logs; run all models on one version of the"
                " task",
                code="logs-of-other-documents",
            )
    table_KB2 = np.array([[one.values[metric][document] for document in common] for one in samples])
    lower = any(word in metric for word in LOWER_IS_BETTER)
    own = [over_rows(quotient, rows_B2, level=level) for rows_B2 in table_KB2]
    values = [figure.value for figure in own]
    order = sorted(range(len(samples)), key=lambda k: values[k] if lower else -values[k])
    names = [one.model for one in samples]
    each = 1.0 - (1.0 - level) / math.comb(len(samples), 2)
    apart_KK = np.zeros((len(samples), len(samples)), dtype=bool)
    pairs = []
    for i, j in combinations(order, 2):
        pair = _pair(names[i], names[j], table_KB2[i], table_KB2[j], each)
        apart_KK[i, j] = apart_KK[j, i] = pair.apart
        pairs.append(pair)
    letters = letters_of(apart_KK, order)
    return LoggedTask(
        task=task,
        metric=metric,
        documents=len(common),
        left_out=len(set.union(*every)) - len(common),
        lower_is_better=lower,
        models=tuple(
            LoggedModel(model=names[k], value=values[k], low=own[k].low, high=own[k].high, letters=letters[k])
            for k in order
        ),
        pairs=tuple(pairs),
    )


def _pair(a: str, b: str, a_B2: np.ndarray, b_B2: np.ndarray, level: float) -> LoggedPair:
    """Two models on the same documents; the weights of a document are the same for both, or nearly so."""
    rows_B2 = np.stack([a_B2[:, 0] - b_B2[:, 0], (a_B2[:, 1] + b_B2[:, 1]) / 2], axis=1)
    differing = int((rows_B2[:, 0] != 0).sum())
    found = over_rows(quotient, rows_B2, level=level)
    low, high = found.low, found.high
    if low == high and bool((rows_B2[:, 1] == 1).all()):  # alike everywhere: what could still be in other documents
        unseen = 1.0 - (1.0 - level) ** (1.0 / len(rows_B2))
        low, high = low - unseen, high + unseen
    alike = 2.0 ** (1 - differing) > 1.0 - level  # one sign for all that differ could be chance
    apart = (low > 0 or high < 0) and not alike
    return LoggedPair(a=a, b=b, difference=found.value, low=low, high=high, differing=differing, apart=apart)
