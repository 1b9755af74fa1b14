"""A grid of one model's settings, several seeds a cell, and which differences are real.

Not named `sweep`: a package of that name would hide the function `lmlab.sweep` once it is imported.
"""

from lmlab.sweeps.differences import Difference
from lmlab.sweeps.run_sweep import Sweep, sweep
from lmlab.sweeps.table import Cell

__all__ = ["Cell", "Difference", "Sweep", "sweep"]
