"""`lmlab.train`: the training of a model on a text or a table, saved as a run on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmlab.config import Budget, with_our_names
from lmlab.learn.metrics_log import Log, with_logs
from lmlab.learn.micro_batches import one_for_each_process
from lmlab.learn.onlookers import Watch, watching
from lmlab.learn.pace import Timings
from lmlab.learn.prepare import prepare
from lmlab.learn.request import TrainingRequest
from lmlab.learn.run import Run
from lmlab.learn.run_files import free_folder
from lmlab.learn.settings import TrainConfig, checked_until, refuse_if_it_counts
from lmlab.learn.world import SINGLE_PROCESS, World
from lmlab.models.registry import AnyModel, name_of, our_name, trainable_kind
from lmlab.text.corpus import Corpus
from lmlab.text.files_and_folders import Text
from lmlab.text.splitting import SplitBy
from lmlab.text.tokenizers import Tokenizer, parse_spec


def train(
    model: AnyModel,
    text: str | Path | Sequence[str | Path] | Corpus | None = None,
    *,
    out: str | Path | None = None,
    tokenizer: str | Tokenizer | None = None,
    budget: str | float | Budget = "3m",
    split: Sequence[float] = (80, 10, 10),
    split_by: SplitBy = "auto",
    documents: str = "auto",
    valid: Text | None = None,
    test: Text | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    learning: Mapping[str, Any] | None = None,
    device: str = "auto",
    precision: str = "auto",
    columns: Sequence[str] | None = None,
    timings: Timings | None = None,
    watch: Watch | None = None,
    progress: bool = False,
    log: Log | Sequence[Log] | None = None,
    tensorboard: str | Path | None = None,
    world: World = SINGLE_PROCESS,
    until: float = 1.0,
) -> Run:
    """Train `model` on `text` and save it in the new folder `out`; by default a free folder named runs/MODEL-TEXT.

    A classifier is trained on a table of texts with labels, a translator on a table of languages. Incompatible settings are
    refused before anything is written. An interrupted run has status "unfinished": `resume` it.

    Args:
        model: the kind of model; a class of your own, or a function that makes it, may be given itself.
        text: the text or table. Default: the data of the kind of model, such as "sotu".
        out: the folder of the new run.
        tokenizer: the tokenizer or its kind. Default: characters for a language model, and what suits other models.
        budget: seconds, steps or tokens of training, such as "3m".
        documents: how the text is divided into documents whose end is predicted: "lines", "blank", "jsonl:FIELD", "files",
            "none", or "auto": as the text plainly consists of documents.
        settings: settings of the model (its Config).
        learning: settings of the training loop (TrainConfig without budget and seed).
        columns: the columns of a table to use, if they are ambiguous.
        timings: recent timings of steps on this machine, which several trainings share.
        watch: the progress display.
        progress: print progress to stderr if there is no `watch`.
        log: a function, or several, called with each line of metrics as it is written: a dict of step, seconds and losses.
        tensorboard: a folder for an event file, which TensorBoard reads while the training runs.
        world: the processes that train the model together. Each calls this function with the same arguments.
        until: the share of the budget after which training pauses, such as 0.25. `resume` goes on with it; sizes and schedule
            are those of the whole budget.

    Returns:
        The run, with its model in memory.
    """
    model = our_name(name_of(model))
    kind = trainable_kind(model)
    refuse_if_it_counts(model, learning=learning)
    settings = with_our_names(kind.load().Config, settings or {})
    learning = with_our_names(TrainConfig, learning or {})
    text = kind.data if text is None else text
    if isinstance(tokenizer, str):
        parse_spec(tokenizer)  # a wrong name is refused before the text is read
    request = TrainingRequest(
        model=model,
        data=text,
        out=world.decided(lambda: free_folder(model, text)) if out is None else Path(out),
        budget=Budget.parse(budget),
        split=split,
        split_by=split_by,
        documents=documents,
        valid=valid,
        test=test,
        seed=seed,
        settings=settings,
        learning=one_for_each_process(learning, world),
        device=device,
        precision=precision,
        tokenizer=tokenizer,
        columns=columns,
        timings=timings,
        watch=with_logs(watching(watch, progress, model, world), log, tensorboard if world.is_writer else None),
        world=world,
        until=checked_until(until),
    )
    return prepare(request).learn()
