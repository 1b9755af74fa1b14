"""The main job: every model on one text, inside one budget, ranked by bits per byte.

Not named `compare`: a package of that name would hide the function `lmlab.compare` once it is imported.
"""

from lmlab.comparison.job import Comparison, Entry, compare

__all__ = ["Comparison", "Entry", "compare"]
