"""Memory of a training step, predicted and measured, for gpt and lstm at four sizes each.

    python bench/bench_memory.py [--device cuda] [--precision bf16]

Measured: on a CPU what torch requests of its allocator; on a GPU the peak of torch's allocator. Beside it, on a CPU, how much
larger the process itself became, which includes what the C library keeps.
"""

from __future__ import annotations

import argparse
import os

import torch

from lmlab.costs.memory import Step, measure, predict
from lmlab.formulas import Shape
from lmlab.hardware.memory import PeakMemory, resident_bytes
from lmlab.models.registry import model_class
from table import add_row

GPT = [(2, 64, 65), (4, 192, 1024), (6, 256, 4096), (12, 768, 50257)]  # layers, width, vocabulary
LSTM = [(1, 128, 65), (1, 256, 1024), (2, 512, 4096), (2, 1024, 50257)]


def steps(device: str, dtype: torch.dtype) -> dict[str, Step]:
    found = {}
    for layers, width, vocab in GPT:
        cls = model_class("gpt")
        config = cls.Config(
            layers=layers,
            width=width,
            heads=max(1, width // 64),
            context=256,
            stride=128,
            tie=vocab > 2048,
            dropout=0.0,
        )
        name = f"gpt, {layers} layers of {width}, {vocab:,} tokens"
        found[name] = Step(model=cls, config=config, vocab_size=vocab, shape=Shape(8, 256), device=device, dtype=dtype)
    for layers, width, vocab in LSTM:
        cls, tie = model_class("lstm"), vocab > 2048
        config = cls.Config(layers=layers, width=width, embedding_width=width if tie else 64, tie=tie, dropout=0.0)
        name = f"lstm, {layers} layers of {width}, {vocab:,} tokens"
        found[name] = Step(model=cls, config=config, vocab_size=vocab, shape=Shape(32, 64), device=device, dtype=dtype)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32", choices=["float32", "bf16"])
    asked = parser.parse_args()
    dtype = torch.bfloat16 if asked.precision == "bf16" else torch.float32
    place = torch.cuda.get_device_name() if asked.device == "cuda" else f"{os.cpu_count()} cores"
    print(f"{asked.device} ({place}), {asked.precision}, torch {torch.__version__}; bytes in MB")
    for name, step in steps(asked.device, dtype).items():
        predicted = predict(step).peak
        with PeakMemory() as process:
            before = resident_bytes()
            measured = measure(step)
        grown = f"; the process grew by {(process.peak_bytes - before) / 1e6:,.0f}" if asked.device == "cpu" else ""
        error = predicted / measured - 1
        print(f"{name:42} predicted {predicted / 1e6:9,.1f}  measured {measured / 1e6:9,.1f}  {error:+.1%}{grown}")
        add_row(
            f"memory of a training step, {name}, {asked.device}",
            predicted / measured,
            unit="of what is measured",
            least=0.9,
            most=1.1,
        )


if __name__ == "__main__":
    main()
