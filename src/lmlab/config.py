"""Settings: frozen keyword-only dataclasses, read from text, with errors that name what would be right. No torch here."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import types
import typing
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeVar

from lmlab import other_names
from lmlab_derive.shared.mistakes import LISTED as LISTED
from lmlab_derive.shared.mistakes import MOST_SEED as MOST_SEED
from lmlab_derive.shared.mistakes import Mistake as Mistake
from lmlab_derive.shared.mistakes import about_a_file as about_a_file
from lmlab_derive.shared.mistakes import checked_seed as checked_seed
from lmlab_derive.shared.mistakes import nearest as nearest

C = TypeVar("C")

NAMES: dict[Any, tuple[type, str]] = {  # of what settings are: what may be given for it, and how it is called
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "text"),
}
OPEN = ("auto", "none")  # how a setting is written that is left to us
SPELT_OUT = ("ngram", "lstm", "rnn")  # names that are read as letters, the first of which sounds like a vowel


def in_one_line(error: Exception) -> str:
    """What went wrong, where that must not end all work. A mistake speaks for itself; of anything else the kind helps."""
    if isinstance(error, OSError) and error.strerror:
        return about_a_file(error)
    kind = "" if isinstance(error, Mistake) else f"{type(error).__name__}: "
    return kind + " ".join(str(error).split())


class Stopped(KeyboardInterrupt):
    """Somebody stopped it, by Ctrl-C or a polite kill; the message says what is kept and how to go on."""


class Aside(str):
    """A note that asks nothing of its reader: kept with the others, and shown where every detail is asked for."""


class Note(UserWarning):
    """What the user should know and nothing has to be done about; the command line prints it as one line."""


class Caution(Note):
    """A note on what was used, such as weights of a run that was stopped: only whoever gets a result has to hear it."""


def unknown_speed(config: Any) -> float:
    """Nobody has timed anything. Only a budget of seconds asks."""
    raise AssertionError(f"no speed is known for {config}: a budget of seconds needs a machine to run on")


@dataclass(frozen=True, kw_only=True)
class TextFacts:
    """What a model may know of the text and the machine when it chooses its own size."""

    train_tokens: int
    train_bytes: int
    vocab_size: int
    tokens_per_second: Callable[[Any], float] = (
        unknown_speed  # of training a model of this (resolved) config, here and now
    )


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long to train: exactly one of the four is set."""

    seconds: float | None = None
    steps: int | None = None
    tokens: int | None = None
    epochs: float | None = None  # times the training part is read; `over` makes tokens of it

    def __post_init__(self) -> None:
        given = [v for v in (self.seconds, self.steps, self.tokens, self.epochs) if v is not None]
        if len(given) != 1 or not 0 < given[0] < float("inf"):
            raise Mistake(
                "a budget is one positive number of seconds, steps or tokens, such as 3m, 500steps or 2Mtokens",
                code="budget-not-positive",
            )

    @classmethod
    def parse(cls, text: str | float | Budget) -> Budget:
        """Read a number of seconds, "90s", "3m" or "3min", "1h", "500steps", "1e3steps", "2Mtokens", "2epochs".

        k and M are thousand and million.
        """
        if isinstance(text, Budget):
            return text
        if isinstance(text, Real) and not isinstance(text, bool):
            return cls(seconds=float(text))
        if not isinstance(text, str):
            raise Mistake(
                f"{{budget}} is a number of seconds or text with a unit, such as '3m' or '500steps'; got {text!r}",
                code="budget-not-text",
                budget=None,
            )
        number = r"(\d{1,15}(?:\.\d{1,9})?(?:e\d)?)"
        time, count = "s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?", r"([kM]?)\s*(step|token|epoch)s?"
        match = re.fullmatch(rf"\s*{number}\s*(?:({time})|{count})\s*", text)
        if not match:
            how = "write it like 90s, 3m, 1h, 500steps, 2Mtokens or 2epochs"
            raise Mistake(f"budget {text!r} is not understood; {how}", code="budget-not-understood")
        amount = float(match[1])
        if match[2]:
            return cls(seconds=amount * {"s": 1, "m": 60, "h": 3600}[match[2][0]])
        amount *= {"": 1, "k": 1_000, "M": 1_000_000}[match[3]]
        return cls(epochs=amount) if match[4] == "epoch" else cls(**{f"{match[4]}s": round(amount)})

    def over(self, train_tokens: int) -> Budget:
        """The same for a training part of so many tokens, where an epoch is a number of tokens."""
        return self if self.epochs is None else Budget(tokens=max(1, round(self.epochs * train_tokens)))

    def __str__(self) -> str:
        if self.seconds is not None:
            return f"{_digits(self.seconds)}s"
        if self.epochs is not None:
            return f"{_all_digits(self.epochs)}epochs"  # the tokens they come to are counted from this text again
        return f"{self.steps}steps" if self.steps is not None else f"{self.tokens}tokens"


