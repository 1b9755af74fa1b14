"""Descriptions of every setting of a model and its training: meaning, default, and value for a given text and budget."""

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

from lmlab.config import Budget, Mistake, with_our_names
from lmlab.hardware.execution_plan import ExecutionPlan
from lmlab.learn.choose_optimizer import method_for, optimizer_for
from lmlab.learn.loop import Trainer
from lmlab.learn.next_token import NextToken
from lmlab.learn.onlookers import Silent
from lmlab.learn.planning import rehearsed
from lmlab.learn.prepare import prepare, reads_plain_text
from lmlab.learn.prepared import PreparedCount, PreparedLearner
from lmlab.learn.request import TrainingRequest
from lmlab.learn.settings import OWN_OPTIONS, TrainConfig, refuse_if_it_counts
from lmlab.models.registry import AnyModel, Way, name_of, our_name, trainable_kind
from lmlab.text.corpus import Corpus
from lmlab.text.files_and_folders import Text
from lmlab.text.splitting import SplitBy


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting of a model or of the training loop.

    Attributes:
        here: its value for the given text and budget; None if none were given or the setting has no value.
    """

    name: str
    kind: str  # "a whole number", "rotary | learned"
    default: Any  # None: chosen by the text and the budget
    meaning: str
    here: Any = None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a kind of model and of its training.

    Attributes:
        text: the text that the values in `here` are for; None: no values were requested.
        budget: the budget that the values in `here` are for.
    """

    model: str
    about: str
    settings: list[Setting]  # of the model
    learning: list[Setting]  # of the training loop; empty for a counting model
    text: str | None = None
    tokenizer: str | None = None
    budget: str | None = None
    parameters: int | None = None
    plan: ExecutionPlan | None = None  # execution plan of such a run on this machine

    @property
    def by_the_clock(self) -> bool:
        """Whether sizes depend on the measured speed of the machine, so that they may differ at the next call."""
        return bool(self.learning) and self.budget is not None and Budget.parse(self.budget).seconds is not None


def settings(
    model: AnyModel,
    text: str | Path | Sequence[str | Path] | Corpus | None = None,
    *,
    tokenizer: str | None = None,
    budget: str | float | Budget = "3m",
    split: Sequence[float] = (80, 10, 10),
    split_by: SplitBy = "auto",
    documents: str = "auto",
    valid: Text | None = None,
    test: Text | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    learning: Mapping[str, Any] | None = None,
    device: str = "auto",
    precision: str = "auto",
) -> Settings:
    """Describe every setting of a model and of its training, with its default and its meaning.

    With a text, the description also holds the value that each setting takes when `train` is called with the same arguments.
    That trains nothing, but a budget of seconds times some steps, and a counting model counts the text.
    """
    model = our_name(name_of(model))
    kind = trainable_kind(model)
    refuse_if_it_counts(model, learning=learning)
    settings = with_our_names(kind.load().Config, settings or {})
    learning = with_our_names(TrainConfig, learning or {})
    request = TrainingRequest(
        model=model,
        data=text,
        budget=Budget.parse(budget),
        split=split,
        split_by=split_by,
        documents=documents,
        valid=valid,
        test=test,
        seed=seed,
        settings=settings or {},
        learning=learning or {},
        device=device,
        precision=precision,
        tokenizer=tokenizer,
    )
    described = Settings(
        model=model,
        about=kind.about,
        settings=_described(type(request.model_config)),
        learning=_described(type(request.loop), leave_out=OWN_OPTIONS) if kind.way is Way.LEARNS else [],
    )
    if text is None:
        return described
    if not reads_plain_text(kind):
        raise Mistake(
            f"what the settings of {model} come to is said for a plain text only; leave the text out",
            code="settings-of-plain-text-only",
        )
    prepared = prepare(request)
    if isinstance(prepared, PreparedLearner):
        config, parameters, loop = prepared.config, prepared.model.parameters_count, _chosen_of_the_loop(prepared)
        trainer = Trainer(
            prepared.model, prepared.task, prepared.loop, prepared.hardware, Path(), Silent()
        )  # writes nothing
        plan = rehearsed(prepared.new_plan, trainer)
    else:
        assert isinstance(prepared, PreparedCount)
        fitted = prepared.fit()
        config, parameters, loop, plan = fitted.config, fitted.parameters_count, {}, None
    found = dataclasses.asdict(config)
    return dataclasses.replace(
        described,
        settings=[dataclasses.replace(s, here=found[s.name]) for s in described.settings],
        learning=[dataclasses.replace(s, here=loop[s.name]) for s in described.learning],
        text=prepared.data.name,
        tokenizer=prepared.tokenizer.spec,
        budget=str(request.budget),
        parameters=parameters,
        plan=plan,
    )


def _chosen_of_the_loop(prepared: PreparedLearner) -> dict[str, Any]:
    """Return the values that a run would use for every setting of the training loop, by name."""
    model, task, loop, hardware = prepared.model, prepared.task, prepared.loop, prepared.hardware
    assert isinstance(task, NextToken)
    optimizer = optimizer_for(model, task, loop, hardware).config
    chosen = ("learning_rate", "matrix_learning_rate", "matrix_every", "weight_decay")
    return {
        **dataclasses.asdict(loop),
        "optimizer": method_for(model, loop),
        **{name: getattr(optimizer, name) for name in chosen},
        "rows": task.rows,
        "length": task.length,
        "stepping": hardware.stepping,
        "micro_batches": loop.micro_batches or 1,
    }


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
    """Return the meaning of each field of a config class, from the comment on its line in the source.

    The comment is the only place where a meaning is written.
    """
    found: dict[str, str] = {}
    for part in reversed(config_class.__mro__[:-1]):
        found |= _own_meanings(part)
    return found


def _own_meanings(config_class: type) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(config_class))
    except OSError:  # a class defined in a console has no source
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
