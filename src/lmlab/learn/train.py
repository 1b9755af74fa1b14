"""`lmlab.train`: from a text or a table to a trained model in a run on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmlab.config import Budget
from lmlab.learn.onlookers import Watch, watching
from lmlab.learn.pace import Timings
from lmlab.learn.prepare import prepare
from lmlab.learn.request import TrainingRequest
from lmlab.learn.run import Run
from lmlab.learn.run_files import free_folder
from lmlab.learn.settings import refuse_if_it_counts
from lmlab.models.registry import trainable_kind
from lmlab.text.corpus import Corpus
from lmlab.text.files_and_folders import Text
from lmlab.text.splitting import SplitBy
from lmlab.text.tokenizers import Tokenizer, parse_spec


def train(
    model: str,
    text: str | Path | Sequence[str | Path] | Corpus | None = None,
    *,
    out: str | Path | None = None,
    tokenizer: str | Tokenizer | None = None,
    budget: str | Budget = "3m",
    split: Sequence[float] = (80, 10, 10),
    split_by: SplitBy = "auto",
    valid: Text | None = None,
    test: Text | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    learning: Mapping[str, Any] | None = None,
    device: str = "auto",
    precision: str = "auto",
    columns: Sequence[str] | None = None,
    timings: Timings | None = None,
    watch: Watch | None = None,
    progress: bool = False,
) -> Run:
    """Train `model` on `text` and save it in the new folder `out`; if none is named, in a free one, runs/MODEL-TEXT.

    A classifier learns from a table of texts with labels, a translator from a table of languages. Settings that do not go
    together are refused before anything is written. A run that was interrupted has status "unfinished": `resume` it.

    Args:
        text: The text or table; if none is named, what the kind of model learns by default, such as "sotu".
        tokenizer: By default characters for a language model, and for other models what suits them.
        settings: Of the model (its Config).
        learning: Of the training loop (TrainConfig, budget and seed apart).
        columns: Which columns of a table are meant, if the table leaves it open.
        timings: Steps that were timed on this machine a moment ago; several trainings in a row share them.
        watch: Is told how training goes.
        progress: Print to stderr how training goes, if there is no `watch`.

    Returns:
        The run, with its model in memory.
    """
    kind = trainable_kind(model)
    refuse_if_it_counts(model, learning=learning)
    text = kind.data if text is None else text
    if isinstance(tokenizer, str):
        parse_spec(tokenizer)  # a slip is answered before the text is read
    request = TrainingRequest(
        model=model,
        data=text,
        out=free_folder(model, text) if out is None else Path(out),
        budget=Budget.parse(budget),
        split=split,
        split_by=split_by,
        valid=valid,
        test=test,
        seed=seed,
        settings=settings or {},
        learning=learning or {},
        device=device,
        precision=precision,
        tokenizer=tokenizer,
        columns=columns,
        timings=timings,
        watch=watching(watch, progress, model),
    )
    return prepare(request).learn()
