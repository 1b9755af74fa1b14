"""Training steps of `gpt` against GPT2LMHeadModel of transformers: same size, same batch, AdamW, on the CPU.

Both sides run in this process, taking turns, and the median step counts. Then the optimizers: the same model on the same
text for the same number of seconds, with AdamW alone and with Muon for its matrices.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace

import torch
import transformers

from lmlab.config import Budget, TextFacts
from lmlab.learn.hardware import cpu_has_amx, keep_memory
from lmlab.learn.optimizer import Optimizer, OptimizerConfig
from lmlab.models.gpt import GPT, GPTConfig

VOCABULARY, LAYERS, WIDTH, CONTEXT, ROWS = 321, 6, 192, 256, 8


def our_step(dtype: torch.dtype) -> Callable[[], None]:
    settings = GPTConfig(layers=LAYERS, width=WIDTH, context=CONTEXT, dropout=0.0)
    facts = TextFacts(train_tokens=10**6, train_bytes=10**6, vocab_size=VOCABULARY)
    model = GPT(GPT.resolve(settings, facts, Budget(steps=1)), SimpleNamespace(vocab_size=VOCABULARY)).train()
    model.compute_dtype = dtype
    optimizer = Optimizer(dict(model.named_parameters()), OptimizerConfig())
    tokens_BT = torch.randint(VOCABULARY, (ROWS, CONTEXT))

    def step() -> None:
        nats, count = model.loss(tokens_BT)
        (nats / count).backward()
        optimizer.step(1.0)
        for p in model.parameters():
            p.grad = None

    return step


def their_step(dtype: torch.dtype) -> Callable[[], None]:
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_layer=LAYERS, n_embd=WIDTH, n_head=WIDTH // 64, n_positions=CONTEXT,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens_BT = torch.randint(VOCABULARY, (ROWS, CONTEXT))

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
            loss = model(tokens_BT, labels=tokens_BT).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def median_seconds(steps: dict[str, Callable[[], None]], rounds: int = 15) -> dict[str, float]:
    """Median seconds of each step, the sides taking turns so that a busy moment hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        for _ in range(2):
            step()
    for _ in range(rounds):
        for name, step in steps.items():
            started = time.perf_counter()
            step()
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(found) for name, found in times.items()}


def compare_optimizers(seconds: float = 45.0) -> None:
    """Validation loss on the language reference after equal time, with both optimizers."""
    import tempfile
    from pathlib import Path

    import lmlab

    with tempfile.TemporaryDirectory() as folder:
        text = lmlab.read("python-docs")
        losses = {}
        for name in ("adamw", "muon"):
            honest = GPT.hidden_matrices
            if name == "adamw":
                GPT.hidden_matrices = lambda self: {}  # type: ignore[method-assign]
            run = lmlab.train("gpt", text, out=Path(folder) / name, budget=f"{seconds:g}s")
            GPT.hidden_matrices = honest  # type: ignore[method-assign]
            losses[name] = min(line["valid_nats_per_token"] for line in run.metrics)
        print(
            f"after {seconds:g} s on python-docs: AdamW {losses['adamw']:.3f}, Muon {losses['muon']:.3f} nats per character"
        )


def main() -> None:
    torch.manual_seed(0)
    keep_memory()
    precisions = {"float32": torch.float32, "bf16": torch.bfloat16}
    print(f"{LAYERS} layers, width {WIDTH}, context {CONTEXT}, batch {ROWS}; {torch.get_num_threads()} threads")
    ours = {f"lmlab {name}": our_step(dtype) for name, dtype in precisions.items()}
    theirs = {f"transformers {name}": their_step(dtype) for name, dtype in precisions.items()}
    found = median_seconds(ours | theirs)
    for name in precisions:
        print(
            f"{name}: lmlab is {found[f'transformers {name}'] / found[f'lmlab {name}']:.2f} times as fast per step (want 2)"
        )
    default = "lmlab bf16" if cpu_has_amx() else "lmlab float32"
    for name in theirs:
        print(
            f"lmlab as it trains here ({default.split()[1]}) is {found[name] / found[default]:.2f} times as fast as {name}"
        )
    compare_optimizers()


if __name__ == "__main__":
    main()
