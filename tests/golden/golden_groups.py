"""All groups of golden values."""

from __future__ import annotations

import golden_models
import golden_records
import golden_uses
from golden_values import Group

GROUPS: tuple[Group, ...] = (*golden_models.GROUPS, *golden_uses.GROUPS, *golden_records.GROUPS)
