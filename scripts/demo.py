"""The demo: the main job on a named corpus; where that cannot be fetched, on a text that every Python carries."""

from __future__ import annotations

import subprocess
import sys

import lmlab


def main() -> int:
    """Run the comparison and return its exit code."""
    corpus = "sotu"
    try:
        lmlab.read(corpus)
    except ValueError as error:
        print(
            f"{error}\nThe demo goes on with python-docs, the language reference inside every CPython.", file=sys.stderr
        )
        corpus = "python-docs"
    command = ["compare", corpus, "--budget", "5m", "--out", f"runs/demo-{corpus}"]
    return subprocess.call([sys.executable, "-m", "lmlab", *command])


if __name__ == "__main__":
    sys.exit(main())
