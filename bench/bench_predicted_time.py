"""Does `lmlab plan MODEL TEXT --steps N` say how long that run takes? Plans it, runs it, plans it again, and prints the error.

    python bench/bench_predicted_time.py                        gpt and lstm, about three minutes of training each
    python bench/bench_predicted_time.py --seconds 40 --models gpt

The plan is made before the run, in a process of its own, as a user would. The one made afterwards shows whether the machine
itself became faster or slower meanwhile: where both plans agree with each other and not with the run, the planner is wrong.
Early stopping is turned off, so that the run takes all its steps. The text is our own generator's: nothing has to be fetched.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WITHIN = 0.10
SETTINGS = {
    "gpt": ["layers=4", "width=128", "context=128", "dropout=0"],
    "lstm": ["layers=1", "width=256", "dropout=0"],
}
FIRST_STEPS = 1000  # of a plan that only says how fast a step is
CHARACTERS = 2_000_000


def lmlab(*words: str | Path) -> dict[str, Any]:
    """The JSON of a command."""
    done = subprocess.run(
        [sys.executable, "-m", "lmlab", *map(str, words), "--json"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"lmlab {' '.join(map(str, words))}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def one(model: str, text: Path, seconds: float, folder: Path) -> float:
    """The error of the plan that was made before the run: planned over measured, less one."""
    options = [word for setting in SETTINGS[model] for word in ("--set", setting)] + ["--learn", "patience=1000000"]
    first = lmlab("plan", model, text, "--steps", str(FIRST_STEPS), *options)
    steps = max(1, round(FIRST_STEPS * seconds / first["seconds"]))
    before = lmlab("plan", model, text, "--steps", str(steps), *options)
    run = lmlab("train", model, text, "--budget", f"{steps}steps", "--out", folder / model, *options)
    after = lmlab("plan", model, text, "--steps", str(steps), *options)
    assert run["result"]["steps"] == steps, run["result"]
    took, planned = run["result"]["seconds"], before["seconds"]
    low, high = before["interval"]
    error = planned / took - 1
    print(
        f"{model:6}{run['model']['parameters']:>10,} parameters{steps:>8,} steps   planned {planned:7.1f} s"
        f" ({low:.1f} to {high:.1f})   took {took:7.1f} s   {error:+.1%}   planned afterwards {after['seconds']:7.1f} s",
        flush=True,
    )
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=180.0, help="that a run is to take")
    parser.add_argument("--models", default="gpt,lstm")
    asked = parser.parse_args()
    from lmlab.text.markov import MarkovSpec, generate

    with tempfile.TemporaryDirectory() as scratch:
        text = Path(scratch) / "text.txt"
        text.write_bytes(b"".join(generate(MarkovSpec(alphabet=26, length=CHARACTERS))))
        errors = [one(model, text, asked.seconds, Path(scratch)) for model in asked.models.split(",")]
    print(f"{sum(abs(e) <= WITHIN for e in errors)} of {len(errors)} within {WITHIN:.0%}")


if __name__ == "__main__":
    main()
