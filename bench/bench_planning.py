"""Does a budget of seconds read what it was planned to read? For every learned model, alone and beside a busy process.

Sizes are chosen by timing real steps before a run begins (`learn/pace.py`). This holds the plan against the run: tokens read
over tokens planned, for each model and budget, and what the company of one busy process costs `gpt` on this machine.

    python bench/bench_planning.py                         every model, 20, 60 and 180 s, quiet and busy (over an hour)
    python bench/bench_planning.py --models gpt,lstm --seconds 20 --conditions quiet
    python bench/bench_planning.py --cores 2 --side-by-side 8      on a large machine: runs beside each other, two cores each

The text is our own generator's, so nothing has to be fetched; how fast a step is does not depend on what it says.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

LEAST, MOST = 0.75, 1.33  # tokens read over tokens planned
KEPT = 0.45  # of its quiet speed that gpt keeps beside one busy process, on two cores
CHARACTERS = 2_000_000
STAGGER_S = 6.0
BUSY = "x = 1\nwhile True: x = x * 3 % 1000003"
ONE = """
import json, sys
import lmlab
from lmlab.hardware.memory import keep_memory
keep_memory()
model, text, seconds, out = sys.argv[1:]
run = lmlab.train(model, text, out=out, budget=seconds + "s", split=(90, 10, 0), device="cpu")
print(json.dumps(run.record.to_json()))
"""


def learned_models() -> list[str]:
    from lmlab.models.registry import KINDS, Role, Way

    return [k.name for k in KINDS.values() if k.way is Way.LEARNS and k.role is Role.LANGUAGE_MODEL]


def one_run(model: str, text: Path, seconds: int, busy: bool, cores: list[int]) -> dict[str, float]:
    """Train one model for so many seconds on these cores, alone or beside a process that never rests."""
    pinned = (lambda: os.sched_setaffinity(0, cores)) if cores else None
    environment = {**os.environ, **({"OMP_NUM_THREADS": str(len(cores))} if cores else {})}
    company = subprocess.Popen([sys.executable, "-c", BUSY], preexec_fn=pinned) if busy else None
    try:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", ONE, model, str(text), str(seconds), f"{folder}/run"]
            done = subprocess.run(command, capture_output=True, text=True, preexec_fn=pinned, env=environment)
        if done.returncode:
            raise SystemExit(f"{model}: {done.stderr[-2000:]}")
    finally:
        if company is not None:
            company.kill()
            company.wait()
    found = json.loads(done.stdout.splitlines()[-1])
    result, planned = found["result"], found["training"]["planned"]
    # the plan is of all the seconds
    early = seconds / result["seconds"] if result["status"] == "stopped early" else 1.0
    return {
        "ratio": early * result["tokens"] / planned["tokens"],
        "speed": result["tokens"] / result["seconds"],
        "seconds": result["seconds"],
        "timed_s": planned["timed_s"],
        "parameters": found["model"]["parameters"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="")
    parser.add_argument("--seconds", default="20,60,180")
    parser.add_argument("--conditions", default="quiet,busy")
    parser.add_argument("--cores", type=int, default=0, help="cores each run is kept to; 0: all of the machine")
    parser.add_argument("--side-by-side", type=int, default=1, help="runs at a time, each on cores of its own")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    asked = parser.parse_args()
    models = asked.models.split(",") if asked.models else learned_models()
    cases = [
        (model, int(seconds), condition == "busy")
        for condition in asked.conditions.split(",")
        for seconds in asked.seconds.split(",")
        for model in models
    ]
    free: Queue[list[int]] = Queue()
    starting = threading.Lock()
    for i in range(asked.side_by_side):
        free.put(list(range(i * asked.cores, (i + 1) * asked.cores)))
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(asked.side_by_side) as pool:
        text = Path(scratch) / "text.txt"
        text.write_bytes(made_up_text())

        def run(case: tuple[str, int, bool]) -> dict[str, float]:
            cores = free.get()
            with starting:  # one after the other: what a run times at its beginning is not to be the start of others
                time.sleep(STAGGER_S if asked.side_by_side > 1 else 0)
            try:
                return one_run(case[0], text, case[1], case[2], cores)
            finally:
                free.put(cores)

        run((models[0], 2, False))  # measures the machine, once
        print(f"{'model':15}{'budget':>8}{'':>7}{'read / planned':>16}{'tokens/s':>12}{'timing':>9}{'parameters':>13}")
        found = []
        for (model, seconds, busy), figures in zip(cases, pool.map(run, cases), strict=True):
            condition, good = "busy" if busy else "quiet", LEAST <= figures["ratio"] <= MOST
            found.append({"model": model, "budget_s": seconds, "condition": condition, **figures})
            print(
                f"{model:15}{seconds:>6} s{condition:>7}{figures['ratio']:>15.3f}{' ' if good else '!'}"
                f"{figures['speed']:>12,.0f}{figures['timed_s']:>7.2f} s{figures['parameters']:>13,.0f}",
                flush=True,
            )
    outside = [row for row in found if not LEAST <= row["ratio"] <= MOST]
    print(f"\n{len(found) - len(outside)} of {len(found)} within {LEAST} to {MOST}")
    for seconds in sorted({row["budget_s"] for row in found}):
        speeds = {
            row["condition"]: row["speed"] for row in found if (row["model"], row["budget_s"]) == ("gpt", seconds)
        }
        if len(speeds) == 2:
            kept = speeds["busy"] / speeds["quiet"]
            print(
                f"gpt beside one busy process, {seconds} s: {kept:.0%} of its quiet speed (at least {KEPT:.0%} wanted)"
            )
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=2))


def made_up_text() -> bytes:
    """Letters of our own Markov chain: nothing has to be fetched."""
    from lmlab.text.markov import MarkovSpec, generate

    return b"".join(generate(MarkovSpec(alphabet=26, length=CHARACTERS)))


if __name__ == "__main__":
    main()
