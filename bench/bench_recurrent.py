"""Recurrent models on a CPU: `gru` and `rnn` against the same by torch's own kernels, and `gru` against `lstm` of equal width.

    python bench/bench_recurrent.py [--widths 128,512] [--rounds 15] [--precision bf16]

A step of training is forward, backward and update, of 32 rows of 64 tokens; scoring is of as many, in float32. All take turns
in one process, and the median of the rounds' ratios counts. `lstm` runs by torch's fused kernel, which it has for no other
cell; its layer has four products where that of `gru` has three.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from unittest.mock import patch

import torch

from lmlab.hardware.c_kernels import no_c_kernels
from lmlab.hardware.choice import choose, precision_name
from lmlab.hardware.kept_figures import PRECISIONS
from lmlab.hardware.memory import keep_memory
from lmlab.interface import Windows
from lmlab.layers import cells
from lmlab.learn.optimizer import Optimizer, OptimizerConfig
from lmlab.models.families.recurrent import BATCH, RecurrentConfig, RecurrentModel
from lmlab.models.gru import GRU
from lmlab.models.lstm import LSTM
from lmlab.models.rnn import RNN
from table import add_row

VOCABULARY = 100
Way = Callable[[], object]


def ways_of(kind: type[RecurrentModel], width: int, dtype: torch.dtype) -> tuple[Way, Way]:
    """A step of training, and scoring."""
    torch.manual_seed(0)
    config = RecurrentConfig(layers=1, width=width, embedding_width=64, tie=False, dropout=0.0)
    model = kind(config, VOCABULARY)
    model.compute_dtype = dtype
    optimizer = Optimizer(dict(model.named_parameters()), OptimizerConfig(), model.hidden_matrices())
    windows = Windows(torch.randint(VOCABULARY, BATCH))

    def step() -> None:
        model.train()
        model.loss(windows).mean.backward()
        optimizer.step(1.0)
        for p in model.parameters():
            p.grad = None

    return step, lambda: model.eval().score(windows.tokens_BT)


def by_torch(way: Way) -> Way:
    """By torch's own recurrence; whatever else the lab does by hand stays as it is."""

    def plain() -> None:
        with patch.object(cells, "can_scan", lambda *_: False):
            way()

    return plain


def without_compiler(way: Way) -> Way:
    """As on a machine where no C can be compiled."""

    def plain() -> None:
        with no_c_kernels():
            way()

    return plain


def seconds_of(ways: dict[str, Way], rounds: int) -> dict[str, list[float]]:
    """Of each round; the ways take turns, so that a busy moment hits all of them."""
    for _ in range(3):
        for way in ways.values():
            way()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            started = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - started)
    return times


def ratio(slow: list[float], quick: list[float]) -> float:
    """How many times as fast: the median over rounds."""
    return statistics.median(s / q for s, q in zip(slow, quick, strict=True))


def compare(width: int, precision: str, rounds: int) -> None:
    """All ways at one width."""
    made = {kind.name: ways_of(kind, width, PRECISIONS[precision]) for kind in (GRU, RNN, LSTM)}
    for number, doing in enumerate((f"training step, {precision}", "scoring")):
        ways = {name: pair[number] for name, pair in made.items()}
        ways |= {f"{name} by torch": by_torch(ways[name]) for name in ("gru", "rnn")}
        if number == 0:  # forward alone it is torch's own kernel there
            ways["gru without a compiler"] = without_compiler(ways["gru"])
        times = seconds_of(ways, rounds)
        for name, found in times.items():
            speed = BATCH[0] * BATCH[1] / statistics.median(found)
            print(f"{doing}, 1×{width}, {name}: {speed / 1e3:.1f} thousand tokens a second")
        for name in ways:
            kind = name.split()[0]
            if name in ("gru", "rnn", "gru without a compiler"):
                found = ratio(times[f"{kind} by torch"], times[name])
                add_row(f"{name}, {doing}, 1×{width}, cpu", found, against="torch's own kernel", least=1)
        add_row(f"gru, {doing}, 1×{width}, cpu", ratio(times["lstm"], times["gru"]), against="lstm", least=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", default="128,512")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--precision", choices=PRECISIONS, help="of training; that in which the lab would train, if left out"
    )
    asked = parser.parse_args()
    keep_memory()  # as every training run of the lab does
    for width in map(int, asked.widths.split(",")):
        compare(width, asked.precision or precision_name(choose("cpu").dtype), asked.rounds)


if __name__ == "__main__":
    main()
