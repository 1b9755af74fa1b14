"""What the certificate costs: the time of scoring with it, divided by the time of scoring alone, in one run.

    python bench/bench_certificate.py [TEXT] [BUDGET of training, such as 5s] [--models bag,gru] [--bytes 120000]
        [--keep FOLDER]

Every model of the ladder is trained for a moment. Then a file of so many bytes, the beginning of its test part, is measured,
and all of the test part, in turns of both kinds:

    with     `lmlab.evaluate`, which is what `lmlab eval` runs: read the run and the text from disk, tokenise, score, walk
             through the text with copies of the model brought from disk, look for it in the training text, check, sum, and
             find the interval
    alone    the same call with every check taken out of it: read the run and the text, tokenise, score, sum, and find the
             interval

Starting Python counts for neither. Beside the ratio stands a harder one, where run and text are open and the model is in
memory, as in a comparison that has just trained it; the copies of the certificate still come from disk. What is left of
scoring then takes a hundredth of a second for models that look up a table, and that is about what checking takes of any text.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import lmlab
from lmlab.comparison.measuring import measure_run
from lmlab.hardware.load import fastest_threads
from lmlab.measure import Certificate, result
from lmlab.measure.held_out import HeldOut
from lmlab.models.registry import ladder
from lmlab.text.parts import Part
from table import add_row

TIMES = 9
MOST = 1.4

UNCHECKED = Certificate((), {"model": "", "tokenizer": ""})
UNKNOWN = HeldOut(verdict="unknown", copied=None, detail="")


@contextmanager
def nothing_checked() -> Iterator[None]:
    """Measuring without copies, walks, a look into the training text, and checks, while it lasts."""

    def instead(given: Any) -> Callable[..., Any]:
        return lambda *_, **__: given

    names = {"Copies": None, "walk_through": None, "held_out": UNKNOWN, "certify": UNCHECKED}
    with mock.patch.multiple(result, **{name: instead(given) for name, given in names.items()}):
        yield


def ratio(measure: Callable[[], Any]) -> tuple[float, float]:
    """(seconds alone, times as long with the certificate), in the median of turns after a first one."""
    turns: list[tuple[float, float]] = []
    for _ in range(TIMES + 1):
        with nothing_checked():
            alone_s, _ = timed(measure)
        both_s, found = timed(measure)
        if not found.certified:
            print(f"    NOT CERTIFIED: {[check for check in found.certificate.checks if not check.passed]}")
        turns.append((alone_s, both_s))
    alone = [alone_s for alone_s, _ in turns[1:]]
    return statistics.median(alone), statistics.median(both_s / alone_s for alone_s, both_s in turns[1:])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """(seconds, what it gave)."""
    started = time.perf_counter()
    given = work()
    return time.perf_counter() - started, given


def main() -> None:
    """Print two rows for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default="sotu")
    parser.add_argument("budget", nargs="?", default="5s")
    parser.add_argument("--models", default=",".join(ladder()))
    parser.add_argument("--bytes", type=int, default=120_000, help="of the file; all of the test part is measured too")
    parser.add_argument("--keep", type=Path, help="where runs are trained, and found again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lmlab-") as scratch:
        for name in options.models.split(","):
            folder = (options.keep or Path(scratch)) / name
            if not folder.exists():
                lmlab.train(name, options.text, out=folder, budget=options.budget, device="cpu")
            run = lmlab.load(folder)
            whole = run.corpus.test
            file = Path(scratch) / "text.txt"
            file.write_bytes(whole.text().encode()[: options.bytes].decode(errors="ignore").encode())
            of_file = Part("whole", lmlab.read(file, split=(100, 0, 0)).train.documents)
            for part, text in ((of_file, file), (whole, None)):
                with fastest_threads():
                    memory_s, in_memory = ratio(partial(measure_run, run, part, name="", device="cpu"))
                alone_s, times = ratio(partial(lmlab.evaluate, folder, text, device="cpu"))
                add_row(
                    f"{name}: {part.bytes:,} bytes with their certificate ({alone_s:.3f} s without; with the model in memory"
                    f" {in_memory:.2f} times {memory_s:.3f} s)",
                    times,
                    against="scoring alone",
                    unit="times as long",
                    most=MOST,
                )


if __name__ == "__main__":
    main()
