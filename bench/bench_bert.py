"""A training step of `bert` against transformers' BertForMaskedLM of the same size, on the same batches, in turn in one run.

    python bench/bench_bert.py [--device cuda] [--compiled] [--seconds 20]

Prints milliseconds a step and how many times as fast ours is, for each size, precision and optimizer. transformers takes
torch's fused AdamW and its default attention; in bf16 it computes under autocast. Where torch has a Muon, transformers is also
stepped by that, on the matrices that ours steps so. No side drops anything out.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
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
from lmlab.masking.task import Masking
from lmlab.models.bert import BERT, BERTConfig
from lmlab.text.stream import TokenStream
from table import add_row

SIZES = {  # layers, width, heads, places, rows, vocabulary
    "cpu": [(2, 128, 2, 64, 32, 4096), (4, 256, 4, 128, 16, 8192)],
    "cuda": [(4, 256, 4, 128, 64, 8192), (12, 768, 12, 128, 64, 30522), (12, 768, 12, 512, 16, 30522)],
}
COLD = 4


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each comparison")
    parser.add_argument("--compiled", action="store_true", help="compiled steps too, on a GPU")
    asked = parser.parse_args()
    precisions = ("float32", "bf16") if asked.device == "cpu" else ("bf16",)
    ways = ("eager",) if asked.device == "cpu" else ("captured", *(["compiled"] if asked.compiled else []))
    for size in SIZES[asked.device]:
        for precision in precisions:
            compare(size, asked.device, precision, ways, asked.seconds)


def compare(size: tuple[int, ...], device: str, precision: str, ways: tuple[str, ...], seconds: float) -> None:
    """One line: theirs, and ours in every way of stepping and with either optimizer."""
    layers, width, heads, places, rows, vocab = size
    config = BERTConfig(
        layers=layers, width=width, heads=heads, hidden=4 * width, context=places, symbols=True, pooler=False,
        transform=True, dropout=0.0,
    )  # fmt: skip
    task = task_of(vocab, rows, places - 2)
    with tempfile.TemporaryDirectory() as folder:
        steps = {"transformers": theirs(config, vocab, task, device, precision)}
        if hasattr(torch.optim, "Muon"):
            steps["transformers muon"] = theirs(config, vocab, task, device, precision, muon=True)
        for way in ways:
            for optimizer in ("adamw", "muon"):
                steps[f"{way} {optimizer}"] = ours(config, vocab, task, device, precision, way, optimizer, Path(folder))
        took_s = in_turn(steps, device, seconds)
    line = f"{layers}×{width}, {rows}×{places} places, vocabulary {vocab}, {device} {precision}:"
    for name, step_s in took_s.items():
        ratio = "" if name == "transformers" else f" ({took_s['transformers'] / step_s:.2f}×)"
        if name.endswith(" muon") and name != "transformers muon" in took_s:
            ratio += f" ({took_s['transformers muon'] / step_s:.2f}× with Muon on both sides)"
        line += f"  {name} {1e3 * step_s:.1f} ms{ratio}"
    print(line, flush=True)
    for name, step_s in took_s.items():
        if not name.startswith("transformers"):
            what = f"bert, training step, {layers}×{width}, {device} {precision}, {name}"
            least = 1.0 if device == "cpu" else 1.5
            add_row(what, took_s["transformers"] / step_s, against="transformers", least=least)


def task_of(vocab: int, rows: int, length: int) -> Masking:
    """Masked tokens of nothing in particular, all windows of one length."""
    ids = np.random.default_rng(0).integers(0, vocab, 1_000_000).astype(np.uint16)
    stream = TokenStream(ids=ids, starts=np.array([0, len(ids)]), bytes=len(ids), chars=len(ids), words=1)
    unit, nobody = Unit(bits_per_nat=1.0, spelling_bits=0.0), None
    return Masking(
        train=stream, valid=None, units={"train": unit, "valid": unit}, vocab_size=vocab, rows=rows, length=length,
        tokenizer=nobody, chunks=None,  # type: ignore[arg-type]
    )  # fmt: skip


def whole_windows(task: Masking) -> Callable[[int], Any]:
    """Batches of whole windows alone, as both sides are given them."""
    steps = (step for step in range(10**6) if task.batch(0, step).inputs_BT.shape[0] == task.rows)
    drawn = [task.batch(0, next(steps)) for _ in range(16)]
    return lambda step: drawn[step % len(drawn)]


def ours(
    config: BERTConfig, vocab: int, task: Masking, device: str, precision: str, way: str, optimizer: str, folder: Path
) -> Callable[[], object]:
    """A step as the training loop takes it, the batch's way to the device included."""
    torch.manual_seed(0)
    hardware = as_asked(choose(device, precision), way)
    learning = TrainConfig(budget=Budget(steps=10**6), optimizer=optimizer)  # type: ignore[arg-type]
    trainer = Trainer(BERT(config, vocab), task, learning, hardware, folder, Silent())
    batch = whole_windows(task)
    object.__setattr__(task, "batch", lambda seed, step: batch(step))
    return trainer.to_be_timed()


def theirs(
    config: BERTConfig, vocab: int, task: Masking, device: str, precision: str, muon: bool = False
) -> Callable[[], object]:
    """The same batches as transformers wants them: labels everywhere, -100 where nothing is asked for."""
    torch.manual_seed(0)
    model = BertForMaskedLM(
        TheirConfig(
            vocab_size=vocab + 3, hidden_size=config.width, num_hidden_layers=config.layers,
            num_attention_heads=config.heads, intermediate_size=config.hidden, max_position_embeddings=config.context,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )
    ).to(device).train()  # fmt: skip
    hidden = [p for name, p in model.named_parameters() if muon and ".layer." in name and p.ndim == 2]
    chosen = {id(p) for p in hidden}
    others = [p for p in model.parameters() if id(p) not in chosen]
    optimizers: list[torch.optim.Optimizer] = [torch.optim.AdamW(others, lr=1e-4, fused=True)]
    if hidden:
        optimizers.append(torch.optim.Muon(hidden, lr=1e-3))
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
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        return loss

    return take


def in_turn(steps: dict[str, Callable[[], object]], device: str, seconds: float) -> dict[str, float]:
    """The median of each, a step of one after a step of the other."""
    took: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        for _ in range(COLD):
            step()
    began = time.perf_counter()
    while time.perf_counter() - began < seconds or min(map(len, took.values())) < 5:
        for name, step in steps.items():
            if device == "cuda":
                torch.cuda.synchronize()
            started = time.perf_counter()
            step()
            if device == "cuda":
                torch.cuda.synchronize()
            took[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in took.items()}


if __name__ == "__main__":
    main()
