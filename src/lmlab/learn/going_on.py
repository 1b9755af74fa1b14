"""Training that begins where another ended: a run that was stopped, one that gets more time, one that learns another text."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from lmlab.config import Budget, Mistake, an, make
from lmlab.hardware.choice import as_chosen, choose
from lmlab.interface import CountModel, TextLearner
from lmlab.learn.asked import Asked
from lmlab.learn.fit import count, fresh_model, hardware_for, learn, saying_what_is_kept, stream_folder, task_of
from lmlab.learn.onlookers import Watch, watching
from lmlab.learn.rebuilding import refuse_unknown_sizes
from lmlab.learn.record import Ancestor, Result
from lmlab.learn.run import Run, free_folder, load_run, opened, refuse_if_taken
from lmlab.learn.settings import refuse_windows, training_config
from lmlab.models.families.softmax import SoftmaxModel
from lmlab.models.registry import Way, kind_of, trainable_kind
from lmlab.text.corpus import Corpus, read
from lmlab.text.files_and_folders import Text
from lmlab.text.fingerprint import fingerprint_of
from lmlab.text.splitting import SplitBy
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import Tokenizer


def resume(
    run: Run | str | Path,
    *,
    budget: str | Budget | None = None,
    watch: Watch | None = None,
    progress: bool = False,
) -> Run:
    """Go on with an interrupted or killed run, or, with a budget on top, with any; else a finished one is returned as it is.

    budget: how much more, such as "+10m". A run that had not finished goes on as if its budget had been that much longer. A
    finished one begins again with its weights and a learning rate that rises and falls anew; they are kept if nothing is
    better by validation.
    With a budget of steps or tokens the weights come out as if it had never stopped, to the last bit.
    """
    run = opened(run)
    with run.alone(), saying_what_is_kept(run):
        return _resumed(load_run(run.folder), budget, watch, progress)


def _resumed(run: Run, budget: str | Budget | None, watch: Watch | None, progress: bool) -> Run:
    if budget is None and run.status != "unfinished":
        return run
    cls: Any = trainable_kind(run.record.model.name).load()
    if not issubclass(cls, CountModel):
        vocab_size = 0 if run.record.inputs.tokenizer is None else run.tokenizer.vocab_size
        refuse_unknown_sizes(run.folder, run.record, vocab_size)
    if not issubclass(cls, CountModel | TextLearner):
        if budget is not None:
            raise Mistake(
                f"{run.folder} is no language model; for more it is trained anew, without {{budget}}",
                code="more-of-no-language-model",
                budget=None,
            )
        goes_on: Run = importlib.import_module(str(kind_of(run.record.model.name).home)).resume(run, watch=watch)
        return goes_on
    if budget is not None:
        _extend(run, _more(budget))
    asked = run.record.training
    config = training_config(Budget.parse(asked.budget), asked.seed, asked.learning)
    stream = tokenize(run.corpus.train, run.tokenizer, stream_folder())
    config = replace(config, budget=config.budget.over(stream.tokens))
    settings: Any = make(cls.Config, run.record.model.config, cls.name)
    if issubclass(cls, CountModel):
        return count(run, cls, settings, run.tokenizer, stream)
    hardware = as_chosen(choose(asked.device, asked.precision), asked.chosen)
    if run.checkpoint.exists() or not asked.lineage:
        model = fresh_model(cls, settings, run.tokenizer, config.seed)
    else:
        model = _with_weights(
            cls, settings, run.tokenizer, source_of(run, asked.lineage[-1]), asked.lineage[-1].calibrated
        )
    task = task_of(model, run.tokenizer, run.corpus, stream, config, hardware)
    return learn(run, model, task, config, hardware, watching(watch, progress, cls.name))


def fine_tune(
    run: Run | str | Path,
    text: str | Path | Sequence[str | Path] | Corpus,
    *,
    out: str | Path | None = None,
    budget: str | Budget = "3m",
    split: Sequence[float] = (80, 10, 10),
    split_by: SplitBy = "auto",
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
) -> Run:
    """Train the model of a finished run on another text, from the weights it has; the new run is saved in `out`.

    model: another kind, which can begin with these weights: "classifier", with those of a `bert`. It learns from a table of
    texts with labels; `columns` are the names of the two, where the table leaves it open.
    The tokenizer and the settings are those of the run; `settings` may change what leaves every weight its place, such as
    dropout. The other arguments are those of `train`. Weights that validate worse than those it began with are not kept.
    """
    run = opened(run)
    out = free_folder(model or run.folder.resolve().name, text) if out is None else Path(out)
    name, tokenizer = run.record.model.name, run.tokenizer
    asked = Asked(
        out=out, budget=Budget.parse(budget), split=split, split_by=split_by, valid=valid, test=test,
        seed=seed, settings=settings or {}, learning=learning or {}, device=device, precision=precision,
        watch=watching(watch, progress, model or name),
        columns=columns, begin=run,
    )  # fmt: skip
    if model not in (None, name):
        kind = kind_of(str(model))
        if kind.begins_with != name or kind.home is None:
            raise Mistake(
                f"{run.folder} is a run of {name}, and {an(model)} cannot begin with its weights",
                code="weights-of-another-kind",
            )
        refuse_windows(kind.name, asked.learning)
        begins: Callable[[str, Any, Asked], Run] = importlib.import_module(kind.home).train
        return begins(str(model), text, asked)
    if columns is not None:
        raise Mistake(
            f"{{columns}} are of a table of labelled texts, which {an(name)} does not read",
            code="columns-without-table",
            columns=None,
        )
    cls: Any = trainable_kind(name).load()
    if not issubclass(cls, CountModel | TextLearner):
        raise Mistake(
            f"{run.folder} holds {an(name)}, whose weights cannot be begun with; train a new {name} on the new data",
            code="weights-cannot-begin",
        )
    if kind_of(name).way is Way.COUNTS:
        raise Mistake(
            f"{run.folder} holds {an(name)}, which counts; count both texts together instead", code="weights-of-counts"
        )
    if run.status == "unfinished":
        raise Mistake(f"{run.folder} is unfinished; finish it first: {run.how_to_go_on}", code="run-unfinished")
    wanted: Any = make(cls.Config, {**run.record.model.config, **asked.settings}, name)
    config = asked.config
    hardware = hardware_for(config, device, precision)
    refuse_if_taken(out)
    corpus = text if isinstance(text, Corpus) else read(text, **asked.division)
    stream = tokenize(corpus.train, tokenizer, stream_folder())
    config = replace(config, budget=asked.budget.over(stream.tokens))
    learner = _with_weights(cls, wanted, tokenizer, run, run.record.result.calibrated)
    task = task_of(learner, tokenizer, corpus, stream, config, hardware)
    training = asked.training(asked.budget, chosen=hardware.chosen, lineage=lineage_from(run))
    texts = [fingerprint_of(corpus.train), *run.learned_from]
    new = asked.new_run(task.name, name, wanted, corpus.spec(), tokenizer, training, texts)
    return learn(new, learner, task, config, hardware, asked.watch)


def _more(budget: str | Budget) -> Budget:
    if isinstance(budget, Budget):
        return budget
    if not (isinstance(budget, str) and budget.startswith("+")):
        raise Mistake(
            "a run that goes on takes more of a {budget}, written with a plus", code="more-without-plus", budget="+10m"
        )
    return Budget.parse(budget[1:])


def _extend(run: Run, more: Budget) -> None:
    """Write down that a run goes on for longer. Until the first checkpoint its weights are those it had."""
    record, asked = run.record, run.record.training
    if kind_of(record.model.name).way is Way.COUNTS:
        raise Mistake(
            f"{run.folder} holds {an(record.model.name)}, which counts: more time changes nothing",
            code="more-of-counts",
        )
    if run.status == "unfinished":
        asked = replace(asked, budget=str(_sum(Budget.parse(asked.budget), more)))
    else:
        _ = run.saved  # its weights are there and whole, or nothing is changed
        run.checkpoint.unlink(missing_ok=True)  # a kill in the last moment of finishing leaves one
        asked = replace(asked, budget=str(more), planned=None, lineage=(*asked.lineage, _ancestor(run, None)))
    run.record = replace(record, training=asked, result=Result())
    run.write_record()


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


def lineage_from(run: Run) -> tuple[Ancestor, ...]:
    """What the weights of a run went through, for another that begins with them."""
    return (*run.record.training.lineage, _ancestor(run, str(run.folder.resolve())))


def _ancestor(run: Run, folder: str | None) -> Ancestor:
    """A run as one whose weights another begins with. folder: None: it is the same run."""
    record = run.record
    assert record.model.sha256 is not None
    return Ancestor(
        run=folder,
        sha256=record.model.sha256,
        corpus=record.inputs.corpus["name"],
        train_sha256=record.inputs.corpus["parts"]["train"]["sha256"],
        budget=record.training.budget,
        steps=record.result.steps or 0,
        tokens=record.result.tokens,
        seconds=record.result.seconds,
        calibrated=record.result.calibrated,
    )


def source_of(run: Run, ancestor: Ancestor) -> Run:
    """The run that holds the weights to begin with; a Mistake if they are no longer those that were meant."""
    source = run if ancestor.run is None else load_run(ancestor.run)
    if source.record.model.sha256 != ancestor.sha256:
        raise Mistake(
            f"{source.folder} no longer holds the weights that {run.folder} began with; train again",
            code="first-weights-changed",
        )
    return source


def _with_weights(
    cls: type[TextLearner], settings: Any, tokenizer: Tokenizer, source: Run, calibrated: float | None
) -> TextLearner:
    """A model of its own with the weights of a run, as they were learned: what comes is validated before it is calibrated."""
    try:
        model = cls.from_tensors(settings, tokenizer.vocab_size, source.saved.tensors())
    except (Mistake, RuntimeError):
        raise Mistake(
            f"these {{settings}} do not fit the weights of {source.folder}; change only what leaves every weight its place",
            code="settings-change-weights",
            settings=None,
        ) from None
    if calibrated is not None:
        assert isinstance(model, SoftmaxModel)
        model.multiply_logits(1 / calibrated)
    return model
