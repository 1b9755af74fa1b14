"""What the certificate costs: the time of scoring with it, divided by the time of scoring alone, in one run.

    python bench/bench_certificate.py [TEXT] [BUDGET of training, such as 5s] [--models ngram,gpt]
        [--bytes 120000] [--keep FOLDER] [--write]

Each model is trained for a moment. Then a file of so many bytes, the beginning of its test part, is measured,
and all of the test part, in turns of both kinds:

    with     read the run and the text from disk, tokenise, score, walk through the text with copies of the model brought from
             disk, look for it in the training text, check, sum, and find the interval
    alone    the very same with every check taken out

Times are of the processor: what else the machine does, and how long a disk takes to write, counts for neither.

Of the file, the row is of `lmlab eval RUN FILE`, the command, from its start to its end: what its user waits for. Of the whole
test part it is of `lmlab.evaluate(RUN)`, in a process where Python has started and everything was called before. Beside them
stand harder ratios: that call for the file, and both where run and text are open and the model is in memory, as in a
comparison that has just trained it (the copies of the certificate still come from disk). What is left of scoring 120,000 bytes
by looking up a table is a hundredth of a second then, and that is about what checking takes of any text, however short.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import lmlab
from lmlab.comparison import measure_run as measure_run_module
from lmlab.comparison.measure_run import measure_run
from lmlab.hardware.threads import fastest_threads
from lmlab.measure import Certificate, result
from lmlab.measure.near_copies import HeldOut
from lmlab.models.registry import ladder
from lmlab.text.parts import Part
from record import Recorder, arguments

TIMES, COMMANDS = 9, 3
LONGEST_S = 8.0  # of all turns, but for the one that is under way
MOST = 1.4
COMMAND = "--command"  # of a process of ours that measures once

UNCHECKED = Certificate((), {"model": "", "tokenizer": ""})
UNKNOWN = HeldOut(verdict="unknown", copied=None, detail="")


@contextmanager
def nothing_checked() -> Iterator[None]:
    """Measuring without copies, walks, a look into the training text, and checks, while it lasts."""

    def instead(given: Any) -> Callable[..., Any]:
        return lambda *_, **__: given

    names = {"walk_through": None, "held_out": UNKNOWN, "certify": UNCHECKED}
    without_checks = mock.patch.multiple(result, **{name: instead(given) for name, given in names.items()})
    with without_checks, mock.patch.object(measure_run_module, "Copies", instead(None)):
        yield


def ratio(measure: Callable[[], Any]) -> tuple[float, float]:
    """(seconds alone, times as long with the certificate), in the median of turns; a first one is for warming up."""
    turns: list[tuple[float, float]] = []
    while len(turns) <= TIMES and sum(map(sum, turns)) < LONGEST_S:
        with nothing_checked():
            alone_s, _ = timed(measure)
        both_s, found = timed(measure)
        if not found.certified:
            print(
                f"    {found.certificate.verdict}: {[check for check in found.certificate.checks if not check.passed]}"
            )
        turns.append((alone_s, both_s))
    turns = turns[1:] or turns
    return statistics.median(s for s, _ in turns), statistics.median(both_s / alone_s for alone_s, both_s in turns)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """(seconds of processor time, of processes that were begun too; what it gave)."""
    started = used_s()
    given = work()
    return used_s() - started, given


def used_s() -> float:
    """Processor time so far."""
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + begun.ru_utime + begun.ru_stime


def command_ratio(folder: Path, text: Path) -> tuple[float, float]:
    """The same of the command, each time in a process of its own."""
    turns: list[tuple[float, float]] = []
    for _ in range(COMMANDS):
        ways = [[sys.executable, __file__, COMMAND, way, str(folder), str(text)] for way in ("alone", "with")]
        alone_s, both_s = (
            timed(partial(subprocess.run, way, check=True, stdout=subprocess.DEVNULL))[0] for way in ways
        )
        turns.append((alone_s, both_s))
    return statistics.median(s for s, _ in turns), statistics.median(both_s / alone_s for alone_s, both_s in turns)


def command(way: str, folder: str, text: str) -> None:
    """`lmlab eval`, in one of the two ways."""
    from lmlab.cli.app import main as lmlab_main

    sys.argv = ["lmlab", "eval", folder, text, "--device", "cpu", "--json"]
    with nothing_checked() if way == "alone" else nullcontext():
        lmlab_main()


def main() -> None:
    """Record two rows for each model."""
    parser = arguments(__doc__)
    parser.add_argument("text", nargs="?", default="sotu")
    parser.add_argument("budget", nargs="?", default="5s")
    parser.add_argument("--models", default="ngram,gpt", help=f"of {', '.join(ladder())}")
    parser.add_argument("--bytes", type=int, default=120_000, help="of the file; all of the test part is measured too")
    parser.add_argument("--keep", type=Path, help="where runs are trained, and found again")
    options = parser.parse_args()
    if options.quick:
        options.text, options.budget, options.models, options.bytes = "python-docs", "1s", "bag", 10_000
    record = Recorder("certificate", "fast", options)
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
                call_s, call = ratio(partial(lmlab.evaluate, folder, text, device="cpu"))
                harder = f"in memory {in_memory:.2f} times {memory_s:.3f} s"
                if text is not None:
                    command_s, times = command_ratio(folder, text)
                    harder = f"{command_s:.2f} s; as a call {call:.2f} times {call_s:.2f} s; {harder}"
                    what = f"`lmlab eval` of {name} on {part.bytes:,} bytes with its certificate, beside no check"
                else:
                    times, harder = call, f"{call_s:.2f} s; {harder}"
                    what = f"`lmlab.evaluate` of {name} on {part.bytes:,} bytes with its certificate, beside no check"
                print(f"{name}, {part.bytes:,} bytes, without any check: {harder}")
                record.add(f"{name}-{'file' if text else 'all'}", what, times, "times as long", most=MOST)


if __name__ == "__main__":
    if sys.argv[1:2] == [COMMAND]:
        command(*sys.argv[2:])
    else:
        main()
