"""The record of a run, as frozen dataclasses that are converted to and from JSON.

    run.json:     format, lmlab, task, inputs (corpus, tokenizer), model (name, config, parameters, sha256),
                  training (budget, seed, device, precision, learning, lineage), result (status, steps, tokens, seconds, …)

Format 2 has the same record in config.json. Format 1 has no task, and its status and result are at other keys.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lmlab.hardware.execution_plan import ExecutionPlan, plan_of_older_record
from lmlab.learn.clock import Spent
from lmlab.learn.run_folder import OLD_RECORD, RECORD
from lmlab.learn.undertrained import Undertrained
from lmlab.records import WrongKey, fields_to_json, from_json, to_json
from lmlab.version import __version__

FORMAT = 3
FORMATS = {RECORD: (FORMAT,), OLD_RECORD: (1, 2)}  # formats that a file of this name may have

PARTS = ("train", "valid", "test")

Status = Literal["unfinished", "finished", "stopped early", "diverged", "untrained"]


@dataclass(frozen=True, kw_only=True)
class Ingredient:
    """A source run of a mixture, at the time of mixing. The mixture has its own copy of the weights."""

    run: str  # folder of the source run
    model: str
    sha256: str | None  # of its weights file
    weight: float  # mean weight over the text that weights were fitted on; 0: dropped
    seconds: float  # seconds of its training
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The training data and the tokenizer of a run."""

    corpus: Mapping[str, Any]  # `Corpus.spec()`: paths, division and hashes of the parts
    tokenizer: str | None  # kind of tokenizer, such as "char"; None: the task has no tokens
    parts: Sequence[Ingredient] = ()  # of a mixture: its source runs, including dropped ones
    fingerprints: Sequence[str] | None = None  # SHA-256 of the fingerprint files; None: an older record


@dataclass(frozen=True, kw_only=True)
class Model:
    """The kind and settings of the model and, after training, the hashes of its weights."""

    name: str
    config: Mapping[str, Any]
    parameters: int | None = None
    sha256: str | None = None  # of model.safetensors
    identity: Mapping[str, str] | None = None  # `lmlab.identity.worked_out`, for a language model


@dataclass(frozen=True, kw_only=True)
class Ancestor:
    """A training that produced the initial weights of a run: its data, budget and cost."""

    run: str | None  # folder of the other run; None: earlier weights of the same run
    sha256: str  # of its weights file
    corpus: str  # name of its training data
    train_sha256: str  # of the training part
    budget: str
    steps: int
    tokens: int
    seconds: float
    # factor by which its logits were multiplied at the end; training from these weights divides it out first
    calibrated: float | None = None


@dataclass(frozen=True, kw_only=True)
class Training:
    """The requested budget, seed, device and loop settings of a run, and its execution plan."""

    budget: str
    seed: int
    device: str
    precision: str
    learning: Mapping[str, Any] = field(default_factory=dict)  # settings of the training loop
    plan: ExecutionPlan | None = None  # None: the model is fitted by counting, or the record is older
    earlier_plans: tuple[ExecutionPlan, ...] = ()  # plans of other machines that trained the run, oldest first
    lineage: tuple[Ancestor, ...] = ()  # trainings that its initial weights went through, oldest first

    @property
    def extension_steps(self) -> list[int]:
        """The steps at which the budget of this run was extended. The learning rate rises again at each."""
        own = [*itertools.takewhile(lambda ancestor: ancestor.run is None, reversed(self.lineage))]
        return [ancestor.steps for ancestor in reversed(own)]

    @property
    def earlier(self) -> Spent | None:
        """The amounts this run had spent when its present budget began; None if it began with random weights.

        Zero if it began with the weights of another run, because that run's training is not part of this one.
        """
        if not self.lineage:
            return None
        last = self.lineage[-1]
        return (
            Spent(steps=last.steps, tokens=last.tokens, seconds=last.seconds) if last.run is None else Spent()
        )  # another run's cost is not part of this run


