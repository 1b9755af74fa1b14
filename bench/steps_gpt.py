"""A training step of `gpt` and one of transformers' GPT2LMHeadModel: same size, same rows, AdamW on both sides, on a CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import transformers

from lmlab.config import Budget, TextFacts
from lmlab.hardware.kept_figures import PRECISIONS
from lmlab.interface import Windows
from lmlab.learn.optimizer import Optimizer, OptimizerConfig
from lmlab.models.gpt import GPT, GPTConfig
from steps import Steps
from timing import Work


@dataclass(frozen=True)
class Size:
    """This class is the size of a model and of a batch."""

    layers: int = 6
    width: int = 192
    vocabulary: int = 321
    context: int = 256
    rows: int = 8

    def __str__(self) -> str:
        return f"{self.layers} layers of width {self.width}, {self.rows} windows of {self.context}"


SIZES = (
    Size(),
    Size(layers=4, width=128, context=128, rows=16),
    Size(width=384, vocabulary=4096),
    Size(layers=2, width=64, context=64, rows=32),
)
AIMS = {"float32": 1.5, "bf16": 2.0}  # of the first size, on a processor with units for bf16


def cases(device: str, precisions: Sequence[str], quick: bool) -> Iterator[Steps]:
    """Yield a comparison for each size; the first size in every precision."""
    if device != "cpu":
        return
    for size in SIZES[-1:] if quick else SIZES:
        for precision in precisions if size is SIZES[0] else ["float32"]:
            yield Steps(
                key=f"gpt-{size.layers}x{size.width}-{precision}",
                what=f"Training step of gpt, {size}, {precision}",
                peer="transformers",
                least=AIMS[precision] if size is SIZES[0] and "bf16" in precisions else 1.0,
                make=partial(both, size, PRECISIONS[precision]),
            )


def both(size: Size, dtype: torch.dtype) -> tuple[Work, Work]:
    """Make both steps."""
    torch.manual_seed(0)
    return our_step(size, dtype), their_step(size, dtype)


def our_step(size: Size, dtype: torch.dtype) -> Work:
    settings = GPTConfig(layers=size.layers, width=size.width, context=size.context, dropout=0.0)
    facts = TextFacts(train_tokens=10**6, train_bytes=10**6, vocab_size=size.vocabulary)
    model = GPT(GPT.resolve(settings, facts, Budget(steps=1)), size.vocabulary).train()
    model.compute_dtype = dtype
    optimizer = Optimizer(dict(model.named_parameters()), OptimizerConfig())
    windows = Windows(torch.randint(size.vocabulary, (size.rows, size.context)))

    def step() -> None:
        model.loss(windows).mean.backward()
        optimizer.step(1.0)
        for p in model.parameters():
            p.grad = None

    return step


def their_model(size: Size) -> transformers.GPT2LMHeadModel:
    config = transformers.GPT2Config(
        vocab_size=size.vocabulary, n_layer=size.layers, n_embd=size.width, n_head=max(1, size.width // 64),
        n_positions=size.context, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).train()


def their_loss(model: transformers.GPT2LMHeadModel, tokens_BT: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
        loss: torch.Tensor = model(tokens_BT, labels=tokens_BT).loss
        return loss


def their_step(size: Size, dtype: torch.dtype) -> Work:
    model = their_model(size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens_BT = torch.randint(size.vocabulary, (size.rows, size.context))

    def step() -> None:
        their_loss(model, tokens_BT, dtype).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
