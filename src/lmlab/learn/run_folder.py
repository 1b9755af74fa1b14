"""Whether a folder is that of a run, without torch, so that a slip is answered at once."""

from __future__ import annotations

from pathlib import Path

from lmlab.config import LISTED, Mistake
from lmlab.disk.files import as_typed


def config_file(folder: Path) -> Path:
    """The config.json of a run; Mistake, in one line, where the folder is none."""
    if folder.is_file():
        raise Mistake(f"{folder} is a file; a run is a folder that lmlab train made", code="run-is-file")
    if not folder.is_dir():
        raise Mistake(
            f"there is no run {folder}; train one with: lmlab train MODEL TEXT --out {as_typed(folder)}",
            code="run-not-found",
        )
    path = folder / "config.json"
    if not path.exists():
        inside = sorted(str(file.parent) for file in [*folder.glob("*/config.json"), *folder.glob("*/*/config.json")])
        runs = f"; there are runs inside it: {', '.join(inside[:LISTED])}" if inside else ""
        raise Mistake(f"{folder} is not a run: it has no config.json{runs}", code="folder-is-no-run")
    return path
