"""A training request: one frozen record of the user's arguments, which every task reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmlab.config import Budget, Mistake, make
from lmlab.hardware.choice import Hardware, as_asked, choose, choose_device
from lmlab.learn.fit import hardware_for
from lmlab.learn.onlookers import Silent, Watch
from lmlab.learn.pace import Timings
from lmlab.learn.planning import hardware_of_plan, loop_of_plan
from lmlab.learn.record import Training
from lmlab.learn.run import Run
from lmlab.learn.run_files import refuse_if_taken
from lmlab.learn.settings import TrainConfig, refuse_windows, training_config
from lmlab.learn.world import SINGLE_PROCESS, World
from lmlab.models.registry import model_class
from lmlab.text.files_and_folders import Text
from lmlab.text.splitting import SplitBy
from lmlab.text.tokenizers import Tokenizer


@dataclass(frozen=True, kw_only=True)
class TrainingRequest:
    """A request to train one model: the arguments of `lmlab.train`, or the record of a run that is resumed.

    `lmlab.learn.prepare.prepare` turns a request into a prepared training.
    """

    model: str  # kind of model
    data: Any  # text or table as the user named it, or a corpus; None for a resumed run
    budget: Budget
    split: Sequence[float] = (80, 10, 10)
    split_by: SplitBy = "auto"
    documents: str = "auto"
    valid: Text | None = None
    test: Text | None = None
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)  # settings of the model
    learning: Mapping[str, Any] = field(default_factory=dict)  # settings of the training loop
    device: str = "auto"
    precision: str = "auto"
    tokenizer: str | Tokenizer | None = None
    columns: Sequence[str] | None = None  # columns of a table
    out: Path | None = None  # folder of the new run; None: prepare only
    begin: Run | None = None  # finished run whose weights, settings and tokenizer the new run starts from
    resumed: Run | None = None  # run to resume; the choices made at its start are used again
    until: float = 1.0  # share of the budget after which training pauses
    timings: Timings | None = None  # timings of steps on this machine, shared by several requests
    watch: Watch = field(default_factory=Silent)
    world: World = SINGLE_PROCESS  # the processes that train the model together

    @classmethod
    def to_resume(cls, run: Run, watch: Watch, world: World = SINGLE_PROCESS, until: float = 1.0) -> TrainingRequest:
        """Return the request that resumes a run as recorded."""
        training = run.record.training
        return cls(
            model=run.record.model.name,
            data=None,
            budget=Budget.parse(training.budget),
            seed=training.seed,
            settings=run.record.model.config,
            learning=training.learning,
            device=training.device,
            precision=training.precision,
            resumed=run,
            until=until,
            watch=watch,
            world=world,
        )

    @property
    def is_new(self) -> bool:
        """Whether the model is new: its sizes are not chosen yet, and its initial weights are random."""
        return self.begin is None and self.resumed is None

    @property
    def model_class(self) -> Any:
        """The class of the model."""
        return model_class(self.model)

    @property
    def model_config(self) -> Any:
        """The settings of the model as its Config; settings that the request leaves open are None."""
        return make(self.model_class.Config, self.settings, self.model)

    @property
    def loop(self) -> TrainConfig:
        """The settings of the training loop."""
        asked = training_config(self.budget, self.seed, self.learning)
        if self.resumed is None:
            return asked
        # One that began in one process began with whole batches.
        whole = dataclasses.replace(asked, micro_batches=asked.micro_batches or 1)
        return loop_of_plan(whole, self.resumed.record.training.plan)

    def hardware(self, stepping: str | None = None) -> Hardware:
        """Choose the device, precision and thread count of the run. A run that is resumed on its machine keeps those of its
        plan.

        Args:
            stepping: the stepping mode, if the task supports only one.
        """
        found = self.world.decided(lambda: self._hardware(stepping))
        return found if self.world.is_writer else dataclasses.replace(found, device=choose_device(self.device))

    def _hardware(self, stepping: str | None) -> Hardware:
        plan = None if self.resumed is None else self.resumed.record.training.plan
        if self.resumed is not None and plan is None:  # a record of an older format
            return choose(self.device, self.precision)
        if plan is not None:
            return hardware_of_plan(plan, self.device, self.precision)
        found = hardware_for(self.loop, self.device, self.precision)
        return found if stepping is None else as_asked(found, stepping)

    @property
    def text_division(self) -> dict[str, Any]:
        """The division of a plain text into parts, as arguments of `lmlab.text.corpus.read`."""
        return {**self._parts, "split_by": self.split_by}

    def refuse_documents(self) -> None:
        """Raise a Mistake if the text is to be divided into documents but the task does not predict ends."""
        if self.documents not in ("auto", "none"):
            raise Mistake(
                f"{{documents}} divides a text for language models, and {self.model} is none; leave it out",
                code="documents-without-language-model",
                documents=None,
            )

    @property
    def table_division(self) -> dict[str, Any]:
        """The division of the rows of a table into parts. Raises a Mistake if `split_by` is set."""
        self.refuse_documents()
        if self.split_by != "auto":
            raise Mistake(
                "{split_by} divides plain text; the rows of a table are drawn; leave it out",
                code="split-by-of-a-table",
                split_by=None,
            )
        return self._parts

    @property
    def _parts(self) -> dict[str, Any]:
        return {"valid": self.valid, "test": self.test, "split": self.split, "seed": self.seed}

    @property
    def tokenizer_spec(self) -> str | None:
        """The kind of tokenizer, for a task that trains its own. Raises a Mistake if a tokenizer object was given."""
        if isinstance(self.tokenizer, Tokenizer):
            raise Mistake(
                f"{self.model} makes a {{tokenizer}} of its own; say which kind, such as words",
                code="tokenizer-of-a-model-of-its-own",
                tokenizer=None,
            )
        return self.tokenizer

    def refuse_columns(self) -> None:
        """Raise a Mistake if columns of a table are named but the model does not read tables."""
        if self.columns is not None:
            raise Mistake(
                f"{{columns}} are of a table, which {self.model} does not read",
                code="columns-without-table",
                columns=None,
            )

    def refuse_windows(self) -> None:
        """Raise a Mistake if a window length is set but the model reads no windows."""
        refuse_windows(self.model, self.learning)

    def refuse_taken_folder(self) -> None:
        """Raise a Mistake if the folder of the new run is not empty."""
        if self.out is not None and self.world.is_writer:
            refuse_if_taken(self.out)

    def training(self, budget: Budget, **chosen: Any) -> Training:
        """Return the training section of the run record.

        Args:
            budget: the budget of the run.
            chosen: fields of `Training` that were decided while the run was prepared.
        """
        if self.resumed is not None:
            return self.resumed.record.training
        asked = Training(
            budget=str(budget),
            seed=self.seed,
            device=self.device,
            precision=self.precision,
            learning=dict(self.learning),
        )
        return dataclasses.replace(asked, **chosen)
