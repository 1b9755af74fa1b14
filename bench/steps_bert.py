"""A training step of `bert` and one of transformers' BertForMaskedLM: same size, same batches, AdamW on both sides.

transformers takes torch's fused AdamW and its default attention; in bf16 it computes under autocast. On a GPU the steps of
lmlab are recorded and replayed, as `lmlab train` takes them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertConfig as TheirConfig
from transformers import BertForMaskedLM

from lmlab.config import Budget
from lmlab.hardware.choice import as_asked, choose
from lmlab.learn.loop import Trainer
from lmlab.learn.onlookers import Silent
from lmlab.learn.settings import TrainConfig
from lmlab.learn.unit import Unit
from lmlab.models.bert import BERT, BERTConfig
from lmlab.tasks.masked.learner import Masking
from lmlab.text.stream import TokenStream
from steps import Steps
from timing import Work

SIZES = {  # layers, width, heads, places, rows, vocabulary
    "cpu": [(2, 128, 2, 64, 32, 4096), (4, 256, 4, 128, 16, 8192)],
    "cuda": [(12, 768, 12, 128, 64, 30522), (4, 256, 4, 128, 64, 8192)],
}


def cases(device: str, precisions: Sequence[str], quick: bool) -> Iterator[Steps]:
    """Yield a comparison for each size and precision."""
    for size in SIZES[device][:1] if quick and device == "cpu" else SIZES[device]:
        layers, width, _, places, rows, _ = size
        for precision in precisions if device == "cpu" else ["bf16"]:
            yield Steps(
                key=f"bert-{layers}x{width}-{precision}",
                what=f"Training step of bert, {layers} layers of width {width}, {rows} windows of {places}, {precision}",
                peer="transformers",
                least=1.0 if device == "cpu" else 1.5,
                make=partial(both, size, device, precision),
            )


def both(size: tuple[int, ...], device: str, precision: str) -> tuple[Work, Work]:
    """Make both steps."""
    layers, width, heads, places, rows, vocab = size
    config = BERTConfig(
        layers=layers, width=width, heads=heads, hidden=4 * width, context=places, symbols=True, pooler=False,
        transform=True, dropout=0.0,
    )  # fmt: skip
    task = task_of(vocab, rows, places - 2)
    return ours(config, vocab, task, device, precision), theirs(config, vocab, task, device, precision)


def task_of(vocab: int, rows: int, length: int) -> Masking:
    """Return a task of random tokens, all windows of one length."""
    ids = np.random.default_rng(0).integers(0, vocab, 1_000_000).astype(np.uint16)
    stream = TokenStream(ids=ids, starts=np.array([0, len(ids)]), bytes=len(ids), chars=len(ids), words=1)
    unit, nobody = Unit(bits_per_nat=1.0, spelling_bits=0.0), None
    return Masking(
        train=stream, valid=None, units={"train": unit, "valid": unit}, vocab_size=vocab, rows=rows, length=length,
        tokenizer=nobody, chunks=None,  # type: ignore[arg-type]
    )  # fmt: skip


def whole_windows(task: Masking) -> Callable[[int], Any]:
    """Return batches of whole windows alone, the same for both sides."""
    steps = (step for step in range(10**6) if task.batch(0, step).inputs_BT.shape[0] == task.rows)
    drawn = [task.batch(0, next(steps)) for _ in range(16)]
    return lambda step: drawn[step % len(drawn)]


def ours(config: BERTConfig, vocab: int, task: Masking, device: str, precision: str) -> Work:
    """A step as the training loop takes it, the batch's way to the device included."""
    torch.manual_seed(0)
    hardware = as_asked(choose(device, precision), "eager" if device == "cpu" else "captured")
    learning = TrainConfig(budget=Budget(steps=10**6), optimizer="adamw")
    trainer = Trainer(BERT(config, vocab), task, learning, hardware, Path(tempfile.gettempdir()), Silent())
    batch = whole_windows(task)
    object.__setattr__(task, "batch", lambda seed, step: batch(step))
    return trainer.to_be_timed()


def theirs(config: BERTConfig, vocab: int, task: Masking, device: str, precision: str) -> Work:
    """A step on the same batches as transformers wants them: labels everywhere, -100 where nothing is masked."""
    torch.manual_seed(0)
    model = BertForMaskedLM(
        TheirConfig(
            vocab_size=vocab + 3, hidden_size=config.width, num_hidden_layers=config.layers,
            num_attention_heads=config.heads, intermediate_size=config.hidden, max_position_embeddings=config.context,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )
    ).to(device).train()  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batch, step = whole_windows(task), iter(range(10**6))

    def take() -> object:
        given = batch(next(step))
        labels = torch.full(given.inputs_BT.shape, -100)
        labels.view(-1)[given.places_N] = given.targets_N
        inputs, labels = given.inputs_BT.to(device), labels.to(device)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = model(inputs, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return take
