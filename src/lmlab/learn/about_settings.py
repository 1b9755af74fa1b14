"""Every setting of a model and of its training: what it means, its default, and what it comes to for a text and a budget."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import textwrap
import tokenize
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmlab.config import Budget, Mistake, make
from lmlab.interface import CountModel, TextLearner
from lmlab.learn.choose_optimizer import method_for, optimizer_for
from lmlab.learn.fit import hardware_for, stream_folder, task_of
from lmlab.learn.settings import OWN_OPTIONS, TrainConfig, refuse_if_it_counts, training_config
from lmlab.learn.train import sized_on_text, tokenizer_for, with_rows
from lmlab.models.registry import Way, trainable_kind
from lmlab.text.corpus import Corpus, read
from lmlab.text.files_and_folders import Text
from lmlab.text.splitting import SplitBy
from lmlab.text.stream import tokenize as token_stream


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting. here: what it comes to for the text and budget that were given; None: none were, or it has no value."""

    name: str
    kind: str  # "a whole number", "rotary | learned"
    default: Any  # None: chosen to suit the text and the budget
    meaning: str
    here: Any = None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a kind of model. text, budget: what `here` is for, where anything was asked for."""

    model: str
    about: str
    settings: list[Setting]  # of the model
    learning: list[Setting]  # of the training loop; none where the model counts
    text: str | None = None
    tokenizer: str | None = None
    budget: str | None = None
    parameters: int | None = None

    @property
    def by_the_clock(self) -> bool:
        """Whether sizes follow from how fast the machine was just now, so that they may be others a moment later."""
        return bool(self.learning) and self.budget is not None and Budget.parse(self.budget).seconds is not None


def settings(
    model: str,
    text: str | Path | Sequence[str | Path] | Corpus | None = None,
    *,
    tokenizer: str | None = None,
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
) -> Settings:
    """Every setting of a model and of its training, with its default and what it means.

    With a text, also what each comes to when `train` is called with the same arguments; nothing is trained for it, but for a
    budget of seconds some steps are timed, and a model that counts does count.
    """
    kind = trainable_kind(model)
    refuse_if_it_counts(model, learning=learning)
    cls: Any = kind.load()
    config: Any = make(cls.Config, settings or {}, model)
    budget = Budget.parse(budget)
    train_config = training_config(budget, seed, learning or {})
    learns = kind.way is Way.LEARNS
    bare = Settings(
        model=model,
        about=kind.about,
        settings=_described(cls.Config),
        learning=_described(TrainConfig, leave_out=OWN_OPTIONS) if learns else [],
    )
    if text is None:
        return bare
    if not issubclass(cls, CountModel | TextLearner):
        raise Mistake(
            f"what the settings of {model} come to is said for a plain text only; leave the text out",
            code="settings-of-plain-text-only",
        )
    corpus = (
        text
        if isinstance(text, Corpus)
        else read(text, valid=valid, test=test, split=split, split_by=split_by, seed=seed)
    )
    tokens = tokenizer_for(cls, tokenizer, corpus)
    stream = token_stream(corpus.train, tokens, stream_folder())
    train_config = dataclasses.replace(train_config, budget=budget.over(stream.tokens))
    loop: dict[str, Any] = {}
    if issubclass(cls, CountModel):
        fitted = cls.fit(config, tokens.vocabulary, stream)
        config, parameters = fitted.config, fitted.parameters_count
    else:
        hardware = hardware_for(train_config, device, precision)
        config, plan = sized_on_text(cls, config, tokens, stream, train_config, hardware)
        made = cls(config, tokens.vocab_size)
        train_config = train_config if plan is None else with_rows(train_config, made, hardware, plan.rows)
        task, parameters = task_of(made, tokens, None, stream, train_config, hardware), made.parameters_count
        loop = dataclasses.asdict(train_config)
        optimizer = optimizer_for(made, task, train_config, hardware).config
        loop["optimizer"] = method_for(made, train_config)
        chosen = ("learning_rate", "matrix_learning_rate", "matrix_every", "weight_decay")
        loop |= {name: getattr(optimizer, name) for name in chosen}
        loop |= {"rows": task.rows, "length": task.length, "stepping": hardware.stepping}
        loop["micro_batches"] = train_config.micro_batches or 1
    found = dataclasses.asdict(config)
    return dataclasses.replace(
        bare,
        settings=[dataclasses.replace(s, here=found[s.name]) for s in bare.settings],
        learning=[dataclasses.replace(s, here=loop[s.name]) for s in bare.learning],
        text=corpus.name,
        tokenizer=tokens.spec,
        budget=str(budget),
        parameters=parameters,
    )


def _described(config_class: type, leave_out: Sequence[str] = ()) -> list[Setting]:
    hints, said = typing.get_type_hints(config_class), meanings(config_class)
    return [
        Setting(
            name=field.name,
            kind=_kind(hints[field.name]),
            default=None if field.default is dataclasses.MISSING else field.default,
            meaning=said.get(field.name, ""),
        )
        for field in dataclasses.fields(config_class)
        if field.name not in leave_out
    ]


def _kind(hint: Any) -> str:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(member for member in typing.get_args(hint) if member is not types.NoneType)
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(map(str, typing.get_args(hint)))
    return {bool: "true | false", int: "a whole number", float: "a number", str: "a text"}.get(hint, str(hint))


def meanings(config_class: type) -> dict[str, str]:
    """What each field is, as the comment beside it says: so it is written once, by whoever writes the model."""
    found: dict[str, str] = {}
    for part in reversed(config_class.__mro__[:-1]):
        found |= _own_meanings(part)
    return found


def _own_meanings(config_class: type) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(config_class))
    except OSError:  # a class that was typed into a console
        return {}
    comments = {
        token.start[0]: token.string.lstrip("# ").strip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and "noqa" not in token.string
    }
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            found[node.target.id] = " ".join(comments[line] for line in lines if line in comments)
    return found
