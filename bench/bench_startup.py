"""`lmlab --help` against `import torch`: help must answer at once."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from table import add_row

COMMANDS = {
    "lmlab --help": [
        sys.executable,
        "-c",
        "import sys; sys.argv = ['lmlab', '--help']; from lmlab.cli.app import main; main()",
    ],
    "import torch": [sys.executable, "-c", "import torch"],
}


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(7):
        for name, command in COMMANDS.items():
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times[name].append(time.perf_counter() - started)
    help_s, torch_s = (statistics.median(times[name]) for name in COMMANDS)
    add_row("lmlab --help", help_s / torch_s, against="importing torch", unit="times as long", most=0.25)


if __name__ == "__main__":
    main()
