"""Messages to the user of a run: the state of its weights, and the command to type next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.config import Mistake
from lmlab.disk.files import as_typed

if TYPE_CHECKING:
    from lmlab.learn.run import Run


def how_to_resume(folder: Path) -> str:
    """Return the command that resumes a run."""
    return f"lmlab train --resume --out {as_typed(folder)}"


def how_to_use(run: Run, folder: str | None = None) -> str:
    """Return the command that uses a trained run.

    Args:
        run: the trained run.
        folder: the name of its folder in the command; None: its path.
    """
    from lmlab.models.registry import kind_of

    use = kind_of(run.record.model.name).use
    return f"lmlab {use.replace('RUN', as_typed(folder or run.folder), 1)}"


def what_is_kept(run: Run) -> str:
    """Return a sentence for a stopped training: what is saved, and the command to type next."""
    if run.status != "unfinished":
        return f"{run.folder} had come to its end and is saved: {how_to_use(run)}"
    kept = "is kept up to its last checkpoint" if run.checkpoint.exists() else "has learned nothing yet"
    return f"{run.folder} {kept}; go on with: {how_to_resume(run.folder)}"


def weights_warning(run: Run) -> str:
    """Return a warning about the weights of a run; empty if the run finished normally."""
    if run.learned_nothing:
        return f"{run.folder} has learned nothing: {run.record.result.message}"
    if run.status == "diverged":
        return f"{run.folder} diverged before its time was up: {run.record.result.message}"
    if run.status != "unfinished":
        return ""
    from lmlab.learn.checkpoint import read_progress

    progress = read_progress(run.checkpoint)
    step = ""
    if progress is not None:
        step = f", of step {progress.steps if progress.best_nats is None else progress.best_step}"
    resume = how_to_resume(run.folder)
    return f"{run.folder} is unfinished: these are its best weights so far{step}; go on with: {resume}"


def require_trained(run: Run) -> Run:
    """Return the run if it was trained.

    Raises:
        Mistake: training changed nothing, so a measurement would not represent the kind of model.
    """
    if run.learned_nothing:
        raise Mistake(f"{run.status}: {run.record.result.message}", code="nothing-learned")
    return run
