"""Sweeps over a grid of one model's settings, with several seeds per cell and tests of the differences.

The package is not named `sweep`: a package of that name would hide the function `lmlab.sweep` once it is imported.
"""

from lmlab.sweeps.differences import Difference
from lmlab.sweeps.run_sweep import Sweep, sweep
from lmlab.sweeps.table import Cell

__all__ = ["Cell", "Difference", "Sweep", "sweep"]
