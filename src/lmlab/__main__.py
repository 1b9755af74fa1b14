"""`lmlab`, and `python -m lmlab`: the command line, with an ear for Ctrl-C from its first moment to its last."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Importing the command line takes a moment, and so does ending the process: neither shall end in a traceback."""
    try:
        from lmlab.cli.app import main as command_line

        command_line()
    except KeyboardInterrupt:
        print("lmlab: stopped; nothing is kept, and the same command begins again", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
