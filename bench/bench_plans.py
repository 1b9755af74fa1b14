"""Do plans hold? Memory of a training step, the time of a run, and what a budget of seconds reads, planned and measured.

    python bench/bench_plans.py [--only memory,time,budget] [--device cuda] [--seconds 15] [--write]

memory  `lmlab count --memory`, beside what torch requests of its allocator, for gpt and lstm at four sizes
time    `lmlab plan MODEL TEXT --steps N`, beside what that run takes; the plan is made in a process of its own, before the run
budget  tokens that a run of some seconds reads, beside those that its size was chosen for

The text is generated: how fast a step is does not depend on what it says.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import lmlab
from lmlab.costs.memory import Step, measure, predict
from lmlab.formulas import Shape
from lmlab.models.registry import model_class
from lmlab.text.markov import MarkovSpec, generate
from record import Recorder, arguments

GPT = [(2, 64, 65), (4, 192, 1024), (6, 256, 4096), (12, 768, 50257)]  # layers, width, vocabulary
LSTM = [(1, 128, 65), (1, 256, 1024), (2, 512, 4096), (2, 1024, 50257)]
SETTINGS = {
    "gpt": ["layers=4", "width=128", "context=128", "dropout=0"],
    "lstm": ["layers=1", "width=256", "dropout=0"],
}
FIRST_STEPS = 1000  # of a plan that only says how fast a step is
CHARACTERS = 2_000_000
BUDGET_MODELS = ("gpt", "lstm", "feedforward")


def memory_steps(device: str) -> dict[str, Step]:
    """Return the steps whose memory is predicted and measured."""
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
        found[f"gpt-{layers}x{width}"] = Step(
            model=cls, config=config, vocab_size=vocab, shape=Shape(8, 256), device=device, dtype=torch.float32
        )
    for layers, width, vocab in LSTM:
        cls, tie = model_class("lstm"), vocab > 2048
        config = cls.Config(layers=layers, width=width, embedding_width=width if tie else 64, tie=tie, dropout=0.0)
        found[f"lstm-{layers}x{width}"] = Step(
            model=cls, config=config, vocab_size=vocab, shape=Shape(32, 64), device=device, dtype=torch.float32
        )
    return found


def memory(record: Recorder, asked: argparse.Namespace, text: Path) -> None:
    """Record predicted over measured bytes."""
    steps = memory_steps(asked.device)
    for model in ("gpt", "lstm"):
        ratios = []
        for name in [name for name in steps if name.startswith(model)][: 1 if asked.quick else None]:
            predicted, measured = predict(steps[name]).peak, measure(steps[name])
            print(f"{name}: {predicted / 1e6:,.1f} MB predicted, {measured / 1e6:,.1f} measured", flush=True)
            ratios.append(predicted / measured)
        what = f"Memory of a training step of {model}, predicted by measured, median and range over {len(ratios)} sizes"
        record.add(f"memory-{model}", what, ratios, "", spread="range over sizes", least=0.9, most=1.1)


def lmlab_json(*words: str | Path) -> dict[str, Any]:
    """Return the JSON of a command."""
    done = subprocess.run(
        [sys.executable, "-m", "lmlab", *map(str, words), "--json"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"lmlab {' '.join(map(str, words))}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def time(record: Recorder, asked: argparse.Namespace, text: Path) -> None:
    """Record planned over measured seconds. Early stopping is off, so that the run takes all its steps."""
    seconds = 2.0 if asked.quick else asked.seconds
    for model in ["lstm"] if asked.quick else SETTINGS:
        options = [word for setting in SETTINGS[model] for word in ("--set", setting)] + ["--learn", "patience=1000000"]
        first = lmlab_json("plan", model, text, "--steps", str(FIRST_STEPS), *options)
        steps = max(1, round(FIRST_STEPS * seconds / first["seconds"]))
        plan = lmlab_json("plan", model, text, "--steps", str(steps), *options)
        run = lmlab_json(
            "train", model, text, "--budget", f"{steps}steps", "--out", text.with_name(f"{model}-time"), *options
        )
        took = run["result"]["seconds"]
        what = f"Time of a run of {model} of {steps:,} steps, planned by measured ({took:.0f} s)"
        record.add(f"time-{model}", what, plan["seconds"] / took, "", least=0.9, most=1.1)


def budget(record: Recorder, asked: argparse.Namespace, text: Path) -> None:
    """Record tokens read over tokens planned."""
    seconds = 3 if asked.quick else round(asked.seconds)
    for model in BUDGET_MODELS[-1:] if asked.quick else BUDGET_MODELS:
        out = text.with_name(f"{model}-budget")
        run = lmlab.train(model, text, out=out, budget=f"{seconds}s", split=(90, 10, 0), device="cpu")
        found = run.record.to_json()
        result, planned = found["result"], found["training"]["planned"]
        early = (
            seconds / result["seconds"] if result["status"] == "stopped early" else 1.0
        )  # the plan is of all seconds
        what = f"Tokens that {model} reads in {seconds} s, by those planned"
        record.add(f"budget-{model}", what, early * result["tokens"] / planned["tokens"], "", least=0.75, most=1.33)


PARTS = {"memory": memory, "time": time, "budget": budget}


def main() -> None:
    """Measure the parts that were asked for."""
    parser = arguments(__doc__)
    parser.add_argument("--only", help=f"of {', '.join(PARTS)}; on a GPU memory alone is measured")
    parser.add_argument("--seconds", type=float, default=15.0, help="that a run takes")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    asked = parser.parse_args()
    if asked.device == "cuda" and not torch.cuda.is_available():
        print("no CUDA device here: nothing to measure")
        return
    gpu = torch.cuda.get_device_name() if asked.device == "cuda" else None
    record = Recorder("plans" if gpu is None else "plans-gpu", "accurate", asked, gpu=gpu)
    parts = (asked.only or ("memory" if gpu else ",".join(PARTS))).split(",")
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        text.write_bytes(b"".join(generate(MarkovSpec(alphabet=26, length=CHARACTERS))))
        for name in parts:
            PARTS[name](record, asked, text)


if __name__ == "__main__":
    main()
