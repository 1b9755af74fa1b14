"""The main job: every model on one text, inside one budget, ranked by bits per byte."""

import sys
from types import ModuleType
from typing import Any

from lmlab.compare.job import Comparison, Entry, compare

__all__ = ["Comparison", "Entry", "compare"]


class _CallablePackage(ModuleType):
    """`lmlab.compare` names this package and the function `lmlab` offers: which one is found depends on what was
    imported before. So the package can be called like the function.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Comparison:
        return compare(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
