"""Which kinds of models there are, and what each can do. A model's module is imported only when the model is asked for.

Language models are listed here. A task registers the kinds that learn it (`lmlab.plugins`). A kind is named by its word, by an
entry point of the group `lmlab.models` in an installed package, or by where its class is: `package.module:Class`.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from lmlab import other_names
from lmlab.config import Mistake, Note, an, nearest

if TYPE_CHECKING:
    from lmlab.interface import Saved
    from lmlab.learn.plugin import TaskPlugin

AnyModel: TypeAlias = "str | type | Callable[..., Any]"
"""A kind of model in Python: its name, or a class of modules, a function that makes one, or a module."""

GROUP = "lmlab.models"  # of entry points
_IMPORTING: list[str] = []  # modules of models that are being imported


class Role(Enum):
    """What a kind of model is for."""

    LANGUAGE_MODEL = "language model"
    ENCODER = "encoder"
    TRANSLATOR = "translator"
    CLASSIFIER = "classifier"
    AUTOENCODER = "autoencoder"
    LATENT_VARIABLE_MODEL = "latent-variable model"
    WORD_VECTORS = "word vectors"


class Way(Enum):
    """How a kind of model comes to know its text."""

    COUNTS = "counts"  # in one pass; the same whatever the seed
    LEARNS = "learns"  # by gradient descent, as long as it is given
    MIXES = "mixes"  # not by itself: it is made of models that do
    OPENED = "opened"  # elsewhere: it is opened from a folder


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of model."""

    name: str
    where: str  # package.module:Class
    about: str  # in one line
    way: Way = Way.LEARNS
    role: Role = Role.LANGUAGE_MODEL
    ladder: bool = True  # whether it is compared when nobody says which models; the ladder has the order of the list
    task: TaskPlugin | None = None  # trains, measures and shows it; None: as every language model is
    data: str = "sotu"  # what it learns if no text is named
    begins_with: str | None = None  # the other kind of model whose trained weights it can begin with
    use: str = 'generate RUN --prompt "…"'  # the command that uses a trained model

    def load(self) -> type[Saved]:
        """The class; importing it may take a moment."""
        module, _, attribute = self.where.partition(":")
        cls: type[Saved] = _wrapped(_attribute(module, attribute), module, attribute)
        return cls


def _counts(name: str, where: str, about: str) -> Kind:
    return Kind(name=name, where=f"lmlab.models.{where}", about=about, way=Way.COUNTS)


def _learns(name: str, where: str, about: str) -> Kind:
    return Kind(name=name, where=f"lmlab.models.{where}", about=about)


_LADDER = (
    _counts("uniform", "uniform:Uniform", "every token alike: the yardstick"),
    _counts("bag", "bag:Bag", "how often each token occurs, nothing else"),
    _counts("ngram", "ngram:NGram", "counts of the last few tokens, interpolated modified Kneser-Ney"),
    _learns("bigram", "bigram:Bigram", "a neural bigram: one hidden layer on the vector of the last word"),
    _learns("feedforward", "feedforward:FeedForward", "the vectors of the last N-1 tokens, one hidden layer"),
    _learns("attention", "attention:Attention", "the last token attends over the window, one head"),
    _learns("cnn", "cnn:CNN", "gated causal convolutions, each layer reaching further back"),
    _learns("rnn", "rnn:RNN", "a recurrent network with tanh cells"),
    _learns("gru", "gru:GRU", "a recurrent network with gated units"),
    _learns("lstm", "lstm:LSTM", "a recurrent network with a long short-term memory"),
    _learns("rnn-attention", "rnn_attention:RNNAttention", "a recurrent network that attends to its own past"),
    _learns("gpt", "gpt:GPT", "a decoder Transformer"),
)
_MIX = Kind(
    name="mix",
    where="lmlab.models.mix:Mix",
    about="a weighted sum of trained models, mostly better than each of them (`lmlab mix`)",
    way=Way.MIXES,
    ladder=False,
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in (*_LADDER, _MIX)}


_HUGGINGFACE = Kind(
    name="huggingface",
    where="lmlab.models.huggingface:HuggingFace",
    about="a causal language model of a Hugging Face folder",
    way=Way.OPENED,
    ladder=False,
)
OPENED: dict[str, Kind] = {_HUGGINGFACE.name: _HUGGINGFACE}  # kinds that nobody trains or names here


def register(*kinds: Kind) -> None:
    """Add kinds of models, so that every verb knows them by name."""
    for kind in kinds:
        assert kind.name not in KINDS, f"two kinds of models are called {kind.name}"
        KINDS[kind.name] = kind


