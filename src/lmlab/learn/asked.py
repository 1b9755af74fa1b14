"""What is asked of a training, whatever is learned: `train` and `fine_tune` write it down once, and every task reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lmlab.config import Budget, Mistake
from lmlab.learn.onlookers import Watch
from lmlab.learn.record import Inputs, Model, Record, Training
from lmlab.learn.run import Run, create_run
from lmlab.learn.settings import TrainConfig, training_config
from lmlab.text.files_and_folders import Text
from lmlab.text.fingerprint import Fingerprint
from lmlab.text.splitting import SplitBy
from lmlab.text.tokenizers import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The arguments of `lmlab.train`; None where nothing was said."""

    out: Path
    budget: Budget
    split: Sequence[float]
    split_by: SplitBy
    valid: Text | None
    test: Text | None
    seed: int
    settings: Mapping[str, Any]
    learning: Mapping[str, Any]
    device: str
    precision: str
    watch: Watch
    tokenizer: str | None = None
    columns: Sequence[str] | None = None
    begin: Run | None = None  # with whose weights, settings and tokenizer it begins

    @property
    def division(self) -> dict[str, Any]:
        """How a plain text is divided, for `lmlab.text.corpus.read`."""
        return {**self._parts, "split_by": self.split_by}

    @property
    def division_of_rows(self) -> dict[str, Any]:
        """How the rows of a table are divided."""
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
    def config(self) -> TrainConfig:
        """Of the training loop."""
        return training_config(self.budget, self.seed, self.learning)

    def training(self, budget: Budget, **known: Any) -> Training:
        """For the record of the run, with what has been decided meanwhile. budget: the one it keeps to."""
        said = {"seed": self.seed, "device": self.device, "precision": self.precision, "learning": dict(self.learning)}
        return Training(**{"budget": str(budget), **said, **known})

    def new_run(
        self,
        task: str,
        model: str,
        config: Any,
        corpus: Mapping[str, Any],
        tokenizer: Tokenizer,
        training: Training,
        learned_from: Sequence[Fingerprint] = (),
    ) -> Run:
        """The run, before it has learned anything. config: of the model; corpus: what is learned, as a record has it."""
        inputs = Inputs(corpus=corpus, tokenizer=tokenizer.spec)
        about = Model(name=model, config=asdict(config))
        record = Record(task=task, inputs=inputs, model=about, training=training)
        return create_run(self.out, record, tokenizer, learned_from)
