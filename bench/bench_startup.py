"""Does help answer at once? `lmlab --help` beside `import torch`, each in a fresh process.

python bench/bench_startup.py [--write]
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from record import Recorder, arguments
from timing import in_turns

HELP = "import sys; sys.argv = ['lmlab', '--help']; from lmlab.cli.app import main; main()"


def main() -> None:
    """Measure seconds from start to end of both processes."""
    asked = arguments(__doc__).parse_args()
    run = partial(subprocess.run, check=True, capture_output=True)
    works = {
        "ours": lambda: run([sys.executable, "-c", HELP]),
        "theirs": lambda: run([sys.executable, "-c", "import torch"]),
    }
    times = in_turns(works, rounds=1 if asked.quick else 7)
    Recorder("startup", "fast", asked).compare(
        "help", "`lmlab --help`, from start to end", times["ours"], times["theirs"], "s", peer="import torch", least=4.0
    )


if __name__ == "__main__":
    main()
