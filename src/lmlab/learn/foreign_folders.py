"""Folders of other programs that are opened as runs. A package that can open them registers itself here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmlab.learn.run import Run

_FORMATS: list[ForeignFormat] = []


class ForeignFormat(ABC):
    """A format of model folders that another program writes."""

    @abstractmethod
    def recognizes(self, folder: Path) -> bool:
        """Return whether a folder has this format. Reads no large file."""

    @abstractmethod
    def check(self, folder: Path) -> None:
        """Raise a Mistake if the folder cannot be opened. Imports no torch, so a command refuses it at once."""

    @abstractmethod
    def open(self, folder: Path) -> Run:
        """Return the model in the folder as a finished run."""


def register(foreign: ForeignFormat) -> None:
    """Add a format."""
    _FORMATS.append(foreign)


def format_of(folder: Path) -> ForeignFormat | None:
    """Return the format of a folder; None if it holds a run of lmlab, or nothing that is known."""
    return next((foreign for foreign in _FORMATS if foreign.recognizes(folder)), None)
