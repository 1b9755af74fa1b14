"""`lmlab.export`: a model in a form that other tools read."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.config import Mistake, an
from lmlab.disk.files import free_file

if TYPE_CHECKING:
    from lmlab.learn.run import Run

KENLM_ORDER = 6  # KENLM_MAX_ORDER of a build that says nothing


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A file that other tools read, written from a run."""

    output: str
    format: str
    bytes: int
    ngrams: list[int]  # how many of each order, special symbols included

    @property
    def note(self) -> str:
        """What to know before another tool reads it; empty: nothing."""
        if len(self.ngrams) <= KENLM_ORDER:
            return ""
        return (
            f"this model has order {len(self.ngrams)}, and KenLM as it is installed reads {KENLM_ORDER} at most: build it with"
            f" -DKENLM_MAX_ORDER={len(self.ngrams)}, or fit a shorter model to the same text here"
        )


def export(run: Run | str | Path, *, out: str | Path, order: int | None = None, force: bool = False) -> Exported:
    """Write an n-gram model as an ARPA file, which KenLM, SRILM and others read with the same log-probabilities.

    order: of the n-grams; a model of another order is fitted to the training text of the run. None: that of the run.
    """
    target = free_file(out, force)
    from lmlab.exchange.arpa import write_arpa
    from lmlab.learn.fit import stream_folder
    from lmlab.learn.run import opened
    from lmlab.models.ngram import NGram
    from lmlab.text.stream import tokenize

    run = opened(run)
    model = run.model
    if not isinstance(model, NGram):
        raise Mistake(
            f"{run.folder} holds {an(model.name)} model; only ngram models can be written as an ARPA file",
            code="arpa-needs-ngram",
        )
    if order is not None and order != model.config.order:
        config = dataclasses.replace(model.config, order=order)  # Mistake if there is no such order
        stream = tokenize(run.corpus.train, run.tokenizer, stream_folder())
        model = NGram.fit(config, run.tokenizer.vocabulary, stream)
    counts = write_arpa(model, run.tokenizer.vocabulary, target)
    return Exported(output=str(target), format="arpa", bytes=target.stat().st_size, ngrams=counts)