@dataclass(frozen=True, kw_only=True)
class Result:
    """The outcome of a run: status, steps, tokens, seconds and best step."""

    status: Status = "unfinished"
    steps: int | None = None  # None: fitted by counting
    tokens: int = 0
    seconds: float = 0.0
    best_step: int | None = None
    training_flops: float | None = (
        None  # by the model's formula, a multiply-add counts two; None: no formula, or fitted by counting
    )
    hardware: str = ""
    message: str = ""
    undertrained: Undertrained | None = None  # set if the loss was still falling steeply when the budget ended
    calibrated: float | None = None  # factor of all logits, fitted on the validation part at the end

    @property
    def calibration_note(self) -> str:
        """A sentence about the calibration of the logits; empty if they are unchanged."""
        if self.calibrated is None:
            return ""
        sure = "surer" if self.calibrated < 1 else "less sure"
        return (
            f"It was {sure} of itself than it was right on the validation part, so all its logits were multiplied by"
            f" {self.calibrated:.3g}, fitted there; its curve shows it before that"
        )


@dataclass(frozen=True, kw_only=True)
class Record:
    """The record of a run, as stored in run.json."""

    task: str
    inputs: Inputs
    model: Model
    training: Training
    result: Result = field(default_factory=Result)
    lmlab: str = __version__

    def to_json(self) -> dict[str, Any]:
        """Return the content of run.json as a dict."""
        return {"format": FORMAT, **fields_to_json(self)}


def read_record(document: Any, formats: Collection[int] = (FORMAT,)) -> Record:
    """Convert the JSON document of a record file to a record.

    Args:
        document: the parsed content of the file.
        formats: the formats that the file may have.

    Raises:
        WrongKey: a key is missing, or its value has another type.
        ValueError: the format is another.
    """
    found = document.get("format") if isinstance(document, Mapping) else None
    if found not in formats:
        raise ValueError(f"format {found}")
    known = _with_plan(_from_format_1(document) if found == 1 else document)
    record = from_json(Record, {"lmlab": "", **known})
    _check_parts(record.inputs.corpus, "inputs.corpus.parts")
    return record


def _check_parts(corpus: Mapping[str, Any], where: str) -> None:
    """Raise WrongKey if the corpus lacks the size or hash of a part. A corpus of files has all three parts."""
    parts = corpus.get("parts")
    if not isinstance(parts, Mapping):
        raise WrongKey(where)
    for name in PARTS if "files" in corpus else parts:
        part = parts.get(name)
        if not isinstance(part, Mapping) or ("files" in corpus and not {"bytes", "sha256"} <= set(part)):
            raise WrongKey(f"{where}.{name}")


def _with_plan(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document with an execution plan, converted from the keys `chosen` and `planned` of formats 1 and 2.

    Rows that the plan chose are moved from `learning` to the plan.
    """
    training = document.get("training")
    if not isinstance(training, Mapping) or training.get("chosen") is None:
        return document
    kept, learning = dict(training), training.get("learning", {})
    halves = {"chosen": kept.pop("chosen"), "planned": kept.pop("planned", None), "learning": learning}
    for name, half in halves.items():
        if not isinstance(half, Mapping) and half is not None:
            raise WrongKey(f"training.{name}")
    chosen, planned = halves["chosen"], halves["planned"]
    rows_followed = planned is not None and planned.get("rows", 1.0) < 1
    try:
        plan = plan_of_older_record(chosen, planned, learning.get("rows") if rows_followed else None)
    except KeyError as key:
        raise WrongKey(f"training.chosen.{key.args[0]}") from None
    if rows_followed:
        kept["learning"] = {name: value for name, value in learning.items() if name != "rows"}
    return {**document, "training": {**kept, "plan": to_json(plan)}}


def _from_format_1(document: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a document of format 1 to format 2: add the task, and move status and result to their keys."""
    for key in ("training", "corpus", "tokenizer", "model", "status"):
        if key not in document:
            raise WrongKey(key)
    if not isinstance(document["training"], Mapping):
        raise WrongKey("training")
    training = dict(document["training"])
    asked = {"chosen", "planned", *(f.name for f in dataclasses.fields(Training))}
    result = {key: training.pop(key) for key in list(training) if key not in asked}
    return {
        "task": "next-token",
        "inputs": {"corpus": document["corpus"], "tokenizer": document["tokenizer"]},
        "model": document["model"],
        "training": training,
        "result": {"status": document["status"], **result},
        "lmlab": document.get("lmlab", ""),
    }
