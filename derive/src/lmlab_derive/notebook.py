"""`%load_ext lmlab_derive.notebook`, then `%%check` at the top of a cell: its claims, checked and shown.

The answer is a `Report`, so `report = _` has it; a seed may follow, as in `%%check 3`.
"""

from __future__ import annotations

from typing import Any

from lmlab_derive.shared.mistakes import Mistake
from lmlab_derive.sheets.check import check_text
from lmlab_derive.sheets.report import Report


def check_cell(line: str, cell: str) -> Report:
    """The claims of a cell, checked."""
    seed = line.strip() or "0"
    if not seed.isdigit():
        raise Mistake(f"%%check takes a seed, a whole number, or nothing; not {seed!r}", code="notebook-seed-not-whole")
    return check_text(cell, int(seed))


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext` calls."""
    shell.register_magic_function(check_cell, "cell", "check")
