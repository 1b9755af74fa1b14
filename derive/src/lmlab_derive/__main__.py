"""`python -m lmlab_derive`: the command line."""

from __future__ import annotations

from lmlab_derive.command.app import main

if __name__ == "__main__":
    main()
