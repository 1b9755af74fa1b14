"""Prepared training runs: data, tokenizer, model, task and hardware, before anything is written to disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lmlab.config import Mistake, recorded
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
from lmlab.learn.world import World
from lmlab.text.fingerprint import Fingerprint
from lmlab.text.stream import TokenStream
from lmlab.text.tokenizers import Tokenizer


class Data(Protocol):
    """The training data of a model: a corpus, or a table that is divided into parts."""

    @property
    def name(self) -> str:
        """The name of the data."""
        ...

    def spec(self) -> Mapping[str, Any]:
        """Return a description of the data for the run record, from which the data can be read again.

        Returns:
            `name`; `text`, `valid`, `test`, `split` and `seed`, which are arguments of `lmlab.train`; `parts`, which maps each
            part to its `sha256` and its size in `bytes`; and further keys of the task.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Prepared(ABC):
    """A training run that is ready to start, made from a request by `lmlab.learn.prepare.prepare`."""

    request: TrainingRequest
    data: Data
    tokenizer: Tokenizer
    config: Any  # the resolved settings of the model
    training: Training  # the requested and chosen values for the run record
    learned_from: Sequence[Fingerprint] = ()  # fingerprints of the texts that the weights are trained on

    @property
    def world(self) -> World:
        """The processes that train the model together."""
        return self.request.world

    @property
    @abstractmethod
    def task_name(self) -> str:
        """The name of the task in the record of the run."""

    @abstractmethod
    def learn(self) -> Run:
        """Train the model and save it in its run."""

    def _open_run(self) -> Run:
        """Return the resumed run, or create a new one in the folder of the request."""
        request = self.request
        if request.resumed is not None:
            return request.resumed
        assert request.out is not None, "this request only asks for a preparation"
        record = Record(
            task=self.task_name,
            inputs=Inputs(corpus=self.data.spec(), tokenizer=self.tokenizer.spec),
            model=Model(name=request.model, config=recorded(self.config)),
            training=self.training,
        )
        return create_run(request.out, record, self.tokenizer, self.learned_from, self.world)


@dataclass(frozen=True, kw_only=True)
class PreparedLearner(Prepared):
    """A prepared model that is trained by the training loop, with all arguments of the loop."""

    model: Learner
    task: Task
    loop: TrainConfig
    hardware: Hardware
    speed: Speed | None = None  # the measured speed, for a budget of seconds
    on_created: Callable[[Run], None] | None = None  # writes further files of a new run
    on_learned: Callable[[Run], None] | None = None  # writes further files of a trained run

    @property
    def task_name(self) -> str:
        """The name of the task in the record of the run."""
        return self.task.name

    @property
    def new_plan(self) -> ExecutionPlan:
        """The execution plan for training on this machine under its present load."""
        return plan_for(self.model, self.task, self.loop, self.hardware, self.speed)

    def learn(self) -> Run:
        """Train the model from its initial weights or its checkpoint, and save it."""
        world, watch = self.world, self.request.watch
        self._refuse_other_data()
        run = self._open_run()
        run.record = world.broadcast(run.record)
        if self.request.resumed is None or is_of_another_machine(run.record.training.plan, self.hardware):
            keep_plan(run, world.decided(lambda: self.new_plan), watch, world)
        if self.on_created is not None and self.request.resumed is None and world.is_writer:
            self.on_created(run)
        run = learn(
            run, self.model, self.task, world.broadcast(self.loop), self.hardware, watch, world, self.request.until
        )
        if self.on_learned is not None and run.status != "unfinished" and world.is_writer:
            self.on_learned(run)
        return run

    def _refuse_other_data(self) -> None:
        """Raise a Mistake if this process has read other data than the writer."""
        if self.world.size == 1:
            return
        hashes = {name: part["sha256"] for name, part in self.data.spec()["parts"].items()}
        if self.world.broadcast(hashes) != hashes:
            raise Mistake(
                f"process {self.world.rank} reads other data than process 0; give every process the same files",
                code="processes-read-other-data",
            )


@dataclass(frozen=True, kw_only=True)
class PreparedCount(Prepared):
    """A prepared model that is fitted by counting, with the tokens to count."""

    model: type[CountModel]
    stream: TokenStream

    @property
    def task_name(self) -> str:
        """The name of the task in the record of the run."""
        return NextToken.name

    def fit(self) -> CountModel:
        """Count the tokens and return the estimated model."""
        model = self.model.fit(self.config, self.tokenizer.vocabulary, self.stream)
        model.end_id = self.tokenizer.end_id
        return model

    def learn(self) -> Run:
        """Count the tokens and save the estimated model."""
        return count(self._open_run(), self.fit, self.stream.tokens)
