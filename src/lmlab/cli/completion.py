"""Shell completions of models, tokenizers, texts, runs and settings (`lmlab --install-completion`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lmlab.config import settings_of
from lmlab.learn.run_folder import record_file
from lmlab.models import registry

ACTIONS = ("neighbours", "analogy", "map", "save")  # actions of `lmlab vectors`
TOKENIZERS = ("byte", "char", "words", "words:10000", "bpe:1024", "bpe:4096")


def models(incomplete: str) -> list[str]:
    """Return the names of models that begin with `incomplete`."""
    return [name for name in registry.trainable() if name.startswith(incomplete)]


def models_and_runs(incomplete: str) -> list[str]:
    """Return the names of models and the folders of runs that begin with `incomplete`."""
    return [*models(incomplete), *runs(incomplete)]


def tokenizers(incomplete: str) -> list[str]:
    """Return the tokenizers, with usual vocabulary sizes, that begin with `incomplete`."""
    return [spec for spec in TOKENIZERS if spec.startswith(incomplete)]


def actions(incomplete: str) -> list[str]:
    """Return the actions of `lmlab vectors` that begin with `incomplete`."""
    return [action for action in ACTIONS if action.startswith(incomplete)]


def texts(incomplete: str) -> list[str]:
    """Return the named corpora, files and folders that begin with `incomplete`."""
    from lmlab.text.sources import available

    return [*(name for name in available() if name.startswith(incomplete)), *_paths(incomplete)]


def runs(incomplete: str) -> list[str]:
    """Return the folders that begin with `incomplete`; one without a run ends with a slash, so that completion continues."""
    folders = [path for path in _paths(incomplete) if Path(path).is_dir()]
    return [path if record_file(Path(path)) else f"{path}/" for path in folders]


def settings(ctx: Any, incomplete: str) -> list[str]:
    """Return the settings of the model named earlier on the command line, each with an equals sign."""
    # While an option lacks its value, click has not assigned the words before it.
    model = next((word for word in (ctx.params.get("model"), *ctx.args) if word in registry.KINDS), None)
    known = [] if model is None else settings_of(registry.model_class(model).Config)
    return [f"{name}=" for name in known if name.startswith(incomplete)]


def _paths(incomplete: str) -> list[str]:
    """Return the files and folders that begin with `incomplete`; hidden ones only if it begins with a dot."""
    folder, slash, start = incomplete.rpartition("/")
    here = Path(folder + slash or ".")
    names = sorted(path.name for path in here.iterdir()) if here.is_dir() else []
    return [folder + slash + name for name in names if name.startswith(start) and (start or name[0] != ".")]
