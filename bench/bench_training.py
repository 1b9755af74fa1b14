"""Training steps of `gpt` against GPT2LMHeadModel of transformers: same size, same batch, AdamW, on the CPU.

Each side runs in a process of its own, taking turns, and the median ratio counts. Then the optimizers: the same model on the
same text for the same number of seconds, with AdamW alone and with Muon for its matrices.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch
import transformers

from lmlab.config import Budget, TextFacts
from lmlab.hardware.choice import choose, precision_name
from lmlab.hardware.memory import keep_memory
from lmlab.interface import Windows
from lmlab.learn.choose_optimizer import in_turns
from lmlab.learn.optimizer import Optimizer, OptimizerConfig
from lmlab.models.gpt import GPT, GPTConfig
from lmlab.page.numbers import counted
from table import add_row

PRECISIONS = {"float32": torch.float32, "bf16": torch.bfloat16}
WANTED = {"float32": 1.5, "bf16": 2.0}  # times as fast, where a processor has units for bf16; elsewhere never slower


@dataclass(frozen=True)
class Size:
    """Of a model and of a batch."""

    vocabulary: int = 321
    layers: int = 6
    width: int = 192
    context: int = 256
    rows: int = 8

    def __str__(self) -> str:
        return f"{self.layers}×{self.width}, {self.vocabulary} tokens, {counted(self.rows, 'window')} of {self.context}"


SIZE = Size()


def our_step(dtype: torch.dtype, size: Size = SIZE, *, muon: bool = False) -> Callable[[], None]:
    settings = GPTConfig(layers=size.layers, width=size.width, context=size.context, dropout=0.0)
    facts = TextFacts(train_tokens=10**6, train_bytes=10**6, vocab_size=size.vocabulary)
    model = GPT(GPT.resolve(settings, facts, Budget(steps=1)), size.vocabulary).train()
    model.compute_dtype = dtype
    matrices = model.hidden_matrices() if muon else {}
    every = in_turns(model, model.training_flops(size.rows, size.context)) if muon else 1
    optimizer = Optimizer(dict(model.named_parameters()), OptimizerConfig(matrix_every=every), matrices=matrices)
    windows = Windows(torch.randint(size.vocabulary, (size.rows, size.context)))

    def step() -> None:
        model.loss(windows).mean.backward()
        optimizer.step(1.0)
        for p in model.parameters():
            p.grad = None

    return step


def their_model(size: Size) -> transformers.GPT2LMHeadModel:
    config = transformers.GPT2Config(
        vocab_size=size.vocabulary, n_layer=size.layers, n_embd=size.width, n_head=size.width // 64,
        n_positions=size.context, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).train()


def their_loss(model: transformers.GPT2LMHeadModel, tokens_BT: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
        loss: torch.Tensor = model(tokens_BT, labels=tokens_BT).loss
        return loss


def their_step(dtype: torch.dtype, size: Size = SIZE) -> Callable[[], None]:
    model = their_model(size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens_BT = torch.randint(size.vocabulary, (size.rows, size.context))

    def step() -> None:
        their_loss(model, tokens_BT, dtype).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def serve(side: str, precision: str, line: Connection) -> None:
    """In a process of its own: take a step whenever asked, and answer how many seconds it took."""
    dtype = PRECISIONS[precision]
    torch.manual_seed(0)
    if side == "lmlab":
        keep_memory()  # as every training run of the lab does; the other side runs as its users run it
    step = our_step(dtype) if side == "lmlab" else their_step(dtype)
    for _ in range(12):  # until the memory that a step takes has been touched once
        step()
    line.send(0.0)
    while line.recv():
        started = time.perf_counter()
        step()
        line.send(time.perf_counter() - started)


def step_seconds(precisions: list[str], rounds: int = 25) -> dict[tuple[str, str], list[float]]:
    """Seconds of each step by (side, precision). The sides take turns, so that a busy moment hits all of them."""
    context = multiprocessing.get_context("spawn")
    lines: dict[tuple[str, str], Connection] = {}
    for side in ("lmlab", "transformers"):
        for precision in precisions:
            lines[side, precision], theirs = context.Pipe()
            context.Process(target=serve, args=(side, precision, theirs), daemon=True).start()
    for line in lines.values():
        line.recv()
    times: dict[tuple[str, str], list[float]] = {key: [] for key in lines}
    for _ in range(rounds):
        for key, line in lines.items():
            line.send(True)
            times[key].append(line.recv())
    for line in lines.values():
        line.send(False)
    return times


def ratio(slow: list[float], fast: list[float]) -> float:
    """How many times as fast: the median over rounds, each round's two steps having run one after the other."""
    return statistics.median(s / f for s, f in zip(slow, fast, strict=True))


def compare_optimizers(seconds: float = 45.0) -> None:
    """Validation loss on the language reference after equal time, with both optimizers."""
    import tempfile
    from pathlib import Path

    import lmlab

    with tempfile.TemporaryDirectory() as folder:
        text = lmlab.read("python-docs")
        losses = {}
        for name in ("adamw", "muon"):
            learning = {"optimizer": name}
            run = lmlab.train("gpt", text, out=Path(folder) / name, budget=f"{seconds:g}s", learning=learning)
            losses[name] = min(line["valid_nats_per_token"] for line in run.metrics)
        print(
            f"after {seconds:g} s on python-docs: AdamW {losses['adamw']:.3f}, Muon {losses['muon']:.3f} nats per character"
        )


def main() -> None:
    print(f"{SIZE}; {counted(torch.get_num_threads(), 'thread')}")
    default = precision_name(choose("cpu").dtype)
    precisions = list(PRECISIONS) if default == "bf16" else ["float32"]
    if default != "bf16":
        print("bf16 is slower than float32 here, on some processors hundreds of times: left out")
    times = step_seconds(precisions)
    for (side, precision), found in times.items():
        print(f"{side} {precision}: {statistics.median(found) * 1e3:.0f} ms a step")
    for precision in precisions:
        times_as_fast = ratio(times["transformers", precision], times["lmlab", precision])
        what = f"gpt, training step, {SIZE.layers}×{SIZE.width}, cpu {precision}"
        least = WANTED[precision] if default == "bf16" else 1
        add_row(what, times_as_fast, against=f"transformers in {precision}", least=least)
    plain, least = ratio(times["transformers", "float32"], times["lmlab", default]), 2 if default == "bf16" else 1
    add_row(f"gpt, training step as it trains here, {default}", plain, against="transformers in float32", least=least)
    compare_optimizers()


if __name__ == "__main__":
    main()
