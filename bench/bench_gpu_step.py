"""A training step on a GPU: asked for kernel by kernel, recorded and replayed, and compiled; every learned model in one run.

    python bench/bench_gpu_step.py [--large]

Prints milliseconds a step and how many times as fast as eager; --large adds a GPT-2-sized gpt on 64 windows of 1,024 tokens.
Needs a CUDA device; says so where there is none.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lmlab.config import Budget, TextFacts
from lmlab.hardware.choice import as_asked, choose
from lmlab.interface import NeuralLanguageModel
from lmlab.learn.loop import Trainer
from lmlab.learn.next_token import NextToken
from lmlab.learn.onlookers import Silent
from lmlab.learn.settings import TrainConfig
from lmlab.learn.unit import Unit
from lmlab.models.registry import KINDS, Role, Way, model_class
from lmlab.text.corpus import read
from lmlab.text.stream import TokenStream, tokenize
from lmlab.text.tokenizers import Tokenizer, train_tokenizer
from table import add_row

TOKENS = 20_000_000  # of the budget that sizes are chosen for
STEPS, COLD = 60, 4
COMPILED = ("gpt", "feedforward")  # of the small ones: compiling takes half a minute each
LARGE = {"layers": 12, "width": 768, "heads": 12, "context": 1024, "stride": 512, "tie": True, "dropout": 0.0}
VOCABULARY, ROWS = 50_304, 64


def main() -> None:
    if not torch.cuda.is_available():
        print("no CUDA device here: nothing to measure")
        return
    corpus = read("markov:order=2,alphabet=60,length=1000000,seed=0")
    tokenizer = train_tokenizer("char", corpus.train.pieces())
    with tempfile.TemporaryDirectory() as folder:
        stream = tokenize(corpus.train, tokenizer, Path(folder))
        facts = TextFacts(train_tokens=stream.tokens, train_bytes=stream.bytes, vocab_size=tokenizer.vocab_size)
        for kind in KINDS.values():
            if kind.way is Way.LEARNS and kind.role is Role.LANGUAGE_MODEL:
                cls = model_class(kind.name)
                config = cls.resolve(cls.Config(), facts, Budget(tokens=TOKENS))
                unit = Unit.of(stream, tokenizer)
                compare(cls, config, tokenizer, tokenizer.vocab_size, stream, unit, kind.name in COMPILED)
        if "--large" in sys.argv:
            cls = model_class("gpt")
            ids = np.random.default_rng(0).integers(0, VOCABULARY, 4_000_000).astype(np.uint16)
            made = dataclasses.replace(stream, ids=ids, starts=np.array([0, len(ids)]))
            compare(cls, cls.Config(**LARGE), tokenizer, VOCABULARY, made, unit, True, rows=ROWS, steps=12)


def compare(
    cls: type[Any],
    config: Any,
    tokenizer: Tokenizer,
    vocab_size: int,
    stream: TokenStream,
    unit: Unit,
    compiles: bool,
    rows: int | None = None,
    steps: int = STEPS,
) -> None:
    """One line: weights, and each way's time and how many times as fast as eager it is."""
    eager_s = 0.0
    line = ""
    for way in ("eager", "captured", *(["compiled"] if compiles else [])):
        step_s, tokens, begin_s, weights = timed(cls, config, tokenizer, vocab_size, stream, unit, way, rows, steps)
        eager_s = eager_s or step_s
        rate = f"{eager_s / step_s:.2f}×, {tokens / step_s:,.0f} tokens/s"
        line += f"  {way} {1e3 * step_s:.2f} ms ({rate}, ready in {begin_s:.1f} s)"
        if way != "eager":
            add_row(f"{cls.name}, training step, {weights:,} weights, {way}", eager_s / step_s, against="eager")
    print(f"{cls.name} ({weights:,} weights):{line}", flush=True)


def timed(
    cls: type[Any],
    config: Any,
    tokenizer: Tokenizer,
    vocab_size: int,
    stream: TokenStream,
    unit: Unit,
    way: str,
    rows: int | None,
    steps: int,
) -> tuple[float, float, float, int]:
    """Seconds and tokens of a step, seconds until the first ones were done, and weights."""
    torch.manual_seed(0)
    hardware = as_asked(choose("cuda"), way)
    started = time.perf_counter()
    model: NeuralLanguageModel = cls(config, vocab_size)
    shape = model.batch_shape
    task = NextToken(
        train=stream,
        valid=None,
        units={"train": unit, "valid": unit},
        vocab_size=vocab_size,
        tokenizer=tokenizer,
        rows=rows or shape[0] * hardware.batch,
        length=shape[1],
        chunks=16 if hasattr(model, "loss_carried") else None,
    )
    config = TrainConfig(budget=Budget(steps=10_000))
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(model, task, config, hardware, Path(folder), Silent())
        for _ in range(COLD):
            trainer._group()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        before = trainer.clock.steps, trainer.clock.tokens
        while trainer.clock.steps - before[0] < steps:
            trainer._group()
        torch.cuda.synchronize()
        taken = trainer.clock.steps - before[0]
        step_s = (time.perf_counter() - begun) / taken
        return step_s, (trainer.clock.tokens - before[1]) / taken, begun - started, model.parameters_count


if __name__ == "__main__":
    main()
