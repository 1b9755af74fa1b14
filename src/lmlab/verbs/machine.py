"""`lmlab.machine`: reports the measured speed of this machine."""

from __future__ import annotations

from lmlab.hardware.report import MachineReport, about_machine
from lmlab.layers.raced import RACES


def machine(*, again: bool = False) -> MachineReport:
    """Report the measured speed of this machine, and the choices that follow from it.

    Args:
        again: repeat measurements that are already saved.
    """
    return about_machine(RACES, again=again)
