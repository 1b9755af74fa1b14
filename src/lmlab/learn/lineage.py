"""The origin of a run's weights: the runs that it continues, and the trained weights that it starts from."""

from __future__ import annotations

from dataclasses import dataclass

from lmlab.config import Mistake
from lmlab.learn.record import Ancestor
from lmlab.learn.request import TrainingRequest
from lmlab.learn.run import Run, load_run


@dataclass(frozen=True, kw_only=True)
class InitialWeights:
    """Trained weights that a run starts from instead of random ones."""

    run: Run  # the run that holds them
    calibrated: float | None  # factor of its logits after training; None: not calibrated


def initial_weights(request: TrainingRequest) -> InitialWeights | None:
    """Return the trained weights that a run starts from; None if they are random or a checkpoint exists."""
    if request.begin is not None:
        return InitialWeights(run=request.begin, calibrated=request.begin.record.result.calibrated)
    run = request.resumed
    if run is None or run.checkpoint.exists() or not run.record.training.lineage:
        return None
    last = run.record.training.lineage[-1]
    return InitialWeights(run=_source_of(run, last), calibrated=last.calibrated)


def lineage_of(request: TrainingRequest) -> tuple[Ancestor, ...]:
    """Return all trainings that the initial weights of a new run went through, oldest first."""
    begin = request.begin
    if begin is None:
        return ()
    return (*begin.record.training.lineage, ancestor_of(begin, str(begin.folder.resolve())))


def ancestor_of(run: Run, folder: str | None) -> Ancestor:
    """Return the entry for a run in the lineage of another run that starts from its weights.

    Args:
        run: the run whose weights are used.
        folder: its folder; None if the same run continues from its own weights.
    """
    record = run.record
    assert record.model.sha256 is not None
    return Ancestor(
        run=folder,
        sha256=record.model.sha256,
        corpus=record.inputs.corpus["name"],
        train_sha256=record.inputs.corpus["parts"]
        .get("train", {})
        .get("sha256", ""),  # of an imported model: not known
        budget=record.training.budget,
        steps=record.result.steps or 0,
        tokens=record.result.tokens,
        seconds=record.result.seconds,
        calibrated=record.result.calibrated,
    )


def _source_of(run: Run, ancestor: Ancestor) -> Run:
    """Return the run that holds the weights of this ancestor.

    Raises:
        Mistake: its weights have changed since.
    """
    source = run if ancestor.run is None else load_run(ancestor.run)
    if source.record.model.sha256 != ancestor.sha256:
        raise Mistake(
            f"{source.folder} no longer holds the weights that {run.folder} began with; train again",
            code="first-weights-changed",
        )
    return source
