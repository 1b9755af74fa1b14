"""How fast the derivation checker answers: `python bench/bench_check.py`.

Prints, for the suite in derive/tests, the time per claim (median, 95th percentile, largest), and the time of a sheet of
40 lines. Times depend on the machine; the first claim of a process, with its imports, is given apart, beside importing torch.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "derive" / "tests" / "derivations"


def blocks() -> list[str]:
    found: list[str] = []
    for path in sorted(FOLDER.glob("*.derive")):
        found += re.split(r"^# == .* ==$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return found


def sheet_of(lines: int) -> str:
    """A sheet of this many lines: derivations of the suite, whole, one after the other."""
    picked: list[str] = []
    for block in blocks():
        rows = [row for row in block.splitlines() if row.strip()]
        if len(picked) + len(rows) <= lines:
            picked += rows
    return "\n".join(picked)


COLD = {
    "importing torch": "import torch",
    "one claim": "from lmlab_derive import check; check('given x: n\\nclaim sigmoid(-x) == 1 - sigmoid(x)')",
    "one claim with a gradient": "from lmlab_derive import check; check('given x: n\\nclaim d(sum(x**2))/dx == 2*x')",
    "one claim with a mean": "from lmlab_derive import check; check('claim E[(u < 1/3)] = 1/3 where u: uniform(0, 1)')",
}


def cold_starts() -> None:
    """Fresh processes, in turn, the fastest of three each."""
    best = dict.fromkeys(COLD, float("inf"))
    for _ in range(3):
        for name, code in COLD.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
            best[name] = min(best[name], time.perf_counter() - start)
    for name, seconds in best.items():
        print(
            f"{name}, in a fresh process: {seconds:.2f} s, {seconds / best['importing torch']:.2f} of importing torch"
        )


def main() -> int:
    cold_starts()
    start = time.perf_counter()
    from lmlab_derive.read.sheet import ScopedClaim, parse
    from lmlab_derive.sheets.check import check_text
    from lmlab_derive.sheets.claims import check_claim

    check_text("given x: n\nlet J = sum(x**2)\nclaim dJ/dx == 2*x\nclaim dJ/dx == x")
    print(f"first answer, with imports: {time.perf_counter() - start:.2f} s")
    wall: list[float] = []
    busy: list[float] = []
    slowest = (0.0, "")
    for block in blocks():
        for entry in parse(block).entries:
            assert isinstance(entry, ScopedClaim)
            wall_start, busy_start = time.perf_counter(), time.process_time()
            check_claim(entry)
            wall.append(time.perf_counter() - wall_start)
            busy.append(time.process_time() - busy_start)
            slowest = max(slowest, (busy[-1], entry.claim.text))
    for name, values in (("wall", wall), ("processor", busy)):
        values = sorted(values)
        late = values[int(0.95 * len(values))]
        print(
            f"{len(values)} claims, {name} time: median {statistics.median(values):.3f} s, "
            f"95% {late:.3f} s, most {values[-1]:.3f} s"
        )
    print(f"slowest: {slowest[1]}")
    sheet = sheet_of(40)
    wall_start, busy_start = time.perf_counter(), time.process_time()
    report = check_text(sheet)
    wall_s, busy_s = time.perf_counter() - wall_start, time.process_time() - busy_start
    print(
        f"a sheet of {len(sheet.splitlines())} lines, {len(report.claims)} claims: "
        f"{wall_s:.2f} s wall, {busy_s:.2f} s processor"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
