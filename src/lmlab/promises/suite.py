"""The contract suite: every promise that applies to a model, and whether it keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from lmlab.config import Mistake
from lmlab.interface import CarriedLanguageModel, LanguageModel, NeuralLanguageModel
from lmlab.models.registry import AnyModel, language_model, name_of
from lmlab.promises.checks import OF_A_MODEL, check_long_texts_are_scored_like_short_ones
from lmlab.promises.learning import OF_CARRYING, OF_LEARNING, check_a_repeating_text_is_learned
from lmlab.promises.side_by_side import OF_REQUESTS, OF_ROWS
from lmlab.promises.subjects import TINY, TOKENIZERS, build, tokenizer
from lmlab.promises.uses import OF_ALL_STRINGS, OF_USING_IT
from lmlab.text.tokenizers import Tokenizer


@dataclass(frozen=True)
class Promise:
    """One promise of one model: its name in words, and a function that raises AssertionError where it is broken."""

    name: str
    check: Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Whether a promise was kept, over one tokenizer; `detail` says how it was broken."""

    promise: str
    tokenizer: str
    kept: bool
    detail: str = ""


def promises(model: LanguageModel, tokens: Tokenizer, *, tiny: bool) -> list[Promise]:
    """All that apply to this model. tiny: whether all strings of a few tokens can be listed."""
    found = [_promise(check, model) for check in OF_A_MODEL + OF_ROWS]
    of_use = OF_USING_IT + OF_REQUESTS + (OF_ALL_STRINGS if tiny else ())
    found += [_promise(check, model, tokens) for check in of_use]
    if isinstance(model, NeuralLanguageModel):
        found += [_promise(check, model) for check in OF_LEARNING]
    if isinstance(model, CarriedLanguageModel):
        found += [_promise(check, model) for check in OF_CARRYING]
    return found


def _promise(check: Callable[..., None], *subjects: object) -> Promise:
    return Promise(check.__name__.removeprefix("check_").replace("_", " "), partial(check, *subjects))


def run(name: str, settings: Mapping[str, Any] | None = None) -> Iterator[Finding]:
    """Hold a kind of model to the contract, over tokenizers of every kind, one finding after the other."""
    if not __debug__:
        raise Mistake(
            "the contract is made of assertions, and python -O leaves them out; run it without -O",
            code="contract-without-assertions",
        )
    cls: Any = language_model(name).load()
    for kind in TOKENIZERS:
        tokens = tokenizer(kind)
        model = build(cls, settings or {}, tokens)
        found = promises(model, tokens, tiny=kind == TINY)
        if kind == TINY:
            found.append(_promise(check_long_texts_are_scored_like_short_ones, model))
            if isinstance(model, NeuralLanguageModel):
                found.append(_promise(check_a_repeating_text_is_learned, model))
        for promise in found:
            yield _kept(promise, kind)


def contract(
    model: AnyModel, *, settings: Mapping[str, Any] | None = None, watch: Callable[[Finding], None] | None = None
) -> list[Finding]:
    """Hold a kind of model, ours or "package.module:Class", to what every language model promises.

    settings: of the small models that are made. watch: told of each finding as it comes.
    """
    findings = []
    for finding in run(name_of(model), settings):
        findings.append(finding)
        if watch is not None:
            watch(finding)
    return findings


def _kept(promise: Promise, kind: str) -> Finding:
    try:
        promise.check()
    except Exception as error:  # a model that crashes breaks its promise too
        said = " ".join(str(error).split())
        detail = said if isinstance(error, AssertionError) else f"{type(error).__name__}: {said}"
        return Finding(promise=promise.name, tokenizer=kind, kept=False, detail=detail)
    return Finding(promise=promise.name, tokenizer=kind, kept=True)
