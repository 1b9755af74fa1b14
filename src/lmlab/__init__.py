"""lmlab: a laboratory for language models.

import lmlab
run = lmlab.train("gpt", "mytext.txt", out="runs/mine", budget="3m")
print(lmlab.evaluate(run).bits_per_byte)
print(lmlab.generate(run, "Once upon")[0].text)

Every verb of the command line is a function here, with the names of its options: `--set` is `settings`, `--learn` is
`learning`, and a path may be a string.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from typing import Any

from lmlab import plugins as _plugins  # noqa: F401  (registers every task)
from lmlab.version import __version__ as __version__


def _registered() -> dict[str, str]:
    """Read `__init__.pyi`: for each name that it offers, the module."""
    source = pkgutil.get_data("lmlab", "__init__.pyi")
    assert source is not None, "it lies beside this file"
    imports = [line for line in ast.parse(source).body if isinstance(line, ast.ImportFrom)]
    return {one.name: str(line.module) for line in imports for one in line.names}


_NAMES = _registered()

__all__ = sorted(name for name in _NAMES if name != "__version__")


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: most need torch, and `import lmlab` should not."""
    if name not in _NAMES:
        raise AttributeError(f"module 'lmlab' has no attribute {name!r}")
    from lmlab.arguments import held_to_its_signature

    found = getattr(importlib.import_module(_NAMES[name]), name)
    return found if isinstance(found, type) else held_to_its_signature(found)


def __dir__() -> list[str]:
    """List what is offered, for an editor to complete; not what this file is made with."""
    return [*__all__, "__version__"]