def _digits(number: float) -> str:
    """Six digits, or, where that would take an exponent, which `Budget.parse` does not read in this form, all of them."""
    short = f"{number:g}"
    return _all_digits(number) if "e" in short else short


def _all_digits(number: float) -> str:
    """As many as `Budget.parse` reads."""
    return f"{number:.9f}".rstrip("0").rstrip(".")


def an(name: str) -> str:
    """The name of a kind of model after its article, by how it is read aloud: an ngram, an lstm, a gpt."""
    return f"{'an' if name[0] in 'aeio' or name.split('-')[0] in SPELT_OUT else 'a'} {name}"


def make(config_class: type[C], values: Mapping[str, Any], what: str) -> C:
    """Build `config_class` from a mapping; an unknown key is a Mistake that names the nearest known one."""
    fields = {f.name for f in dataclasses.fields(config_class)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(config_class)
    for key in values:
        if key not in fields:
            raise unknown_setting(what, key, values[key], fields)
    return config_class(**{key: _plain(value, hints[key], key) for key, value in values.items()})


def recorded(config: Any) -> dict[str, Any]:
    """The settings of a config as records and hashes have them: without those of `omitted_at_default` at their default.

    A setting that is added to a kind of model goes there, so that the models there are keep their hash.
    """
    omitted = _omitted_at_default(type(config))
    left_out = {
        f.name for f in dataclasses.fields(config) if f.name in omitted and getattr(config, f.name) == f.default
    }
    return {name: value for name, value in dataclasses.asdict(config).items() if name not in left_out}


def _omitted_at_default(config_class: type) -> Collection[str]:
    found: Collection[str] = getattr(config_class, "omitted_at_default", ())
    return found


def with_our_names(config_class: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with our names for those that other tools name otherwise, each with a note; unknown names stay as they are."""
    fields, found = settings_of(config_class), dict[str, Any]()
    for key, value in values.items():
        found[our_setting(key, fields, found) if isinstance(key, str) else key] = value
    return found


def our_setting(key: str, known: Iterable[str], given: Mapping[str, Any]) -> str:
    """Our name for a setting, with a note where it was given by another tool's name; Mistake if it is among the given ones."""
    ours = other_names.setting_name(key, list(known))
    if ours in given:
        raise Mistake(f"{ours} is set twice, once as {key}; leave one of them out", code="setting-by-two-names")
    if ours != key:
        warnings.warn(f"{key} is called {ours} here", Note, stacklevel=2)
    return ours


def unknown_setting(what: str, key: str, value: object, known: Iterable[str]) -> Mistake:
    """The Mistake that says where a name of another tool is set, or else the nearest known name."""
    known = list(known)
    where, settings = other_names.about_setting(key, value, known)
    return Mistake(f"{what} has no setting {key!r}; {where or nearest(key, known)}", code="setting-unknown", **settings)


def _plain(value: Any, hint: Any, key: str) -> Any:
    """A value given in Python as the number or text that a field declares: Python itself holds no one to a type hint."""
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    if type(None) in kinds and is_open(value):
        return None
    wanted = [kind for kind in kinds if kind is not type(None)]
    if not all(kind in NAMES for kind in wanted):
        return value  # a Literal or a Budget looks at itself
    for kind in wanted:
        if isinstance(value, bool) == (kind is bool) and isinstance(value, NAMES[kind][0]):
            with contextlib.suppress(OverflowError):  # a whole number that no float holds
                return kind(value)
    raise Mistake(
        f"setting {key} is {' or '.join(NAMES[kind][1] for kind in wanted)}; got {value!r}",
        code="setting-of-another-kind",
    )


def is_open(value: object) -> bool:
    """Whether this leaves a setting to us that may be left to us: None, "auto" or "none", in Python as on the command line."""
    return value is None or (isinstance(value, str) and value.strip().lower() in OPEN)


def without_open(values: Mapping[str, Any], made: object) -> dict[str, Any]:
    """Settings, of which `made` was made, without those that are left to us: whatever is found for them later is no other wish.

    A word alone does not tell: positions="none" asks for none.
    """
    return {key: value for key, value in values.items() if getattr(made, key) is not None}


def settings_of(config_class: type, leave_out: Iterable[str] = ()) -> list[str]:
    """The names of its settings."""
    return [f.name for f in dataclasses.fields(config_class) if f.name not in leave_out]


def resolved_settings_of(config_class: type) -> list[str]:
    """The names of the settings that a resolved config never leaves open."""
    return settings_of(config_class, leave_out=_omitted_at_default(config_class))


def texts_of(given: object) -> list[str]:
    """A text or several, as a list of at least one; Mistake for anything else."""
    texts = [given] if isinstance(given, str) else list(given) if isinstance(given, list | tuple) else None
    if not texts or not all(isinstance(text, str) for text in texts):
        what = given if texts is None else next((text for text in texts if not isinstance(text, str)), given)
        raise Mistake(f"give a text, or a list of texts; got {str(what)[:40]!r}", code="no-list-of-texts")
    return texts


def named_once(assignments: Iterable[str]) -> list[str]:
    """The `key=value` strings as they are; a Mistake if two of them name one key, since only one could be meant."""
    given: dict[str, str] = {}
    for assignment in assignments:
        key = assignment.partition("=")[0].strip()
        if key in given:
            raise Mistake(
                f"{key} is set twice, as {given[key]} and as {assignment}; leave one of them out", code="setting-twice"
            )
        given[key] = assignment
    return list(given.values())


def parse_settings(
    config_class: type, assignments: Iterable[str], what: str, leave_out: Iterable[str] = ()
) -> dict[str, Any]:
    """Read `key=value` strings, each value typed by the field it sets ("auto" and "none" are None where allowed).

    leave_out: fields that are no settings.
    """
    all_hints, known = typing.get_type_hints(config_class), settings_of(config_class, leave_out)
    hints = {name: all_hints[name] for name in known}
    values: dict[str, Any] = {}
    for assignment in named_once(assignments):
        key, equals, text = assignment.partition("=")
        key = key.strip()
        if not equals:
            raise Mistake(
                f"setting {assignment!r} has no value; write it like key=value", code="setting-without-equals"
            )
        if not text.strip():
            raise Mistake(
                f"setting {assignment!r} has no value; write auto to leave it open", code="setting-without-value"
            )
        ours = our_setting(key, hints, values)
        if ours not in hints:
            raise unknown_setting(what, key, text.strip(), hints)
        values[ours] = _read(text.strip(), hints[ours], ours)
    return values


def _read(text: str, hint: Any, key: str) -> Any:
    """One value of the type a field declares: bool, int, float, str, a Literal, or one of these or None."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = typing.get_args(hint)
        if type(None) in members and is_open(text):
            return None
        hint = next(m for m in members if m is not type(None))
    if typing.get_origin(hint) is typing.Literal:
        choices = typing.get_args(hint)
        if text not in choices:
            raise Mistake(
                f"setting {key} is one of {', '.join(map(str, choices))}; got {text!r}", code="setting-not-a-choice"
            )
        return text
    if hint is bool:
        if text.lower() not in ("true", "false"):
            raise Mistake(f"setting {key} is true or false; got {text!r}", code="setting-not-true-or-false")
        return text.lower() == "true"
    if hint in (int, float):
        try:
            return hint(text.replace("_", ""))
        except ValueError:
            kind = "a whole number" if hint is int else "a number"
            raise Mistake(f"setting {key} is {kind}; got {text!r}", code="setting-not-read") from None
    return text


def at_least_one(model: str, **settings: int | None) -> None:
    """Mistake unless each setting is a whole number from 1 up (or not chosen yet)."""
    for name, value in settings.items():
        if value is not None and value < 1:
            raise Mistake(f"{model}: {name} must be 1 or more; got {value}", code="setting-below-one")


def within_text(model: str, train_tokens: int, **settings: int | None) -> None:
    """Mistake unless the training text is at least as long as each setting (or it is not chosen yet)."""
    for name, value in settings.items():
        if value is not None and value > train_tokens:
            raise Mistake(
                f"{model}: {name} {value} is longer than the training text, {train_tokens} tokens; choose a shorter one",
                code="setting-longer-than-text",
            )


def a_share(model: str, **settings: float | None) -> None:
    """Mistake unless each setting is a share that leaves something: 0 <= value < 1 (or not chosen yet)."""
    for name, value in settings.items():
        if value is not None and not 0 <= value < 1:
            raise Mistake(f"{model}: {name} is a share, from 0 to below 1; got {value:g}", code="setting-not-a-share")


def above_zero(model: str, **settings: float | None) -> None:
    """Mistake unless each setting is a number above 0 (or not chosen yet)."""
    for name, value in settings.items():
        if value is not None and not 0 < value < float("inf"):
            raise Mistake(f"{model}: {name} must be a number above 0; got {value:g}", code="setting-not-above-zero")


def misfit(wanted: Mapping[str, Sequence[int]], given: Mapping[str, Any]) -> str:
    """What is wrong with weights (or whatever has shapes), in a few words; "" where they are those that are wanted."""
    wrong = [
        f"{name} is {_size(given[name].shape)}, where {_size(shape)} is wanted"
        for name, shape in wanted.items()
        if name in given and tuple(given[name].shape) != tuple(shape)
    ]
    wrong += [f"{name} is missing" for name in wanted if name not in given]
    wrong += [f"{name} is not known" for name in given if name not in wanted]
    return "" if not wrong else wrong[0] if len(wrong) == 1 else f"{wrong[0]}, and {len(wrong) - 1} more are wrong"


def _size(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "a single number"


def one_of(model: str, choices: Any, **settings: str) -> None:
    """Mistake unless each setting is among `choices`, a Literal: Python does not hold anyone to a type hint."""
    for name, value in settings.items():
        if value not in typing.get_args(choices):
            raise Mistake(
                f"{model}: {name} is one of {', '.join(typing.get_args(choices))}; got {value!r}",
                code="setting-not-among-choices",
            )
