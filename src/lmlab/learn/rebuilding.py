"""The reconstruction of a trained model from its record and weights, with a one-line error if they do not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmlab.config import Mistake, make, resolved_settings_of
from lmlab.learn.record import Record
from lmlab.models.registry import model_class

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.interface import Saved
    from lmlab.learn.run import Run


def rebuild_model(folder: Path, record: Record, vocab_size: int, tensors: Mapping[str, Tensor]) -> Saved:
    """Rebuild the trained model from its record and tensors.

    Args:
        folder: the run's folder, for error messages.
        record: the run's record.
        vocab_size: the vocabulary size of its tokenizer.
        tensors: the trained weights by name.

    Raises:
        Mistake: the tensors do not fit the record.
    """
    cls = model_class(record.model.name)
    settings: Any = make(cls.Config, record.model.config, cls.name)
    try:
        with _sizes_known(folder, record):
            saved: Saved = cls.from_tensors(settings, vocab_size, tensors)
    except SizesUnknown:
        raise
    except KeyError as name:
        raise Mistake(
            f"what {folder} has learned does not fit its record: {name} is missing",
            code="learned-state-incomplete",
        ) from None
    except (Mistake, RuntimeError, TypeError) as error:
        first = str(error).splitlines()[0]
        raise Mistake(
            f"what {folder} has learned does not fit its record: {first}", code="learned-state-does-not-fit"
        ) from None
    return saved


def refuse_unknown_sizes(run: Run) -> None:
    """Raise a Mistake if the record of a run lacks a size of its model, so that the run cannot be resumed."""
    import torch

    folder, record = run.folder, run.record
    vocab_size = 0 if record.inputs.tokenizer is None else run.tokenizer.vocab_size
    cls = model_class(record.model.name)
    settings: Any = make(cls.Config, record.model.config, cls.name)
    with _sizes_known(folder, record), torch.device("meta"):  # constructs without memory or time
        cls(settings, vocab_size)


class SizesUnknown(Mistake):
    """The error that a record lacks a setting that was decided before its run began."""


@contextmanager
def _sizes_known(folder: Path, record: Record) -> Iterator[None]:
    """Turn the assertion of a model whose config is unresolved into `SizesUnknown`.

    The config of a run is resolved, so an open setting means that the record is damaged.
    """
    try:
        yield
    except AssertionError:
        known = record.model.config
        gone = [name for name in resolved_settings_of(model_class(record.model.name).Config) if known.get(name) is None]
        if not gone:
            raise
        keys = " or ".join(f"model.config.{name}" for name in gone)
        raise SizesUnknown(
            f"the record of {folder} is damaged: {keys} is missing; train again", code="record-lacks-sizes"
        ) from None