def names() -> list[str]:
    """The language models that have a word here, in the order of the ladder."""
    return [kind.name for kind in KINDS.values() if kind.role is Role.LANGUAGE_MODEL]


def trainable() -> list[str]:
    """Those among them that are trained on a text."""
    return [kind.name for kind in KINDS.values() if kind.way is not Way.MIXES]


def predicting() -> list[str]:
    """The language models that are trained on a text: what a comparison and a sweep can be of."""
    return [name for name in trainable() if name in names()]


def ladder() -> list[str]:
    """The language models that are compared when nobody says which."""
    return [kind.name for kind in KINDS.values() if kind.ladder and kind.role is Role.LANGUAGE_MODEL]


def kind_of(name: str) -> Kind:
    """The kind of that name; Mistake, with the nearest name, if there is none."""
    if not isinstance(name, str):
        raise Mistake(
            f"a model is given by its name, such as 'gpt' or 'package.module:Class'; got {name!r}",
            code="model-not-a-name",
        )
    if name in KINDS:
        return KINDS[name]
    if name in OPENED:
        return OPENED[name]
    if ":" in name:
        return _brought(name)
    entries = {point.name: point for point in metadata.entry_points(group=GROUP)}
    if name in entries:
        return _brought(entries[name].value, name)
    if (ours := other_names.model_name(name, KINDS)) in KINDS:
        return KINDS[ours]
    raise unknown_model(name, [*KINDS, *entries])


def unknown_model(name: str, known: Sequence[str]) -> Mistake:
    """The Mistake for a name that no kind of model has: what there is instead, or the nearest of the known names."""
    order = ", but a file or folder: the model is named first, then the text" if name and Path(name).exists() else ""
    instead = other_names.about_model(name)
    if not instead and "," in name:
        instead = "one model is trained at a time; lmlab compare takes several, with {models}"
    return Mistake(
        f"there is no model {name!r}{order}; {instead or nearest(name, known)}"
        " (a model of your own: package.module:Class)",
        code="model-unknown",
        models=name,
    )


def our_name(name: str) -> str:
    """Our name for a kind of model, with a note where it was given by another tool's name; other names stay as they are."""
    if not isinstance(name, str) or name in KINDS or ":" in name:
        return name
    ours = other_names.model_name(name, [point.name for point in metadata.entry_points(group=GROUP)])
    if ours != name:
        warnings.warn(f"{name} is called {ours} here", Note, stacklevel=2)
    return ours


def name_of(model: Any) -> str:
    """Return the name of a model that Python code gives as a class, a function or a module, so that a run can find it again.

    Raises:
        Mistake: the model has no place in a file.
    """
    if isinstance(model, str) or not callable(model):
        return model
    if isinstance(model, type) or hasattr(model, "__qualname__"):
        module, attribute = model.__module__, model.__qualname__
    else:  # a module that was made already
        names = (
            (name, key) for name, held in list(sys.modules.items()) for key, value in _held(held) if value is model
        )
        module, attribute = next(names, ("", ""))
    if isinstance(model, type) and module.startswith("lmlab.models."):
        return next((kind.name for kind in KINDS.values() if kind.where == f"{module}:{attribute}"), attribute)
    if module == "__main__":
        module = _program_name() or ""
    if not module or "." in attribute:
        called = f"{attribute or type(model).__name__} has no name in a file"
        raise Mistake(
            f"{called}, by which a run could find it again; write it to a file such as mymodel.py (in a notebook:"
            " %%writefile mymodel.py), at the top level, and import it from there",
            code="model-without-file",
        )
    return f"{module}:{attribute}"


def _held(module: Any) -> list[tuple[str, Any]]:
    return list(getattr(module, "__dict__", {}).items())


def where(name: str) -> str:
    """What a kind is called where that must not be the choice of whoever wrote it: our own word, or `package.module:Class`."""
    if name in KINDS or name in OPENED or ":" in name:
        return name
    return next((point.value for point in metadata.entry_points(group=GROUP) if point.name == name), name)


def trainable_kind(name: str) -> Kind:
    """The kind of that name, to be trained on a text; Mistake if it is made of others."""
    if _IMPORTING:
        raise Mistake(
            f"{_IMPORTING[-1]} trains a model when it is imported; put that under if __name__ == '__main__':",
            code="model-module-trains",
        )
    kind = kind_of(name)
    if kind.way is Way.MIXES:
        raise Mistake(
            f"{an(name)} is not trained on a text but made of runs: lmlab {name} RUN RUN --out RUN",
            code="model-made-of-runs",
        )
    if kind.way is Way.OPENED:
        raise Mistake(
            f"{an(name)} model is opened from a folder and not trained here; to train it further, make it a run:"
            " lmlab import FOLDER --out RUN",
            code="model-opened-from-folder",
        )
    return kind


