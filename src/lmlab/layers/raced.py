"""The functions in C that are raced against their plain twins on every machine; each race stands with its function."""

from __future__ import annotations

from collections.abc import Mapping

from lmlab.layers import attention
from lmlab.layers.fast import one_row_in_c, recurrence

RACES = attention.RACE, recurrence.RACE, one_row_in_c.RACE
ALL_TAKEN = {race.name(dtype): True for race in RACES for dtype in race.precisions}


def missing(taken: Mapping[str, bool]) -> list[str]:
    """The functions that a run used, by its checkpoint, and that are not here: this version or this machine lacks them."""
    here = {race.name(dtype) for race in RACES if race.can_be_run for dtype in race.precisions}
    return list(dict.fromkeys(name.rpartition(", ")[0] for name, used in taken.items() if used and name not in here))
