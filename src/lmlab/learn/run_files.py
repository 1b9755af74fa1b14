"""Functions that write a run: its folder, its record and its weights."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmlab.config import Mistake
from lmlab.disk.files import as_typed, can_be_written, drop_unfinished, made_folder, taken_by_a_file, write_atomically
from lmlab.identity import parameter_count
from lmlab.learn import recipe
from lmlab.learn.fingerprint_files import fingerprint_file
from lmlab.learn.record import Record, Result
from lmlab.learn.run import Run, only_process_in
from lmlab.learn.run_advice import how_to_use
from lmlab.learn.run_folder import RECORD, drop_old_record, record_file
from lmlab.learn.world import SINGLE_PROCESS, World
from lmlab.models.registry import file_name
from lmlab.text.corpus import stem

if TYPE_CHECKING:
    from lmlab.interface import Saved
    from lmlab.text.corpus import Corpus
    from lmlab.text.fingerprint import Fingerprint
    from lmlab.text.tokenizers import Tokenizer


def create_run(
    folder: Path,
    record: Record,
    tokenizer: Tokenizer | None,
    learned_from: Sequence[Fingerprint] = (),
    world: World = SINGLE_PROCESS,
) -> Run:
    """Create a new, unfinished run in an empty or new folder.

    Args:
        folder: the folder of the run.
        record: the record of the run, without results.
        tokenizer: None if the task has no tokens.
        learned_from: fingerprints of all texts that its weights were and will be trained on.
        world: the processes that train it; the writer makes the folder.
    """
    if not world.is_writer:
        run = Run(folder, record)
        run.__dict__["tokenizer"] = tokenizer  # there may be no file of it yet, or none on this machine
        return run
    refuse_if_taken(folder)
    with only_process_in(made_folder(folder)):
        refuse_if_taken(folder)  # again, because another process may have created a run meanwhile
        contents = list(dict.fromkeys(text.to_bytes() for text in learned_from))
        known = tuple(hashlib.sha256(content).hexdigest() for content in contents)
        run = Run(folder, replace(record, inputs=replace(record.inputs, fingerprints=known)))
        if tokenizer is not None:
            tokenizer.save(folder)
            run.__dict__["tokenizer"] = tokenizer  # avoids loading it again, which is slow for a large one
        for number, content in enumerate(contents):
            write_atomically(folder / fingerprint_file(number), content)
        write_record(run)
    return run


def write_record(run: Run) -> None:
    """Write run.json, and delete the config.json of an older format."""
    write_atomically(run.folder / RECORD, (json.dumps(run.record.to_json(), indent=2) + "\n").encode())
    drop_old_record(run.folder)  # a kill before this line leaves both; readers prefer run.json


def finish_run(run: Run, model: Saved, config: dict[str, Any], result: Result) -> None:
    """Write the weights, then the record with their hash, then delete the files that were only needed to resume."""
    from torch.nn import Module

    from lmlab.learn.weights_file import write_weights

    weights = run.folder / "model.safetensors"
    sha256, identity = write_weights(model, weights, run.tokenizer)
    trained = replace(
        run.record.model, config=config, parameters=parameter_count(model), sha256=sha256, identity=identity
    )
    run.record = replace(run.record, model=trained, result=result)
    write_atomically(run.folder / "README.md", _readme(run).encode())
    write_atomically(run.folder / recipe.FILE, recipe.recipe_text(run.record, run.folder).encode())
    write_record(run)
    run.checkpoint.unlink(missing_ok=True)
    drop_unfinished(run.checkpoint)
    drop_unfinished(weights)
    run.__dict__["saved"] = model.to("cpu") if isinstance(model, Module) else model


def copy_finished_run(run: Run, folder: Path) -> None:
    """Copy a finished run into a folder that may hold other files. run.json comes last, so a kill leaves no half run."""
    made_folder(folder)
    for path in sorted(run.folder.iterdir()):
        if path.is_file() and path.name not in (RECORD, "README.md") and not path.name.startswith("."):
            part = folder / f".{path.name}.copy"
            shutil.copyfile(path, part)
            part.replace(folder / path.name)
    copied = Run(folder, run.record)
    write_atomically(folder / "README.md", _readme(copied).encode())
    write_record(copied)


def _readme(run: Run) -> str:
    """Return the text of the run's README.md."""
    record, folder = run.record, as_typed(run.folder.name)
    settings = "\n".join(f"- {key}: {value}" for key, value in record.model.config.items())
    return (
        f"# {record.model.name} on {record.inputs.corpus['name']}\n\n"
        f"Trained by lmlab {record.lmlab} with the `{record.inputs.tokenizer}` tokenizer;"
        f" {record.model.parameters:,} parameters; {run.status}.\n\n"
        f"    lmlab eval {folder}\n    {how_to_use(run, run.folder.name)}\n\n"
        f"Settings\n\n{settings}\n"
    )


def free_folder(name: str, text: str | Path | Sequence[str | Path] | Corpus) -> Path:
    """Return runs/NAME-TEXT, or the first of runs/NAME-TEXT-2, -3, … that does not exist."""
    called = f"{file_name(name)}-{stem(text)}"
    folder, number = Path("runs") / called, 2
    while folder.exists():
        folder, number = Path("runs") / f"{called}-{number}", number + 1
    return folder


def refuse_if_taken(folder: Path, *, can_go_on: bool = True) -> None:
    """Raise a Mistake unless `folder` is new or empty, because a run never overwrites a file.

    Args:
        folder: the folder for the run.
        can_go_on: whether the message may suggest to resume a run that is in the folder.
    """
    if taken := taken_by_a_file(folder):
        raise Mistake(
            f"{taken} is a file, and nothing can be in it; name a new folder for the run", code="run-folder-below-file"
        )
    if str(folder) == "-":
        raise Mistake(f"{folder} is no folder; name a new folder for the run", code="run-folder-is-file")
    if not can_be_written(folder):
        raise Mistake(
            f"nothing can be written in {folder}; name a new folder for the run elsewhere",
            code="run-folder-not-writable",
        )
    # A kill in the first moments leaves files of the tokenizer without a run.json.
    beginnings = {"tokenizer.json", "spelling.json", fingerprint_file(0)}
    if folder.is_dir() and {path.name for path in folder.iterdir() if not path.name.startswith(".")} - beginnings:
        is_run = can_go_on and record_file(folder) is not None
        instead = ", or go on with the one in it: {resume} {out}" if is_run else ""
        raise Mistake(
            f"{folder} is not empty; name a new folder for the run{instead}",
            code="run-folder-not-empty",
            resume=None,
            out=str(folder),
        )
