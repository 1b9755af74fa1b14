"""The main job: every model on one text, inside one budget, ranked by bits per byte."""

from lmlab.compare.job import Comparison, Entry, compare

__all__ = ["Comparison", "Entry", "compare"]
