"""Training that continues: `resume` continues a run, `fine_tune` starts a new run from its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from lmlab.config import Budget, Mistake, an
from lmlab.hardware.execution_plan import ExecutionPlan
from lmlab.learn.fit import explain_interrupt
from lmlab.learn.lineage import ancestor_of
from lmlab.learn.metrics_log import Log, with_logs
from lmlab.learn.micro_batches import one_for_each_process
from lmlab.learn.onlookers import Watch, watching
from lmlab.learn.prepare import prepare, reads_plain_text
from lmlab.learn.rebuilding import refuse_unknown_sizes
from lmlab.learn.record import Result
from lmlab.learn.request import TrainingRequest
from lmlab.learn.run import Run, load_run, opened
from lmlab.learn.run_advice import how_to_resume
from lmlab.learn.run_files import free_folder, write_record
from lmlab.learn.world import SINGLE_PROCESS, World
from lmlab.models.registry import Kind, Way, kind_of, trainable_kind
from lmlab.text.corpus import Corpus
from lmlab.text.files_and_folders import Text
from lmlab.text.splitting import SplitBy


def resume(
    run: Run | str | Path,
    *,
    budget: str | Budget | None = None,
    watch: Watch | None = None,
    progress: bool = False,
    log: Log | Sequence[Log] | None = None,
    tensorboard: str | Path | None = None,
    world: World = SINGLE_PROCESS,
    until: float = 1.0,
) -> Run:
    """Continue a run that was stopped or killed, or extend any run. A finished run without more budget is returned as it is.

    With a budget of steps or tokens, the weights are bit-identical to those of an uninterrupted run.

    Args:
        run: the run, or its folder.
        budget: the additional budget, such as "+10m". An unfinished run continues as if its budget had been that much longer.
            A finished run trains again from its weights, and its learning rate rises and falls again. The old weights are kept
            if no later ones validate better.
        watch: the progress display.
        progress: print progress to stderr if there is no `watch`.
        log: as for `train`.
        tensorboard: as for `train`.
        world: the processes that train the run together, whatever their number was before. Each calls this function.
        until: the share of the whole budget after which the run pauses again.
    """
    run = opened(run)
    shown = watching(watch, progress, run.record.model.name, world)
    watch = with_logs(shown, log, tensorboard if world.is_writer else None)
    with run.alone(world), explain_interrupt(run):
        return _resumed(load_run(run.folder), budget, watch, world, until)


def _resumed(run: Run, budget: str | Budget | None, watch: Watch, world: World, until: float) -> Run:
    run.record = world.broadcast(run.record)
    if budget is None and run.status != "unfinished":
        return run
    kind = trainable_kind(run.record.model.name)
    if kind.way is Way.LEARNS:
        refuse_unknown_sizes(run)
    if budget is not None:
        if not reads_plain_text(kind):
            raise Mistake(
                f"{run.folder} is no language model; for more it is trained anew, without {{budget}}",
                code="more-of-no-language-model",
                budget=None,
            )
        if world.is_writer:
            _extend(run, _more(budget))
        run.record = world.broadcast(run.record)
    return prepare(TrainingRequest.to_resume(run, watch, world, until)).learn()


def fine_tune(
    run: Run | str | Path,
    text: str | Path | Sequence[str | Path] | Corpus,
    *,
    out: str | Path | None = None,
    budget: str | Budget = "3m",
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
    model: str | None = None,
    columns: Sequence[str] | None = None,
    watch: Watch | None = None,
    progress: bool = False,
    log: Log | Sequence[Log] | None = None,
    tensorboard: str | Path | None = None,
    world: World = SINGLE_PROCESS,
) -> Run:
    """Train the model of a finished run on another text, starting from its weights; the new run is saved in `out`.

    If no later weights validate better, the initial weights are kept. The tokenizer and the settings are those of the run.

    Args:
        run: the run, or its folder.
        text: the text or table to train on.
        settings: settings to change. They must leave the shapes of all weights unchanged, as dropout does.
        model: another kind of model that can start from these weights: "classifier" for those of a `bert`. It is trained on a
            table of texts with labels.
        columns: the columns of the table to use, if they are ambiguous.

    The other arguments are those of `train`.
    """
    run = opened(run)
    name = model or run.record.model.name
    _refuse_as_a_beginning(run, kind_of(name))
    called = model or run.folder.resolve().name
    request = TrainingRequest(
        model=name,
        data=text,
        out=world.decided(lambda: free_folder(called, text)) if out is None else Path(out),
        budget=Budget.parse(budget),
        split=split,
        split_by=split_by,
        documents=documents,
        valid=valid,
        test=test,
        seed=seed,
        settings=settings or {},
        learning=one_for_each_process(learning, world),
        device=device,
        precision=precision,
        columns=columns,
        begin=run,
        watch=with_logs(watching(watch, progress, name, world), log, tensorboard if world.is_writer else None),
        world=world,
    )
    return prepare(request).learn()


def _refuse_as_a_beginning(run: Run, kind: Kind) -> None:
    """Raise a Mistake if a model of this kind cannot start from the weights of this run."""
    name = run.record.model.name
    if kind.name != name and kind.begins_with != name:
        raise Mistake(
            f"{run.folder} is a run of {name}, and {an(kind.name)} cannot begin with its weights",
            code="weights-of-another-kind",
        )
    if kind.name == name and not reads_plain_text(trainable_kind(name)):
        raise Mistake(
            f"{run.folder} holds {an(name)}, whose weights cannot be begun with; train a new {name} on the new data",
            code="weights-cannot-begin",
        )
    if kind.way is Way.COUNTS:
        raise Mistake(
            f"{run.folder} holds {an(name)}, which counts; count both texts together instead", code="weights-of-counts"
        )
    if run.status == "unfinished":
        raise Mistake(
            f"{run.folder} is unfinished; finish it first: {how_to_resume(run.folder)}", code="run-unfinished"
        )


def _more(budget: str | Budget) -> Budget:
    if isinstance(budget, Budget):
        return budget
    if not (isinstance(budget, str) and budget.startswith("+")):
        raise Mistake(
            "a run that goes on takes more of a {budget}, written with a plus", code="more-without-plus", budget="+10m"
        )
    return Budget.parse(budget[1:])


def _extend(run: Run, more: Budget) -> None:
    """Write a longer budget into the record of a run. Until the first new checkpoint, its weights stay those it has."""
    record, asked = run.record, run.record.training
    if kind_of(record.model.name).way is Way.COUNTS:
        raise Mistake(
            f"{run.folder} holds {an(record.model.name)}, which counts: more time changes nothing",
            code="more-of-counts",
        )
    if run.status == "unfinished":
        asked = replace(asked, budget=str(_sum(Budget.parse(asked.budget), more)))
    else:
        _ = run.saved  # raises before any change if the weights are missing or damaged
        run.checkpoint.unlink(missing_ok=True)  # a kill while the run finished can leave one
        asked = replace(
            asked, budget=str(more), plan=_of_more(asked.plan), lineage=(*asked.lineage, ancestor_of(run, None))
        )
    run.record = replace(record, training=asked, result=Result())
    write_record(run)


def _of_more(plan: ExecutionPlan | None) -> ExecutionPlan | None:
    """Return the plan of a run whose budget starts again. No part of the new budget was spent on planning."""
    return None if plan is None else replace(plan, planning_s=0.0, tokens=None)


def _sum(first: Budget, more: Budget) -> Budget:
    values = {name: (value, asdict(more)[name]) for name, value in asdict(first).items() if value is not None}
    (name, (have, add)) = next(iter(values.items()))
    if add is None:
        raise Mistake(
            f"this run has not finished its budget of {first}; give it more {name}",
            code="more-of-unfinished",
            budget=None,
        )
    return Budget(**{name: have + add})
