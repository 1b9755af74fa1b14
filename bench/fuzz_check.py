"""Fuzz the derivation checker for some minutes: `python bench/fuzz_check.py --minutes 10`.

Draws random sheets with hypothesis and watches for crashes, slow claims, memory, and any file or network access.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "derive" / "tests"))

from lmlab_derive import check
from lmlab_derive.sheets.check import FAILED
from sheet_strategies import fitting_sheets, sheets

TOUCHED: list[str] = []


WATCHED = ("open", "socket.connect", "socket.bind", "subprocess.Popen", "os.system")


def _imports(event: str, arguments: tuple[object, ...]) -> bool:
    """Python opens the files of modules that a library imports late."""
    return event == "open" and str(arguments[0]).endswith((".py", ".pyc", ".so"))


def watch(event: str, arguments: tuple[object, ...]) -> None:
    if WATCHING[0] and event in WATCHED and not _imports(event, arguments):
        TOUCHED.append(f"{event} {arguments[:1]}")


WATCHING = [False]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    check("given x: n normal(0, 1)\nlet J = sum(x**2)\nclaim dJ/dx == 2*x\nclaim E[J] == n\nclaim sum(x) == 1")
    sys.addaudithook(watch)
    counts: dict[str, int] = {}
    slowest = (0.0, "")
    sheets_seen = 0
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ends = time.monotonic() + 60 * options.minutes
    round_ = 0
    while time.monotonic() < ends:

        @seed(options.seed + round_)
        @settings(
            max_examples=200,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.one_of(sheets(), fitting_sheets(), fitting_sheets()))
        def once(text: str) -> None:
            nonlocal slowest, sheets_seen
            if time.monotonic() > ends:
                return
            WATCHING[0] = True
            start = time.process_time()
            try:
                report = check(text)
            finally:
                WATCHING[0] = False
            seconds = time.process_time() - start
            sheets_seen += 1
            assert not TOUCHED, TOUCHED
            for claim in report.claims:
                assert not claim.reason.startswith(FAILED), (claim.reason, text)
                counts[claim.verdict] = counts.get(claim.verdict, 0) + 1
            if seconds > slowest[0]:
                slowest = (seconds, text)

        once()
        round_ += 1
    after_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{options.minutes:g} minutes, {sheets_seen} sheets, claims by verdict {counts}")
    print(f"slowest sheet {slowest[0]:.2f} s of processor time:\n{slowest[1]}")
    print(f"peak memory {before_kb / 1024:.0f} MB at the start, {after_kb / 1024:.0f} MB at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
