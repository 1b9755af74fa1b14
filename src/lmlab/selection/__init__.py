"""The search for the best model of a text within a time, by successive halving: `lmlab best`."""

from lmlab.selection.search import best

__all__ = ["best"]
