"""Random small configs of any kind of model, from the types of its settings."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from lmlab.models.registry import model_class

MOST = 7  # of a size that nothing else bounds
BOUNDED = {"layers": 3, "kernel": 3, "languages": 3}


def of(name: str) -> st.SearchStrategy[Any]:
    """Whole configs of a kind of model, every choice among them."""
    cls = model_class(name)
    hints = typing.get_type_hints(cls.Config)
    fields = {field.name: _values(field.name, hints[field.name]) for field in dataclasses.fields(cls.Config)}
    mend = MENDED.get(name, lambda values: values)
    return st.fixed_dictionaries(fields).map(lambda values: cls.Config(**mend(values)))


def _values(field: str, hint: Any) -> st.SearchStrategy[Any]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(m for m in typing.get_args(hint) if m is not type(None))
    if typing.get_origin(hint) is typing.Literal:
        return st.sampled_from(typing.get_args(hint))
    if hint is bool:
        return st.booleans()
    if hint is int:
        return st.integers(1, BOUNDED.get(field, MOST))
    return st.just(0.0) if hint is float else st.none()


def _gpt(values: dict[str, Any]) -> dict[str, Any]:
    """Heads divide the width and are even, since rotary positions turn pairs; those of keys and values divide the heads."""
    shared = values.pop("kv_heads")
    values |= {"width": 2 * values["heads"] * values["layers"], "stride": 1, "context": 2 + values["context"]}
    values |= {"kv_heads": next(n for n in range(shared, 0, -1) if values["heads"] % n == 0)}
    values |= {"head_width": 2 * values["head_width"], "norm_epsilon": 1e-6, "embedding_scale": None}
    return values | {"rotary_base": 10_000.0, "rotary_share": 1.0}


def _translator(values: dict[str, Any]) -> dict[str, Any]:
    """Heads divide the width, and a sentence of a few tokens is within the context."""
    return values | {"width": values["heads"] * values["layers"], "context": 5 + values["context"]}


def _tied(values: dict[str, Any]) -> dict[str, Any]:
    return values | {"embedding_width": values["width"]} if values["tie"] else values


def _no_vectors(values: dict[str, Any]) -> dict[str, Any]:
    return values | {name: False for name in ("freeze_vectors", "frozen") if name in values}


def _encoder(values: dict[str, Any]) -> dict[str, Any]:
    """Heads divide the width, and there is room for a few tokens."""
    return values | {"width": values["heads"] * values["layers"], "context": 7 + values["context"]}


MENDED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "gpt": _gpt,
    "translator": _translator,
    "rnn": _tied,
    "gru": _tied,
    "lstm": _tied,
    "rnn-attention": _tied,
    "variational": _tied,
    "bigram": _no_vectors,
    "dan": _no_vectors,
    "bert": _encoder,
    "glove": lambda values: values | {"most": 1.0},
    "classifier": lambda values: _encoder(values) | {"symbols": True},
}
