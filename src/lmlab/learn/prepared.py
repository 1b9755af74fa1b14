"""What a training starts from: its data, tokenizer, model, task and hardware, before anything is written."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lmlab.hardware.choice import Hardware
from lmlab.hardware.execution_plan import ExecutionPlan
from lmlab.interface import CountModel, Learner
from lmlab.learn.fit import count, learn
from lmlab.learn.next_token import NextToken
from lmlab.learn.pace import Speed
from lmlab.learn.planning import is_of_another_machine, keep_plan, plan_for
from lmlab.learn.record import Inputs, Model, Record, Training
from lmlab.learn.request import TrainingRequest
from lmlab.learn.run import Run
from lmlab.learn.run_files import create_run
from lmlab.learn.settings import TrainConfig
from lmlab.learn.task import Task
from lmlab.text.fingerprint import Fingerprint
from lmlab.text.stream import TokenStream
from lmlab.text.tokenizers import Tokenizer


class Data(Protocol):
    """What a model learns from: a corpus, or a table divided into parts."""

    @property
    def name(self) -> str:
        """What the data is called."""
        ...

    def spec(self) -> Mapping[str, Any]:
        """What the record of a run says of its data: enough to read it again.

        Returns:
            `name`; `text`, `valid`, `test`, `split` and `seed`, as `lmlab.train` takes them; and `parts`, which has the
            `sha256` of each part by its name; beside these, what the task needs.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Prepared(ABC):
    """Everything that training one model needs, made from a request by `lmlab.learn.prepare.prepare`."""

    request: TrainingRequest
    data: Data
    tokenizer: Tokenizer
    config: Any  # the resolved settings of the model
    training: Training  # for the record of the run: what was asked for and what was chosen
    learned_from: Sequence[Fingerprint] = ()  # of the texts that the weights are trained on

    @property
    @abstractmethod
    def task_name(self) -> str:
        """The name of the task in the record of the run."""

    @abstractmethod
    def learn(self) -> Run:
        """Train the model and save it in its run."""

    def _open_run(self) -> Run:
        """The run that is resumed, or a new one in the folder that the request names."""
        request = self.request
        if request.resumed is not None:
            return request.resumed
        assert request.out is not None, "this request only asks for a preparation"
        record = Record(
            task=self.task_name,
            inputs=Inputs(corpus=self.data.spec(), tokenizer=self.tokenizer.spec),
            model=Model(name=request.model, config=dataclasses.asdict(self.config)),
            training=self.training,
        )
        return create_run(request.out, record, self.tokenizer, self.learned_from)


@dataclass(frozen=True, kw_only=True)
class PreparedLearner(Prepared):
    """A model that the training loop teaches, with all that the loop takes."""

    model: Learner
    task: Task
    loop: TrainConfig
    hardware: Hardware
    speed: Speed | None = None  # for a budget of seconds: what was measured
    on_created: Callable[[Run], None] | None = None  # writes what else the folder of a new run must hold
    on_learned: Callable[[Run], None] | None = None  # writes what else the folder of a trained run must hold

    @property
    def task_name(self) -> str:
        """The name of the task in the record of the run."""
        return self.task.name

    @property
    def new_plan(self) -> ExecutionPlan:
        """A plan for steps that are taken here and now."""
        return plan_for(self.model, self.task, self.loop, self.hardware, self.speed)

    def learn(self) -> Run:
        """Train the model from its weights or its checkpoint, and save it."""
        run = self._open_run()
        if self.request.resumed is None or is_of_another_machine(self.training.plan, self.hardware):
            keep_plan(run, self.new_plan, self.request.watch)
        if self.on_created is not None and self.request.resumed is None:
            self.on_created(run)
        run = learn(run, self.model, self.task, self.loop, self.hardware, self.request.watch)
        if self.on_learned is not None and run.status != "unfinished":
            self.on_learned(run)
        return run


@dataclass(frozen=True, kw_only=True)
class PreparedCount(Prepared):
    """A model that is fitted by counting, with the tokens that it counts."""

    model: type[CountModel]
    stream: TokenStream

    @property
    def task_name(self) -> str:
        """The name of the task in the record of the run."""
        return NextToken.name

    def fit(self) -> CountModel:
        """Count the tokens and estimate the model."""
        return self.model.fit(self.config, self.tokenizer.vocabulary, self.stream)

    def learn(self) -> Run:
        """Count, and save the model."""
        return count(self._open_run(), self.fit, self.stream.tokens)
