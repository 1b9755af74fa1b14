"""`lmlab.export`: a model in a form that other tools read."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from lmlab.config import Mistake, an
from lmlab.disk.files import free_file

if TYPE_CHECKING:
    from lmlab.learn.run import Run

Format = Literal["arpa", "hf", "gguf"]
KENLM_ORDER = 6  # KENLM_MAX_ORDER of a build that says nothing


@dataclass(frozen=True, kw_only=True)
class Exported:
    """Files that other tools read, written from a run."""

    output: str
    format: str
    bytes: int
    ngrams: list[int] = field(default_factory=list)  # ARPA: how many of each order, special symbols included
    architecture: str = ""  # of a Transformer, as other tools call it

    @property
    def note(self) -> str:
        """What to know before another tool reads it; empty: nothing."""
        if len(self.ngrams) <= KENLM_ORDER:
            return ""
        return (
            f"this model has order {len(self.ngrams)}, and KenLM as it is installed reads {KENLM_ORDER} at most: build it with"
            f" -DKENLM_MAX_ORDER={len(self.ngrams)}, or fit a shorter model to the same text here"
        )


def export(
    run: Run | str | Path, *, out: str | Path, to: str = "arpa", order: int | None = None, force: bool = False
) -> Exported:
    """Write a model in a format of other tools, and check that it predicts the same there.

    Args:
        run: the run, or its folder.
        out: the file to write; for "hf" a new folder.
        to: "arpa" for an n-gram model (KenLM and SRILM read it), "hf" for a folder that transformers loads, "gguf" for a
            file that llama.cpp loads.
        order: of the n-grams of an ARPA file; a model of another order is fitted to the training text. None: that of the run.
        force: replace a file that exists.

    Raises:
        Mistake: the model has no counterpart in the format; the message says why.
    """
    if to not in get_args(Format):
        raise Mistake(f"{{to}} is {', '.join(get_args(Format))}; got {to!r}", code="export-format-unknown", to=None)
    from lmlab.learn.run import opened

    if to == "hf":
        from lmlab.exchange.write_folder import write_folder

        run = opened(run)
        folder, architecture = write_folder(run, Path(out))
        size = sum(path.stat().st_size for path in folder.iterdir())
        return Exported(output=str(folder), format=to, bytes=size, architecture=architecture)
    target = free_file(out, force)
    run = opened(run)
    if to == "gguf":
        from lmlab.exchange.write_gguf import write_gguf

        architecture = write_gguf(run, target)
        return Exported(output=str(target), format=to, bytes=target.stat().st_size, architecture=architecture)
    from lmlab.exchange.arpa import write_arpa
    from lmlab.learn.fit import stream_folder
    from lmlab.models.ngram import NGram
    from lmlab.text.stream import tokenize

    model = run.model
    if not isinstance(model, NGram):
        raise Mistake(
            f"{run.folder} holds {an(model.name)} model; only ngram models can be written as an ARPA file; for a"
            " Transformer type {to}",
            code="arpa-needs-ngram",
            to="hf",
        )
    if order is not None and order != model.config.order:
        config = dataclasses.replace(model.config, order=order)  # Mistake if there is no such order
        stream = tokenize(run.corpus.train, run.tokenizer, stream_folder())
        model = NGram.fit(config, run.tokenizer.vocabulary, stream)
    counts = write_arpa(model, run.tokenizer.vocabulary, target)
    return Exported(output=str(target), format="arpa", bytes=target.stat().st_size, ngrams=counts)
