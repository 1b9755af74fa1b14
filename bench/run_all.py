"""Run the benchmarks, most important first, each for a bounded time; with --write every measurement is kept as it comes.

    python bench/run_all.py --write            what needs a quiet CPU, about 25 minutes
    python bench/run_all.py --gpu --write      what needs a CUDA device, about 9 minutes
    python bench/run_all.py --quick            does every benchmark still run?

A benchmark that is stopped at its limit leaves the measurements that it made before. What lacks its data (LMLAB_BENCH_DATA) or
its peer says so and is skipped. The benchmarks that need a peer built by hand (bench_glove.py, `--lmplz` of bench_counting.py)
say in their first lines how they are run. Where the sources were copied without git, LMLAB_COMMIT names their commit.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from record import RESULTS, arguments

HERE = Path(__file__).parent
QUICK_LIMIT_S = 240


@dataclass(frozen=True)
class Job:
    """This class is one benchmark, its options, and the seconds after which it is stopped."""

    script: str
    limit_s: int
    options: tuple[str, ...] = ()


CPU = (
    Job("accuracy", 720, ("--only", "ptb,shakespeare,demo,gpt,dan")),
    Job("training", 200),
    Job("decoding", 120),
    Job("counting", 150),
    Job("scoring", 80),
    Job("learning", 150),
    Job("startup", 30),
    Job("coverage", 180),
    Job("certificate", 150),
    Job("plans", 150),
    Job("calibration", 120),
)
GPU = (
    Job("gpu_train", 280),
    Job("decoding", 90, ("--device", "cuda")),
    Job("training", 80, ("--device", "cuda")),
    Job("accuracy", 100, ("--device", "cuda", "--only", "gpt")),
    Job("plans", 40, ("--device", "cuda")),
)


def main() -> int:
    """Return 1 if a benchmark failed or was stopped."""
    parser = arguments(__doc__)
    parser.add_argument("--gpu", action="store_true", help="the benchmarks of a CUDA device instead")
    parser.add_argument("--only", help="names, comma-separated")
    asked = parser.parse_args()
    jobs = [job for job in (GPU if asked.gpu else CPU) if asked.only is None or job.script in asked.only.split(",")]
    if not jobs:
        parser.error(f"there are {', '.join(job.script for job in (GPU if asked.gpu else CPU))}")
    common = ["--quick"] if asked.quick else []
    common += [] if asked.write is None else ["--write", str(asked.write)]
    outcomes = []
    for job in jobs:
        print(f"== {job.script}, at most {job.limit_s} s", flush=True)
        started = time.perf_counter()
        limit_s = QUICK_LIMIT_S if asked.quick else job.limit_s
        said = run([sys.executable, str(HERE / f"bench_{job.script}.py"), *job.options, *common], limit_s)
        outcomes.append(f"{job.script:12}{time.perf_counter() - started:6.0f} s  {said}")
        print(outcomes[-1], flush=True)
    print("\n" + "\n".join(outcomes))
    if asked.write == RESULTS:
        print("Records are in results/. `make results` puts them on the page and into the prose.")
    return int(any("done" not in outcome for outcome in outcomes))


def run(command: list[str], limit_s: float) -> str:
    """Run a benchmark in a process group of its own, and end all of it at the limit."""
    process = subprocess.Popen(command, start_new_session=True)
    try:
        code = process.wait(limit_s)
    except (subprocess.TimeoutExpired, KeyboardInterrupt) as reason:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(reason, KeyboardInterrupt):
            raise
        return "STOPPED at its limit; what it measured before is kept"
    return "done" if code == 0 else f"FAILED with exit code {code}"


if __name__ == "__main__":
    raise SystemExit(main())
