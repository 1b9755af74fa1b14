"""What is known of a run, as frozen records; JSON only at the edge.

    run.json:     format, lmlab, task, inputs (corpus, tokenizer), model (name, config, parameters, sha256),
                  training (budget, seed, device, precision, learning, lineage), result (status, steps, tokens, seconds, …)

Runs of format 2 have the same record in config.json. Runs of format 1 have no task, and keep status and result elsewhere.
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
FORMATS = {RECORD: (FORMAT,), OLD_RECORD: (1, 2)}  # that a file of this name may have

PARTS = ("train", "valid", "test")

Status = Literal["unfinished", "finished", "stopped early", "diverged", "untrained"]


@dataclass(frozen=True, kw_only=True)
class Ingredient:
    """A run that a mix was made of, as it was then; the mix has its own copy of the weights."""

    run: str  # its folder
    model: str
    sha256: str | None  # of its weights
    weight: float  # on average over the text the weights were fitted on; 0 where it was left out
    seconds: float  # that it took to train
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a run learns from."""

    corpus: Mapping[str, Any]  # Corpus.spec(): where the text is, how it is divided, and the hashes of its parts
    tokenizer: str | None  # what it was made from, such as "char"; None: the task has no tokens
    parts: Sequence[Ingredient] = ()  # of a mix: the runs whose models it holds, and those that were left out
    fingerprints: Sequence[str] | None = None  # hashes of the files that tell what was trained on; None: older runs


@dataclass(frozen=True, kw_only=True)
class Model:
    """Which model, and once it is trained, which weights."""

    name: str
    config: Mapping[str, Any]
    parameters: int | None = None
    sha256: str | None = None  # of model.safetensors
    identity: Mapping[str, str] | None = None  # of a language model: `lmlab.identity.worked_out`


@dataclass(frozen=True, kw_only=True)
class Ancestor:
    """Weights that a run began with instead of fresh ones: where they came from and what had been spent on them."""

    run: str | None  # the folder of another run; None: these are earlier weights of the run itself
    sha256: str  # of the weights
    corpus: str  # the name of what they were learned from
    train_sha256: str  # of its training part
    budget: str
    steps: int
    tokens: int
    seconds: float
    # what its logits were multiplied by at its end: whoever goes on from it divides them by it to begin with
    calibrated: float | None = None


@dataclass(frozen=True, kw_only=True)
class Training:
    """What was asked for."""

    budget: str
    seed: int
    device: str
    precision: str
    learning: Mapping[str, Any] = field(default_factory=dict)  # settings of the loop
    plan: ExecutionPlan | None = None  # how steps are taken; None: the model counts, or the run is an old one
    earlier_plans: tuple[ExecutionPlan, ...] = ()  # of the other machines on which the run was trained, oldest first
    lineage: tuple[Ancestor, ...] = ()  # of the weights it began with, oldest first

    @property
    def went_on_at(self) -> list[int]:
        """The steps at which this run went on, for longer than it was to at first; its learning rate rose again there."""
        own = [*itertools.takewhile(lambda ancestor: ancestor.run is None, reversed(self.lineage))]
        return [ancestor.steps for ancestor in reversed(own)]

    @property
    def earlier(self) -> Spent | None:
        """What this run had spent when its budget began; None: it began with fresh weights."""
        if not self.lineage:
            return None
        last = self.lineage[-1]
        return (
            Spent(steps=last.steps, tokens=last.tokens, seconds=last.seconds) if last.run is None else Spent()
        )  # what another run spent is its own affair


@dataclass(frozen=True, kw_only=True)
class Result:
    """How it went."""

    status: Status = "unfinished"
    steps: int | None = None  # None: it was fitted by counting
    tokens: int = 0
    seconds: float = 0.0
    best_step: int | None = None
    training_flops: float | None = (
        None  # by the model's formula, a multiply-add being two; None: it has none, or counts
    )
    hardware: str = ""
    message: str = ""
    undertrained: Undertrained | None = (
        None  # what its curve says, if it was still falling steeply when the budget ended
    )
    calibrated: float | None = None  # what all logits were multiplied by at the end, fitted on the validation part

    @property
    def on_calibration(self) -> str:
        """A sentence on it; nothing where there is nothing to say."""
        if self.calibrated is None:
            return ""
        sure = "surer" if self.calibrated < 1 else "less sure"
        return (
            f"It was {sure} of itself than it was right on the validation part, so all its logits were multiplied by"
            f" {self.calibrated:.3g}, fitted there; its curve shows it before that"
        )


@dataclass(frozen=True, kw_only=True)
class Record:
    """All of it."""

    task: str
    inputs: Inputs
    model: Model
    training: Training
    result: Result = field(default_factory=Result)
    lmlab: str = __version__

    def to_json(self) -> dict[str, Any]:
        """What run.json holds."""
        return {"format": FORMAT, **fields_to_json(self)}


def read_record(document: Any, formats: Collection[int] = (FORMAT,)) -> Record:
    """Read a record.

    Args:
        document: what its file holds.
        formats: that the file may have.

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
    """WrongKey where a corpus does not say what its parts are; one of files has all three."""
    parts = corpus.get("parts")
    if not isinstance(parts, Mapping):
        raise WrongKey(where)
    for name in PARTS if "files" in corpus else parts:
        part = parts.get(name)
        if not isinstance(part, Mapping) or ("files" in corpus and not {"bytes", "sha256"} <= set(part)):
            raise WrongKey(f"{where}.{name}")


def _with_plan(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document with an execution plan, which formats 1 and 2 hold in two halves, and its rows under `learning`."""
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
    """Return the document as format 2 has it: format 1 has no task, and keeps status and result elsewhere."""
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
