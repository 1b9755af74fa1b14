"""Stores on disk the records of one compared run (one model, tokenizer and seed), in their folder next to its run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from lmlab.comparison.close_look import CloseLook
from lmlab.comparison.entry_records import EntrySpec, MeasuredEntry, TrainedEntry
from lmlab.comparison.kept_scores import read_result, write_scores
from lmlab.config import Mistake
from lmlab.disk.files import write_atomically
from lmlab.learn.run import Run, load_run
from lmlab.learn.run_folder import record_file
from lmlab.measure import Result, Spread
from lmlab.records import from_json, to_json

SPEC, TRAINED, MEASURED, LOOK, SCORES = "spec.json", "trained.json", "measured.json", "look.json", "scores.safetensors"

T = TypeVar("T")


@dataclass(frozen=True)
class EntryStore:
    """Reads and writes the records of one run.

    Records stay in memory after reading, so a model that was trained in this process need not be loaded again to be scored.

    Attributes:
        records: the folder of the records.
        run_folder: the folder of the run.
    """

    records: Path
    run_folder: Path

    @property
    def has_run(self) -> bool:
        """Whether training has begun: the run folder holds a run."""
        return record_file(self.run_folder) is not None

    @cached_property
    def run(self) -> Run:
        """The run, loaded at first access."""
        return load_run(self.run_folder)

    def keep_run(self, run: Run) -> None:
        """Keep this run, whose model is in memory, instead of loading it from disk."""
        self.__dict__["run"] = run

    @property
    def spec(self) -> EntrySpec | None:
        """The specification of the run; None: no work has begun."""
        return self._read(SPEC, EntrySpec)

    @property
    def trained(self) -> TrainedEntry | None:
        """The training record; None: training is not complete, or the run has since been trained further."""
        found = self._read(TRAINED, TrainedEntry)
        if found is None or not self.has_run:
            return found  # a run on another machine: only its records are here
        return found if self.run.record.model.sha256 == found.weights_sha256 else None

    @property
    def measured(self) -> MeasuredEntry | None:
        """The score record of these weights, on any text; None: there is none, or its file of scores is missing."""
        trained, found = self.trained, self._read(MEASURED, MeasuredEntry)
        if trained is None or found is None or found.weights_sha256 != trained.weights_sha256:
            return None
        return found if not found.scores_sha256 or (self.records / SCORES).exists() else None

    @property
    def look(self) -> CloseLook | None:
        """The examination on the scored text; None: not examined yet."""
        return None if self.measured is None else self._read(LOOK, CloseLook)

    def result(self, chosen: Spread) -> Result:
        """Return the result on the text that was scored, made from the saved scores."""
        measured = self.measured
        assert measured is not None, "only a measured entry has a result"
        if SCORES not in self._in_memory:
            self._in_memory[SCORES] = read_result(self.records / SCORES, measured, chosen, self.run.tokenizer)
        result: Result = self._in_memory[SCORES]
        return result

    def write_spec(self, spec: EntrySpec) -> None:
        """Write the specification, before any work begins."""
        self._write(SPEC, spec)

    def write_trained(self, trained: TrainedEntry) -> None:
        """Write the record of complete training."""
        self._write(TRAINED, trained)

    def write_measured(self, measured: MeasuredEntry) -> None:
        """Write a score record, after deleting the examination of any earlier one."""
        self._drop(LOOK)
        self._write(MEASURED, measured)

    def write_result(self, result: Result) -> str:
        """Write the scores of a result, and return the SHA-256 of their file. The score record must be written afterwards."""
        self._drop(MEASURED)  # since its hash is that of the replaced file
        sha256 = write_scores(self.records / SCORES, result.scored)
        self._in_memory[SCORES] = result
        return sha256

    def write_look(self, look: CloseLook, *, keep: bool = True) -> None:
        """Write an examination. keep: False keeps it only in memory, because it is shorter than usual."""
        if keep:
            write_record(self.records / LOOK, look)
        self._in_memory[LOOK] = look

    def take(self, trained: TrainedEntry | None, measured: MeasuredEntry | None) -> None:
        """Accept the records of another process, and write those that are missing on this disk."""
        self.__dict__.pop("run", None)
        self._in_memory.clear()
        if trained is not None and self.trained is None:
            self.write_trained(trained)
        if measured is not None and self.measured is None:
            self.write_measured(measured)

    @cached_property
    def _in_memory(self) -> dict[str, Any]:
        return {}

    def _read(self, name: str, kind: type[T]) -> T | None:
        if name not in self._in_memory:
            found = read_record(self.records / name, kind)
            if found is None:
                return None
            self._in_memory[name] = found
        record: T = self._in_memory[name]
        return record

    def _write(self, name: str, record: Any) -> None:
        write_record(self.records / name, record)
        self._in_memory[name] = record

    def _drop(self, name: str) -> None:
        (self.records / name).unlink(missing_ok=True)
        self._in_memory.pop(name, None)


def write_record(path: Path, record: Any) -> None:
    """Write a record as JSON, atomically."""
    write_atomically(path, json.dumps(to_json(record), indent=1, allow_nan=False).encode())


def read_record(path: Path, kind: type[T]) -> T | None:
    """Read a record from its file.

    Returns:
        The record; None if there is no file.

    Raises:
        Mistake: the file is damaged.
    """
    try:
        return from_json(kind, json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, StopIteration):
        raise Mistake(
            f"{path} is damaged; delete it to do its part again, or name a new folder with {{out}}",
            code="comparison-record-damaged",
            out=None,
        ) from None
