"""The functions in C that are raced against their plain twins on every machine; each race stands with its function."""

from __future__ import annotations

from lmlab.layers import attention
from lmlab.layers.fast import one_row_in_c, passes, recurrence

RACES = (attention.RACE, passes.RACE, recurrence.RACE, one_row_in_c.RACE)
