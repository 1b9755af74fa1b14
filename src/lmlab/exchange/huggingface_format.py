"""Hugging Face folders among the formats of folders that are opened as runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.config import Mistake
from lmlab.learn.foreign_folders import ForeignFormat, register
from lmlab.learn.run_folder import RECORD, is_of_huggingface

if TYPE_CHECKING:
    from lmlab.learn.run import Run


class HuggingFaceFormat(ForeignFormat):
    """Folders with the config.json of the `transformers` library."""

    def recognizes(self, folder: Path) -> bool:
        """Return whether a folder holds such a config.json and no run of lmlab."""
        return not (folder / RECORD).exists() and is_of_huggingface(folder)

    def check(self, folder: Path) -> None:
        """Raise a Mistake if the small files show that the folder cannot be opened."""
        from lmlab.exchange.folder_config import describe
        from lmlab.exchange.folder_files import stored_tensors, weight_files

        describe(folder, stored_tensors(weight_files(folder)))

    def open(self, folder: Path) -> Run:
        """Return the model in the folder as a run."""
        from lmlab.exchange.huggingface_run import HuggingFaceRun

        try:
            return HuggingFaceRun.of(folder)
        except OSError as error:
            raise Mistake(f"{folder} cannot be read: {error}", code="folder-file-not-readable") from None


register(HuggingFaceFormat())