def model_class(name: str) -> type[Any]:
    """The class of that name; Mistake, with the nearest name, if there is none."""
    return kind_of(name).load()


def language_model(name: str) -> Kind:
    """The kind of that name, which must predict tokens."""
    entries = [point.name for point in metadata.entry_points(group=GROUP)]
    if (
        isinstance(name, str)
        and ":" not in name
        and other_names.model_name(name, [*KINDS, *entries]) not in [*KINDS, *entries]
    ):
        raise unknown_model(name, [*predicting(), *entries])
    kind = kind_of(name)
    if kind.role is not Role.LANGUAGE_MODEL:
        role = f"{'an' if kind.role.value[0] in 'aeiou' else 'a'} {kind.role.value}"
        raise Mistake(
            f"{name} is {role}, no language model; here one of these is meant: {', '.join(predicting())}",
            code="model-of-another-role",
        )
    return kind


def file_name(name: str) -> str:
    """The name of a kind as part of a folder's name."""
    return name.replace(":", ".")


def _brought(where: str, name: str | None = None) -> Kind:
    """Somebody else's class, looked at to see what it can do. Modules of the current folder are found too."""
    from lmlab.interface import CountModel, LanguageModel, Learner, Saved

    module, _, attribute = where.partition(":")
    if module.startswith("."):
        raise Mistake(
            f"{module!r} is no module: a model is package.module:Class, without a dot before it",
            code="model-module-relative",
        )
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        cls = _wrapped(_attribute(module, attribute), module, attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # it is there, and lacks something itself
        raise Mistake(
            f"there is no module {module!r} to take {attribute} from; a model is package.module:Class",
            code="model-module-not-found",
        ) from None
    except Mistake:
        raise
    except (AttributeError, ValueError):
        raise Mistake(
            f"{module} has no class {attribute!r}; a model is package.module:Class", code="model-class-not-found"
        ) from None
    if not (isinstance(cls, type) and issubclass(cls, Saved)):
        raise Mistake(
            f"{where} is not a model: derive it from torch.nn.Module, with forward(ids) that returns logits, or from the"
            " classes in lmlab.interface",
            code="model-of-no-base",
        )
    if missing := sorted(getattr(cls, "__abstractmethods__", ())) + [
        a for a in ("name", "Config") if not hasattr(cls, a)
    ]:
        raise Mistake(f"{where} is not a whole model yet: it lacks {', '.join(missing)}", code="model-incomplete")
    if not issubclass(cls, CountModel | Learner):
        raise Mistake(
            f"{where} neither counts nor learns: derive it from CountModel or Learner in lmlab.interface",
            code="model-neither-counts-nor-learns",
        )
    about = (cls.__doc__ or attribute).strip().partition("\n")[0]
    if (ours := _base_among_ours(cls)) is not None:  # it learns the same task
        return replace(ours, name=name or where, where=where, about=about, ladder=False, begins_with=None)
    role = Role.LANGUAGE_MODEL if issubclass(cls, LanguageModel) else Role.ENCODER
    way = Way.COUNTS if issubclass(cls, CountModel) else Way.LEARNS
    return Kind(name=name or where, where=where, about=about, way=way, role=role, ladder=False)


def _attribute(module: str, attribute: str) -> Any:
    """Return what stands in a module, which is imported. The program that runs is not imported a second time."""
    program = sys.modules["__main__"]
    if module == _program_name() and module not in sys.modules:
        return getattr(program, attribute)
    _IMPORTING.append(module)
    try:
        return getattr(importlib.import_module(module), attribute)
    finally:
        _IMPORTING.pop()


def _program_name() -> str | None:
    """Return the name by which another process can import the program that runs; None: a notebook or a prompt."""
    path = getattr(sys.modules["__main__"], "__file__", None)
    return None if path is None else Path(path).stem


def _wrapped(found: Any, module: str, attribute: str) -> Any:
    """Return `found`, or, if it is or makes a plain module, the class of language models around it."""
    from torch import nn

    from lmlab.interface import Saved

    if isinstance(found, type) and (not issubclass(found, nn.Module) or issubclass(found, Saved)):
        return found
    if not callable(found):  # neither a module nor a function that returns one
        return found
    from lmlab.models.plain_module import wrapped

    return wrapped(found, module, attribute)


def _base_among_ours(cls: type) -> Kind | None:
    """The registered kind, of a task other than language modelling, whose class somebody else's class is derived from."""
    bases = {f"{base.__module__}:{base.__qualname__}" for base in cls.__mro__}
    return next((kind for kind in KINDS.values() if kind.task is not None and kind.where in bases), None)
