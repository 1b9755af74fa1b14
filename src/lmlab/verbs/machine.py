"""`lmlab.machine`: what this machine can do."""

from __future__ import annotations

from lmlab.hardware.report import MachineReport, about_machine
from lmlab.layers.raced import RACES


def machine(*, again: bool = False) -> MachineReport:
    """Report what was measured on this machine, and what is chosen because of it.

    Args:
        again: measure again what is known already.
    """
    return about_machine(RACES, again=again)
