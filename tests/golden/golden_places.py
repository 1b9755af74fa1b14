"""Where golden values are measured: one thread, no functions in C, a cache of its own, and a copy of the kept runs.

Paths in the kept records begin with /golden, which no machine has. A copy has its own folder there instead, as if the runs
had been made where they lie now.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lmlab.hardware.c_kernels import SWITCH
from lmlab.hardware.openmp import set_threads

RUNS = Path(__file__).with_name("runs")
ROOT = "/golden"  # stands in the kept records for the folder in which they were made
TEXT_FILES = (".json", ".jsonl", ".toml", ".md")


@dataclass(frozen=True, kw_only=True)
class Place:
    """kept: a copy of the kept runs and texts that is only read. new: an empty folder."""

    kept: Path
    new: Path

    def text(self, name: str) -> Path:
        """One of the texts."""
        return self.kept / "texts" / name

    def run(self, name: str) -> Path:
        """One of the kept runs."""
        return self.kept / name


def brought(folder: Path, names: tuple[str, ...] = (), *, home: bool = True) -> Path:
    """A copy of the kept runs (all, or those of these names) in a new folder. home: records name it as where they were made."""
    for source in sorted(RUNS.iterdir()):
        if source.is_dir() and (not names or source.name in names):
            shutil.copytree(source, folder / source.name)
    if home:
        replace_in_texts(folder, ROOT, str(folder.resolve()))
    return folder


def replace_in_texts(folder: Path, old: str, new: str) -> None:
    """In every file of records under a folder."""
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix in TEXT_FILES:
            content = path.read_bytes()
            if old.encode() in content:
                path.write_bytes(content.replace(old.encode(), new.encode()))


@contextmanager
def plain_machine(cache: Path) -> Iterator[None]:
    """What is the same on every processor: one thread, and none of our functions in C."""
    before = {name: os.environ.get(name) for name in (SWITCH, "LMLAB_CACHE")}
    os.environ.update({SWITCH: "off", "LMLAB_CACHE": str(cache)})
    set_threads(1)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
