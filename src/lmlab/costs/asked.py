"""What `lmlab count` was asked for: a kind of model, one that counts with its text, or a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmlab.config import Mistake, make
from lmlab.costs.counting import Count, count_config, count_file, count_learned, count_stored
from lmlab.interface import CountModel, Learner
from lmlab.learn.run import load_run
from lmlab.learn.train import stream_folder
from lmlab.models.mix import Mix
from lmlab.models.registry import KINDS, Way, kind_of, trainable_kind
from lmlab.text.corpus import read
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import train_tokenizer


def count(
    model: str | Path,
    text: str | Path | None,
    *,
    settings: Mapping[str, Any] | None,
    vocab_size: int,
    length: int | None,
    tokenizer: str,
) -> Count:
    """See `lmlab.count`."""
    if str(model) not in KINDS and Path(model).is_dir():  # a folder gpt is ./gpt
        return _of_run(Path(model), settings, length)
    name = str(model)
    if name.endswith(".json"):
        if text is not None:
            raise Mistake("a config file says all that is counted: leave the text out")
        return count_file(Path(name), settings, length=length)
    if trainable_kind(name).way is Way.COUNTS:
        return _fitted(name, text, settings, tokenizer)
    if text is not None:
        raise Mistake(
            f"{name} learns its weights, however long the text: leave the text out, and give {{vocab}}", vocab=256
        )
    return count_learned(name, settings, vocab_size=vocab_size, length=length)


def _of_run(folder: Path, settings: Mapping[str, Any] | None, length: int | None) -> Count:
    if settings:
        raise Mistake(f"{folder} is a run, whose settings stand; leave them out, or count a kind of model")
    model = load_run(folder).model
    if isinstance(model, CountModel):
        return count_stored(model)
    if isinstance(model, Mix):
        raise Mistake(f"{folder} holds a mix, which costs what its parts cost; count the runs it was made of")
    assert isinstance(model, Learner)
    return count_config(type(model), model.config, model.vocab_size, length)


def _fitted(name: str, text: str | Path | None, settings: Mapping[str, Any] | None, tokenizer: str) -> Count:
    cls = kind_of(name).load()
    assert issubclass(cls, CountModel)
    config: Any = make(cls.Config, settings or {}, name)
    if text is None:
        raise Mistake(f"what {name} stores depends on its text: name one behind it, such as sotu or a file")
    part = read(text, split=(100, 0, 0)).train
    tokens = train_tokenizer(tokenizer, part.pieces())
    return count_stored(cls.fit(config, tokens.vocabulary, tokenize(part, tokens, stream_folder())))
