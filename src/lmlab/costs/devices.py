"""Devices that a plan can name: their speed and memory, by their data sheets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """A device by name."""

    name: str
    peak: float  # operations per second of dense products in 16 bits, by its data sheet
    memory: float  # bytes


DEVICES = {
    device.name: device
    for device in (
        Device("V100", 125e12, 32e9),
        Device("A100-40GB", 312e12, 40e9),
        Device("A100", 312e12, 80e9),
        Device("H100", 989.4e12, 80e9),
        Device("H200", 989.4e12, 141e9),
        Device("B200", 2250e12, 180e9),
    )
}
