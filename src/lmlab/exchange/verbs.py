"""`lmlab.export`: a model in a form that other tools read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.config import Mistake, an
from lmlab.disk.files import free_file

if TYPE_CHECKING:
    from lmlab.learn.run import Run


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A file that other tools read, written from a run."""

    output: str
    format: str
    bytes: int
    ngrams: list[int]  # how many of each order, special symbols included


def export(run: Run | str | Path, *, out: str | Path, force: bool = False) -> Exported:
    """Write an n-gram model as an ARPA file, which KenLM, SRILM and others read with the same log-probabilities."""
    target = free_file(out, force)
    from lmlab.exchange.arpa import write_arpa
    from lmlab.learn.run import opened
    from lmlab.models.ngram import NGram

    run = opened(run)
    model = run.model
    if not isinstance(model, NGram):
        raise Mistake(
            f"{run.folder} holds {an(model.name)} model; only ngram models can be written as an ARPA file",
            code="arpa-needs-ngram",
        )
    counts = write_arpa(model, run.tokenizer.vocabulary, target)
    return Exported(output=str(target), format="arpa", bytes=target.stat().st_size, ngrams=counts)
