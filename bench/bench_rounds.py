"""What Muon's four rounds teach beside five of the quintic in wide use: the loss after equally many steps, seed by seed.

    python bench/bench_rounds.py [--steps 200] [--seeds 3] [--device cpu] [TEXT]

The same `gpt` (4 layers of width 128, characters) on the same batches; nats per character of what was looked at of the
validation part after the last step, at the lab's rates; the steps of four rounds are somewhat longer, and take less time, which
is not looked at here. The text is python-docs, or whatever `lmlab train` takes. Minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from unittest.mock import patch

import lmlab
from lmlab.learn import orthogonal
from table import add_row

USUAL = ((3.4445, -4.7750, 2.0315),) * 5
SIZE = {"layers": 4, "width": 128, "heads": 2, "context": 128, "stride": 64}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default="python-docs")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    asked = parser.parse_args()
    saved = []
    for seed in range(asked.seeds):
        ours = nats(asked, seed)
        with patch.object(orthogonal, "rounds", lambda: USUAL):
            usual = nats(asked, seed)
        print(f"seed {seed}: four rounds {ours:.4f}, five of the usual {usual:.4f} nats per token", flush=True)
        saved.append(usual - ours)
    mean = statistics.mean(saved)
    spread = f", {statistics.stdev(saved) / len(saved) ** 0.5:.4f} its standard error" if len(saved) > 1 else ""
    print(f"four rounds save {mean:.4f} nats per token{spread}")
    add_row("four rounds of Muon against five of the usual quintic, saved", mean, unit="nats per token")


def nats(asked: argparse.Namespace, seed: int) -> float:
    """Of the last validation of a run."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        lmlab.train(
            "gpt",
            asked.text,
            out=run,
            budget=f"{asked.steps}steps",
            seed=seed,
            device=asked.device,
            settings=SIZE,
        )
        lines = (run / "metrics.jsonl").read_text().splitlines()
        return float(json.loads(lines[-1])["valid_nats_per_token"])


if __name__ == "__main__":
    main()
