"""From a text to a trained model: read, tokenise, fit or learn, save."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lmlab.config import Budget, Mistake, TextFacts, make
from lmlab.hardware.choice import Hardware
from lmlab.interface import CountModel, Learner, TextLearner
from lmlab.learn.asked import Asked
from lmlab.learn.choose_size import sized
from lmlab.learn.fit import count, fresh_model, hardware_for, learn, stream_folder, task_class, task_of
from lmlab.learn.next_token import VALIDATION_TOKENS, NextToken
from lmlab.learn.onlookers import Watch, watching
from lmlab.learn.pace import Plan, Timings
from lmlab.learn.run import Run, free_folder, refuse_if_taken
from lmlab.learn.settings import TrainConfig, refuse_if_it_counts, refuse_windows
from lmlab.learn.task import Task
from lmlab.models.registry import Role, kind_of, trainable_kind
from lmlab.text.corpus import Corpus, read
from lmlab.text.files_and_folders import Text
from lmlab.text.fingerprint import fingerprint_of
from lmlab.text.splitting import SplitBy
from lmlab.text.stream import TokenStream, tokenize
from lmlab.text.tokenizers import Tokenizer, parse_spec, train_tokenizer


def train(
    model: str,
    text: str | Path | Sequence[str | Path] | Corpus | None = None,
    *,
    out: str | Path | None = None,
    tokenizer: str | Tokenizer | None = None,
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
    columns: Sequence[str] | None = None,
    timings: Timings | None = None,
    watch: Watch | None = None,
    progress: bool = False,
) -> Run:
    """Train `model` on `text` and save it in the new folder `out`; where none is named, in a free one, runs/MODEL-TEXT.

    Without a text it learns what its kind learns by itself, such as "sotu". A classifier learns from a table of texts with
    labels, a translator from one of languages; `columns` names those that are meant, where the table leaves it open.
    tokenizer: None: characters for a language model, and for others what suits them.
    settings: of the model (its Config); learning: of the training loop (TrainConfig, budget and seed apart).
    timings: what was timed before, on this machine and a moment ago; several trainings in a row share it.
    progress: say on stderr how far it is; watch: whoever else wants to know, instead.
    The returned run's `model` is in memory. A run that was interrupted has status "unfinished": `resume` it.
    Settings that do not go together are refused before anything is written.
    """
    watch = watching(watch, progress, model)
    cls: Any = trainable_kind(model).load()
    refuse_if_it_counts(model, learning=learning)
    text = kind_of(model).data if text is None else text
    out = free_folder(model, text) if out is None else Path(out)
    if isinstance(tokenizer, str):
        parse_spec(tokenizer)  # a slip is answered before the text is read
    asked = Asked(
        out=out, budget=Budget.parse(budget), split=split, split_by=split_by, valid=valid, test=test,
        seed=seed, settings=settings or {}, learning=learning or {}, device=device, precision=precision,
        watch=watch, columns=columns,
        tokenizer=None if isinstance(tokenizer, Tokenizer) else tokenizer,
    )  # fmt: skip
    if not issubclass(cls, CountModel | TextLearner):
        if isinstance(tokenizer, Tokenizer):
            raise Mistake(
                f"{model} makes a {{tokenizer}} of its own; say which kind, such as words",
                code="tokenizer-of-a-model-of-its-own",
                tokenizer=None,
            )
        return _elsewhere(model, text, asked)
    if columns is not None:
        raise Mistake(
            "{columns} are of a table of labelled texts; a language model reads plain text",
            code="columns-of-plain-text",
            columns=None,
        )
    config: Any = make(cls.Config, asked.settings, model)
    train_config = asked.config
    hardware = hardware_for(train_config, device, precision)
    refuse_if_taken(out)
    corpus = text if isinstance(text, Corpus) else read(text, **asked.division)
    if not corpus.train.bytes:
        raise Mistake(
            f"{corpus.name} has no training part; give it a share above 0 in {{split}}",
            code="no-training-part",
            split=None,
        )
    with ThreadPoolExecutor(1) as beside:  # NumPy leaves the other core free while it works
        fingerprint = beside.submit(fingerprint_of, corpus.train)
        tokens = tokenizer_for(cls, tokenizer, corpus)
        stream = tokenize(corpus.train, tokens, stream_folder())
    train_config = dataclasses.replace(train_config, budget=asked.budget.over(stream.tokens))
    training = asked.training(asked.budget)

    def create() -> Run:
        task = task_class(cls).name if issubclass(cls, TextLearner) else NextToken.name
        return asked.new_run(task, model, config, corpus.spec(), tokens, training, [fingerprint.result()])

    if issubclass(cls, CountModel):
        return count(create(), cls, config, tokens, stream)
    looked_at = train_config.validations * min(VALIDATION_TOKENS, corpus.valid.bytes)
    config, plan = sized_on_text(cls, config, tokens, stream, train_config, hardware, timings, looked_at)
    training = dataclasses.replace(training, chosen=hardware.chosen, planned=plan)
    fresh = fresh_model(cls, config, tokens, seed)
    if plan is not None:
        hardware = dataclasses.replace(hardware, now=plan.threads)
        if plan.rows < 1:  # then as if it had been asked for: whoever goes on with the run or repeats it takes the same
            train_config = with_rows(train_config, fresh, hardware, plan.rows)
            training = dataclasses.replace(training, learning={**training.learning, "rows": train_config.rows})
    task = task_of(fresh, tokens, corpus, stream, train_config, hardware)
    return learn(create(), fresh, task, train_config, hardware, watch)


def _elsewhere(model: str, data: Any, asked: Asked) -> Run:
    """A model of another task, trained by its home."""
    if asked.columns is not None and kind_of(model).role not in (Role.CLASSIFIER, Role.TRANSLATOR):
        raise Mistake(
            f"{{columns}} are of a table, which {model} does not read", code="columns-without-table", columns=None
        )
    refuse_windows(model, asked.learning)
    trains: Callable[[str, Any, Asked], Run] = importlib.import_module(str(kind_of(model).home)).train
    return trains(model, data, asked)


def tokenizer_for(cls: type[CountModel | TextLearner], asked: str | Tokenizer | None, corpus: Corpus) -> Tokenizer:
    """The one that is asked for, or what a kind of model usually reads, made for this text."""
    if isinstance(asked, Tokenizer):
        return asked
    usual = cls.usual_tokenizer(corpus.train.bytes) if issubclass(cls, TextLearner) else "char"
    return train_tokenizer(usual if asked is None else asked, corpus.train.pieces(), at_most=asked is None)


def sized_on_text(
    cls: type[TextLearner],
    config: Any,
    tokenizer: Tokenizer,
    stream: TokenStream,
    train_config: TrainConfig,
    hardware: Hardware,
    timings: Timings | None = None,
    validation_tokens: int = 0,
) -> tuple[Any, Plan | None]:
    """The config made whole for this text and budget on this machine; for a budget of seconds also what it will read.

    validation_tokens: that are looked at in all, over the whole run.
    """
    facts = TextFacts(train_tokens=stream.tokens, train_bytes=stream.bytes, vocab_size=tokenizer.vocab_size)
    whole = dataclasses.replace(
        train_config, length=None
    )  # windows that are asked for are looked at when the size stands

    def task(model: Learner, rows: float) -> Task:
        assert isinstance(model, TextLearner)
        return task_of(model, tokenizer, None, stream, with_rows(whole, model, hardware, rows), hardware)

    ours = train_config.rows is None  # to choose
    return sized(
        cls, config, facts, tokenizer.vocabulary, task, train_config, hardware, timings, validation_tokens, ours
    )


def with_rows(config: TrainConfig, model: TextLearner, hardware: Hardware, share: float) -> TrainConfig:
    """The same, with that share of the rows a step usually has here."""
    if share == 1:
        return config
    return dataclasses.replace(config, rows=max(1, round(share * hardware.batch * model.batch_shape[0])))
