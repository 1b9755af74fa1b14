"""The points of a grid, and the specification of each run: one per point and seed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from lmlab.comparison.entry_records import EntrySpec
from lmlab.config import Mistake, nearest, our_setting, parse_settings, settings_of
from lmlab.learn.settings import LEARNING, OWN_OPTIONS, parse_learning
from lmlab.models.registry import Way, file_name, kind_of, trainable_kind
from lmlab.other_names import about_setting
from lmlab.text.corpus import Corpus
from lmlab.text.tokenizers import plain_spec

Point = Mapping[str, Any]  # one value for each axis: settings of the model or of the training loop, or the tokenizer

TOKENIZER = "tokenizer"


def grid(model: str, over: Sequence[str] | Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the points of a grid.

    Args:
        model: the model whose settings the axes name.
        over: the axes, as {"layers": [2, 4], "tokenizer": ["char", "words"]} or ["layers=2,4", "tokenizer=char,words"].
    """
    axes: dict[str, list[Any]] = {}
    written = over if not isinstance(over, Mapping) else [f"{k}={','.join(map(str, v))}" for k, v in over.items()]
    for axis in written:
        key, equals, values = (part.strip() for part in axis.partition("="))
        if not equals or not all(value.strip() for value in values.split(",")):
            raise Mistake(
                f"{{over}} is key=value,value,…, such as layers=2,4; got {axis!r}",
                code="over-not-understood",
                over=None,
            )
        key = our_setting(key, [*settings_of(trainable_kind(model).load().Config), *LEARNING, TOKENIZER], {})
        typed = [_typed(model, key, value.strip()) for value in values.split(",")]
        if key in axes or len(set(typed)) < len(typed):
            raise Mistake(
                f"{{over}} repeats {axis}; name every axis once, and every value of it once",
                code="over-repeats",
                over=None,
            )
        axes[key] = typed
    if not axes:
        raise Mistake("name at least one axis, such as {over}", code="no-axis", over="layers=2,4")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _typed(model: str, key: str, value: str) -> Any:
    """Parse a value of an axis with the type of its setting."""
    if key == TOKENIZER:
        return plain_spec(value)
    config = trainable_kind(model).load().Config
    if key in settings_of(config):
        return parse_settings(config, [f"{key}={value}"], model)[key]
    if key in OWN_OPTIONS:
        raise Mistake(
            "every cell has the same {budget}, and {seeds} says how many seeds; name another axis",
            code="axis-is-an-option",
            budget=None,
            seeds=None,
        )
    if key in LEARNING:
        if kind_of(model).way is Way.COUNTS:
            raise Mistake(
                f"{model} counts, and {key} is a setting of learning; name another axis with {{over}}",
                code="axis-of-a-counting-model",
                over=None,
            )
        return parse_learning([f"{key}={value}"])[key]
    where, settings = about_setting(key, value, settings_of(config))
    raise Mistake(
        f"{model} has no setting {key!r}; {where or nearest(key, [*settings_of(config), *LEARNING, TOKENIZER])}",
        code="axis-unknown",
        **settings,
    )


def specs_of(
    model: str,
    corpus: Corpus,
    points: Sequence[Point],
    *,
    fixed: Mapping[str, Any],
    learning: Mapping[str, Any] | None = None,
    tokenizer: str,
    budget: str,
    seeds: int,
    device: str = "cpu",
) -> dict[str, tuple[Point, EntrySpec]]:
    """Return the point and the specification of each run, by name. fixed, learning: settings that all points share."""
    found = {}
    for point in points:
        for seed in range(seeds):
            name = file_name("-".join(f"{k}={v}" for k, v in point.items()) + f"-seed{seed}")
            spec = EntrySpec(
                name=name,
                model=model,
                tokenizer=point.get(TOKENIZER, tokenizer),
                text={called: part.sha256 for called, part in corpus.parts.items()},
                settings={**fixed, **{k: v for k, v in point.items() if k not in LEARNING and k != TOKENIZER}},
                learning={**(learning or {}), **{k: v for k, v in point.items() if k in LEARNING}},
                budget=budget,
                seed=seed,
                device=device,
            )
            found[name] = (point, spec)
    return found
