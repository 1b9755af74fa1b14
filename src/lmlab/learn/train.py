"""From a text to a trained model: read, tokenise, fit or learn, save."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from lmlab.config import Budget, TextFacts, make
from lmlab.interface import CountModel, NeuralModel
from lmlab.learn.clock import Clock
from lmlab.learn.curve import loss_curve
from lmlab.learn.hardware import Hardware, choose
from lmlab.learn.loop import Outcome, TrainConfig, Trainer, Watch
from lmlab.learn.run import Run, create_run, load_run, refuse_if_taken
from lmlab.models.registry import model_class
from lmlab.text.corpus import Corpus, read
from lmlab.text.files import cache_folder, write_atomically
from lmlab.text.stream import TokenStream, tokenize
from lmlab.text.tokenizers import Tokenizer, train_tokenizer


class Silent:
    """A watch that shows nothing."""

    def update(self, clock: Clock, train_bits: float, valid_bits: float | None) -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""


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
    watch: Watch | None = None,
) -> Run:
    """Train `model` on `text` and save it in the new folder `out`.

    settings: of the model (its Config); learning: of the training loop (TrainConfig, budget and seed apart).
    The returned run's `model` is in memory. A run that was interrupted has status "unfinished": `resume` it.
    """
    watch = watch or Silent()
    out = Path(out)
    cls = model_class(model)
    config: Any = make(cls.Config, settings or {}, model)
    budget = Budget.parse(budget) if isinstance(budget, str) else budget
    train_config = make(TrainConfig, {"budget": budget, "seed": seed, **(learning or {})}, "training")
    hardware = choose(device, precision)
    refuse_if_taken(out)
    corpus = text if isinstance(text, Corpus) else read(text, valid=valid, test=test, split=split, seed=seed)
    if not corpus.train.bytes:
        raise ValueError(f"{corpus.name} has no training part; give it a share above 0 in --split")
    tokens = tokenizer if isinstance(tokenizer, Tokenizer) else train_tokenizer(tokenizer, corpus.train.pieces())
    stream = tokenize(corpus.train, tokens, stream_folder())
    if issubclass(cls, NeuralModel):
        config = _resolved(cls, config, stream, tokens, budget, hardware)
    training = {
        "budget": str(budget),
        "seed": seed,
        "device": device,
        "precision": precision,
        "learning": dict(learning or {}),
    }
    run = create_run(out, model=model, config=config, tokenizer=tokens, corpus=corpus, training=training)
    if issubclass(cls, CountModel):
        started = time.perf_counter()
        fitted = cls.fit(config, tokens, stream)
        run.config["model"]["config"] = dataclasses.asdict(fitted.config)
        run.finish(fitted, "finished", {"seconds": time.perf_counter() - started, "tokens": stream.tokens})
        return run
    return _learn(run, corpus, tokens, stream, train_config, hardware, watch)


def resume(folder: str | Path, *, watch: Watch | None = None) -> Run:
    """Go on with an interrupted or killed run, exactly as if it had never stopped; a finished run is returned as it is."""
    run = load_run(folder)
    if run.status != "unfinished":
        return run
    training = run.config["training"]
    budget = Budget.parse(training["budget"])
    train_config = make(TrainConfig, {"budget": budget, "seed": training["seed"], **training["learning"]}, "training")
    stream = tokenize(run.corpus.train, run.tokenizer, stream_folder())
    cls = model_class(run.config["model"]["name"])
    if issubclass(cls, CountModel):
        fitted = cls.fit(make(cls.Config, run.config["model"]["config"], cls.name), run.tokenizer, stream)
        run.finish(fitted, "finished", {"tokens": stream.tokens})
        return run
    hardware = choose(training["device"], training["precision"])
    return _learn(run, run.corpus, run.tokenizer, stream, train_config, hardware, watch or Silent())


def stream_folder() -> Path:
    """Where tokenised texts are kept."""
    return cache_folder() / "tokens"


def _resolved(
    cls: type[NeuralModel], config: Any, stream: TokenStream, tokenizer: Tokenizer, budget: Budget, hardware: Hardware
) -> Any:
    wanted = getattr(config, "context", None)
    if wanted is not None and wanted > stream.tokens:
        raise ValueError(
            f"context {wanted} is longer than the training text, {stream.tokens} tokens; choose a shorter one"
        )
    facts = TextFacts(
        train_tokens=stream.tokens,
        train_bytes=stream.bytes,
        vocab_size=tokenizer.vocab_size,
        flops_per_second=hardware.training_flops,
    )
    return cls.resolve(config, facts, budget)


def _learn(
    run: Run,
    corpus: Corpus,
    tokenizer: Tokenizer,
    stream: TokenStream,
    train_config: TrainConfig,
    hardware: Hardware,
    watch: Watch,
) -> Run:
    """Train a neural model from its start or its checkpoint, and save it if it came to an end."""
    cls = model_class(run.config["model"]["name"])
    assert issubclass(cls, NeuralModel)
    valid = tokenize(corpus.valid, tokenizer, stream_folder()) if corpus.valid.bytes else None
    torch.manual_seed(train_config.seed)
    model = cls(make(cls.Config, run.config["model"]["config"], cls.name), tokenizer)
    trainer = Trainer(model, stream, valid, train_config, hardware, run.folder, watch)
    outcome: Outcome = trainer.run()
    watch.say(f"{run.config['model']['name']}: {outcome.message}")
    p = outcome.progress
    facts: dict[str, Any] = {"steps": p.steps, "tokens": p.tokens, "seconds": p.seconds, "best_step": p.best_step}
    facts |= {"hardware": str(hardware), "message": outcome.message}
    if outcome.status != "interrupted":
        run.finish(model, outcome.status, facts)
        write_atomically(run.folder / "loss.svg", loss_curve(run.metrics, run.config["model"]["name"]).encode())
    return run
