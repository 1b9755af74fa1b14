"""Whether a verb is called in Python with what its signature names: a slip is one line, before anything is done.

Python itself holds no one to a type hint. The command line needs none of this: what is typed there is read by its type.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import reprlib
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple, ParamSpec, TypeVar

from lmlab.config import Mistake

P = ParamSpec("P")
T = TypeVar("T")


class Kind(NamedTuple):
    """What may be given for a name in a hint, and what one and several of it are called."""

    fits: Callable[[Any], bool]
    one: str
    several: str


def _is_list(value: Any) -> bool:
    """Whatever can be gone through; a text can too, by its letters, which nobody means."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


KINDS = {
    "str": Kind(lambda value: isinstance(value, str), "text", "texts"),
    "Path": Kind(lambda value: isinstance(value, os.PathLike), "a path", "paths"),
    "int": Kind(
        lambda value: isinstance(value, Integral) and not isinstance(value, bool), "a whole number", "whole numbers"
    ),
    "float": Kind(lambda value: isinstance(value, Real) and not isinstance(value, bool), "a number", "numbers"),
    "bool": Kind(lambda value: hasattr(value, "__bool__"), "True or False", "True or False"),
    "Sequence": Kind(_is_list, "a list", "lists"),
    "Iterable": Kind(_is_list, "a list", "lists"),
    "Mapping": Kind(lambda value: isinstance(value, Mapping), "a dict", "dicts"),
    "World": Kind(lambda value: hasattr(value, "is_writer"), "a World", "Worlds"),
    "Callable": Kind(callable, "a function", "functions"),
    "Watch": Kind(lambda value: hasattr(value, "say"), "an object with update and say", "objects with update and say"),
    "Display": Kind(lambda value: hasattr(value, "say"), "an object with show and say", "objects with show and say"),
    "Tokenizer": Kind(lambda value: hasattr(value, "token_bytes"), "a tokenizer", "tokenizers"),
    "Timings": Kind(lambda value: hasattr(value, "of"), "timings of an earlier training", "timings"),
    "None": Kind(lambda value: value is None, "None", "None"),
}  # a name that is not here, such as Run or Budget, is looked at by whoever takes it
LISTS = ("Sequence", "Iterable")
ALIASES = {
    "Text": "str | Path | Sequence[str | Path]",
    "Hints": "str",
    "SplitBy": "str",
    "Told": "Callable",
    "Progress": "Callable",
}

OWN_WORDS = {"model": "str", "seed": "int"}  # arguments of these kinds for which there is a better sentence further in

WRITTEN = ("out", "csv", "per_token", "html", "svg", "tensorboard")  # arguments that name a file or a folder to write


@functools.cache  # so that a verb is one and the same object, whenever it is asked for
def held_to_its_signature(verb: Callable[P, T]) -> Callable[P, T]:
    """The same function; given something of another kind than a hint names, a Mistake that says which would be right."""
    signature = inspect.signature(verb)
    hints = {name: ast.parse(p.annotation, mode="eval").body for name, p in signature.parameters.items()}

    @functools.wraps(verb)
    def called(*args: P.args, **named: P.kwargs) -> T:
        for name, value in signature.bind(*args, **named).arguments.items():
            parameter = signature.parameters[name]
            if OWN_WORDS.get(name) == parameter.annotation or parameter.kind is parameter.VAR_KEYWORD:
                continue
            for one in value if parameter.kind is parameter.VAR_POSITIONAL else (value,):
                _check(name, one, hints[name])
        return verb(*args, **named)

    called.__module__, called.__qualname__ = "lmlab", verb.__name__  # where it is found, such as by another process
    return called


def _check(name: str, value: Any, hint: ast.expr) -> None:
    if name in WRITTEN and value == "":  # which would be the current folder, where nobody meant to write
        raise Mistake(f"{{{name}}} is empty; name a file or a folder", code="argument-empty", **{name: None})
    if not _fits(value, hint):
        raise Mistake(
            f"{{{name}}} is {_called(hint)}; got {' '.join(reprlib.repr(value).split())}",
            code="argument-of-another-kind",
            **{name: None},
        )


@functools.cache  # hints stay as they are, and a list of a hundred thousand texts asks for every one
def _members(hint: ast.expr) -> list[tuple[str, list[ast.expr]]]:
    """What a hint leaves the choice between: names, each with what stands in its brackets."""
    if isinstance(hint, ast.BinOp):
        return [*_members(hint.left), *_members(hint.right)]
    if isinstance(hint, ast.Subscript):
        inner = hint.slice.elts if isinstance(hint.slice, ast.Tuple) else [hint.slice]
        return [(ast.unparse(hint.value), inner)]
    name = ast.unparse(hint)
    return _members(ast.parse(ALIASES[name], mode="eval").body) if name in ALIASES else [(name, [])]


def _fits(value: Any, hint: ast.expr) -> bool:
    return any(
        name not in KINDS or (KINDS[name].fits(value) and _holds(name, value, inner)) for name, inner in _members(hint)
    )


def _holds(name: str, value: Any, inner: list[ast.expr]) -> bool:
    """Whether what is in it fits, too; what can be gone through only once is left alone."""
    if name == "Mapping":
        return all(_fits(item, inner[1]) for item in value.values())
    if name not in LISTS or not isinstance(value, list | tuple):
        return True
    others = [item for item in value if type(item) is not str]
    a_text = next((item for item in value if type(item) is str), None)  # where one text fits, all do
    return (a_text is None or _fits(a_text, inner[0])) and all(_fits(item, inner[0]) for item in others)


def _called(hint: ast.expr, several: bool = False) -> str:
    said = []
    for name, inner in _members(hint):
        words = KINDS[name].several if several else KINDS[name].one
        what = inner[0] if name in LISTS else inner[-1] if name == "Mapping" else None
        known = what is not None and all(member in KINDS for member, _ in _members(what))
        said.append(f"{words} of {_called(what, several=True)}" if what is not None and known else words)
    return " or ".join(dict.fromkeys(said))
