"""Functions that find the record of a run in its folder. They do not import torch, so a wrong folder is refused at once."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from lmlab.config import LISTED, Mistake
from lmlab.disk.files import as_typed
from lmlab.learn.foreign_folders import format_of

RECORD = "run.json"
OLD_RECORD = "config.json"  # of formats 1 and 2; Hugging Face uses the same name


def record_file(folder: Path) -> Path | None:
    """Return the file that holds the record of a run; None if the folder holds no run."""
    path = folder / RECORD
    if path.exists():
        return path
    return folder / OLD_RECORD if _is_old_record(folder / OLD_RECORD) else None


def required_record_file(folder: Path) -> Path:
    """Return the file that holds the record of a run.

    Raises:
        Mistake: the folder does not exist or holds no run.
    """
    if folder.is_file():
        raise Mistake(f"{folder} is a file; a run is a folder that lmlab train made", code="run-is-file")
    if not folder.is_dir():
        raise Mistake(
            f"there is no run {folder}; train one with: lmlab train MODEL TEXT --out {as_typed(folder)}",
            code="run-not-found",
        )
    if path := record_file(folder):
        return path
    files = [file for name in (RECORD, OLD_RECORD) for depth in ("*", "*/*") for file in folder.glob(f"{depth}/{name}")]
    inside = sorted({str(file.parent) for file in files if record_file(file.parent)})
    runs = f"; there are runs inside it: {', '.join(inside[:LISTED])}" if inside else ""
    raise Mistake(f"{folder} is not a run: it has no {RECORD}{runs}", code="folder-is-no-run")


def require_openable(folder: Path) -> None:
    """Raise a Mistake unless the folder holds a run, or a model of another program that can be opened as one."""
    if (foreign := format_of(folder)) is not None:
        foreign.check(folder)
    else:
        required_record_file(folder)


def is_of_huggingface(folder: Path) -> bool:
    """Whether a folder holds a config.json of Hugging Face."""
    return bool(_huggingface_family(folder / OLD_RECORD))


def drop_old_record(folder: Path) -> None:
    """Delete the config.json of an older format after run.json is written. A config.json of another program is kept."""
    with suppress(ValueError):
        if "format" in _document(folder / OLD_RECORD):
            (folder / OLD_RECORD).unlink()


def _is_old_record(path: Path) -> bool:
    """Whether a config.json is the record of a run. A damaged file counts as one, so that its reader reports the damage."""
    try:
        return "format" in _document(path)
    except ValueError:
        return True


def _huggingface_family(path: Path) -> str:
    """Return the model type in a config.json of Hugging Face; empty for any other file."""
    try:
        document = _document(path)
    except ValueError:
        return ""
    named = document.get("model_type") or document.get("architectures")
    return str(named[0] if isinstance(named, list) else named or "")


def _document(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if the file does not exist or holds another value."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return found if isinstance(found, dict) else {}
