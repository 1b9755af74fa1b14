"""What `lmlab count` was asked for: a kind of model, one that counts with its text, or a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from lmlab.config import Mistake, make
from lmlab.costs.counting import Count, count_config, count_file, count_learned, count_stored
from lmlab.costs.memory import Step, measure, predict, remembered
from lmlab.formulas import Shape
from lmlab.hardware.choice import choose_device
from lmlab.hardware.memory import available_bytes
from lmlab.interface import CountModel, Learner, NeuralLanguageModel
from lmlab.learn.fit import stream_folder
from lmlab.learn.run import load_run
from lmlab.learn.run_folder import OLD_RECORD, is_of_huggingface
from lmlab.models.mix import Mix
from lmlab.models.registry import KINDS, Way, kind_of, trainable_kind
from lmlab.text.corpus import read
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import tokenizer_for


def count(
    model: str | Path,
    text: str | Path | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    vocab: int | None = None,
    length: int | None = None,
    tokenizer: str | None = None,
    memory: bool = False,
    device: str = "cpu",
) -> Count:
    """What a model is made of and what it multiplies: by formula, by an instance, and by PyTorch's own count.

    model: a kind of model, the folder of a run, or a config.json of Hugging Face transformers. text: for a model that
    counts, what it is fitted to, in tokens of `tokenizer` ("char" if None). vocab: tokens of the vocabulary, for a kind of
    model that learns (256 if None). length: tokens of the sequence whose operations are counted.
    memory: of a training step too, predicted, and measured on `device`.
    """
    found = _count(model, text, settings=settings, vocab_size=vocab, length=length, tokenizer=tokenizer)
    if not memory:
        return found
    kind = kind_of(found.model).load() if found.model in KINDS or ":" in found.model else None
    if kind is None or not issubclass(kind, NeuralLanguageModel):
        raise Mistake(
            "{memory} is of a training step: name a language model of the lab that learns",
            code="memory-without-learner",
            memory=True,
        )
    return dataclasses.replace(found, memory=_memory(kind, found, choose_device(device).type))


def _memory(kind: type[NeuralLanguageModel], found: Count, device: str) -> dict[str, int]:
    """Predicted; and measured where that leaves half of this machine's memory alone."""
    config: Any = make(kind.Config, found.settings, found.model)
    with torch.device("meta"):
        rows, length = kind(config, found.vocab_size).batch_shape
    shape = Shape(rows, min(length, found.length or length))
    step = Step(model=kind, config=config, vocab_size=found.vocab_size, shape=shape, device=device)
    predicted = predict(step)
    known = {"rows": shape.rows, "length": shape.tokens, **predicted.to_json(), "remembered": remembered(step)}
    free = available_bytes()
    if device != "cpu" or free is None or 2 * predicted.peak < free:
        known["measured_peak"] = measure(step)
    return known


def _count(
    model: str | Path,
    text: str | Path | None,
    *,
    settings: Mapping[str, Any] | None,
    vocab_size: int | None,
    length: int | None,
    tokenizer: str | None,
) -> Count:
    given = {"text": text, "vocab": vocab_size, "tokenizer": tokenizer}
    if str(model) not in KINDS and Path(model).is_dir():  # a folder gpt is ./gpt
        _refuse(given, f"{model} is a run, whose text and tokens stand")
        if is_of_huggingface(Path(model)):
            return count_file(Path(model) / OLD_RECORD, settings, length=length)
        return _of_run(Path(model), settings, length)
    name = str(model)
    if name.endswith(".json"):
        _refuse(given, "a config file says all that is counted, and another value of it is given by {settings}")
        return count_file(Path(name), settings, length=length)
    if trainable_kind(name).way is Way.COUNTS:
        _refuse({"vocab": vocab_size}, "a text has its own vocabulary, by its {tokenizer}")
        return _fitted(name, text, settings, tokenizer or "char")
    _refuse({"text": text, "tokenizer": tokenizer}, f"{name} learns its weights, however long the text; give {{vocab}}")
    return count_learned(name, settings, vocab_size=256 if vocab_size is None else vocab_size, length=length)


def _refuse(given: Mapping[str, object], why: str) -> None:
    """A Mistake for what was given and would change nothing."""
    if name := next((name for name, value in given.items() if value is not None), None):
        option = "the text" if name == "text" else f"{{{name}}}"
        known = {"vocab": None, "tokenizer": None, "settings": None}
        raise Mistake(f"{why}: leave {option} out", code="option-changes-no-count", **known)


def _of_run(folder: Path, settings: Mapping[str, Any] | None, length: int | None) -> Count:
    if settings:
        raise Mistake(
            f"{folder} is a run, whose settings stand; leave them out, or count a kind of model",
            code="settings-of-a-run",
        )
    model = load_run(folder).model
    if isinstance(model, CountModel):
        return count_stored(model)
    if isinstance(model, Mix):
        raise Mistake(
            f"{folder} holds a mix, which costs what its parts cost; count the runs it was made of",
            code="costs-of-a-mix",
        )
    assert isinstance(model, Learner)
    return count_config(type(model), model.config, model.vocab_size, length)


def _fitted(name: str, text: str | Path | None, settings: Mapping[str, Any] | None, tokenizer: str) -> Count:
    cls = kind_of(name).load()
    assert issubclass(cls, CountModel)
    config: Any = make(cls.Config, settings or {}, name)
    if text is None:
        raise Mistake(
            f"what {name} stores depends on its text: name one behind it, such as sotu or a file",
            code="costs-without-text",
        )
    corpus = read(text, documents="auto")  # as `train` divides it: what it stores is what the model of that text stores
    tokens = tokenizer_for(corpus, tokenizer)
    return count_stored(cls.fit(config, tokens.vocabulary, tokenize(corpus.train, tokens, stream_folder())))
