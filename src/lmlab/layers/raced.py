"""The functions in C that are raced against their plain twins on every machine; each race stands with its function."""

from __future__ import annotations

from collections.abc import Mapping

from lmlab.layers import attention
from lmlab.layers.fast import few_rows_in_c, one_row_in_c, passes, recurrence

RACES = (
    attention.RACE,
    passes.STREAM,
    passes.SQUARES,
    recurrence.RACE,
    one_row_in_c.RACE,
    few_rows_in_c.PAIR_RACE,
    few_rows_in_c.SOME_RACE,
)
SINCE = few_rows_in_c.PAIR_RACE, few_rows_in_c.SOME_RACE  # there were checkpoints that named what they took
ALL_TAKEN = {race.name(dtype): True for race in RACES if race not in SINCE for dtype in race.precisions}


def missing(taken: Mapping[str, bool]) -> list[str]:
    """What a run took, by its checkpoint, and cannot be made here."""
    lacking = (race for race in RACES if not race.can_be_run)
    return [race.what for race in lacking if any(taken.get(race.name(dtype)) for dtype in race.precisions)]
