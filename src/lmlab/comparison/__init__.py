"""Comparison of models on one text within one budget, ranked by bits per byte.

The package is not named `compare`: a package of that name would hide the function `lmlab.compare` once it is imported.
"""

from lmlab.comparison.compared_entry import ComparedEntry
from lmlab.comparison.findings import Findings
from lmlab.comparison.outcome import Comparison
from lmlab.comparison.train_and_rank import compare

__all__ = ["ComparedEntry", "Comparison", "Findings", "compare"]
