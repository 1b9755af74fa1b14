"""Run the benchmarks, one after the other, and write what they found as one table: ratios to peers first.

    python bench/run_all.py [--only training,decoding] [--out bench-table.md]

What needs more than a machine at rest (a peer built by hand, an hour) is run by itself; its first lines say how. A benchmark
that needs a GPU says so where there is none, and leaves no row.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from table import ROWS, Row

HERE = Path(__file__).parent
SCRIPTS = {
    "startup": [],
    "training": [],
    "learning": [],
    "recurrent": [],
    "decoding": [],
    "side_by_side": [],
    "score": [],
    "ngram": [],
    "bert": [],
    "dan": [],
    "translator": [],
    "certificate": [],
    "check": [],
    "memory": [],
    "gpu_step": ["--large"],
    "gpu_decode": [],
    "gpu_train": [],
    "rounds": [],
}


def main() -> int:
    """Exit code 1 if a benchmark failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(SCRIPTS), help="names, comma-separated")
    parser.add_argument("--out", type=Path, default=Path("bench-table.md"))
    asked = parser.parse_args()
    names = asked.only.split(",")
    if unknown := [name for name in names if name not in SCRIPTS]:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(SCRIPTS)}")
    rows: list[Row] = []
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "rows"
        for name in names:
            started = time.perf_counter()
            print(f"== {name}", flush=True)
            kept.write_text("")
            command = [sys.executable, str(HERE / f"bench_{name}.py"), *SCRIPTS[name]]
            if subprocess.run(command, env={**os.environ, ROWS: str(kept)}).returncode:
                failed.append(name)
            rows += [Row(**json.loads(line)) for line in kept.read_text().splitlines()]
            print(f"   {time.perf_counter() - started:.0f} s", flush=True)
    text = as_text(rows) + "".join(f"\nFAILED: {name}\n" for name in failed)
    asked.out.write_text(text)
    print(f"\n{text}\n{asked.out}")
    return 1 if failed else 0


def as_text(rows: list[Row]) -> str:
    """Markdown: the machine, then a row a figure, those with a peer first."""
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    head = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores{gpu}, torch {torch.__version__}\n\n"
    lines = ["| what | found | beside | wanted | |", "| --- | ---: | --- | --- | --- |"]
    for row in sorted(rows, key=lambda row: not row.against):
        lines.append(
            f"| {row.what} | {row.value:.3g} {row.unit} | {row.against or '–'} | {row.wanted or '–'} | {row.verdict} |"
        )
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
