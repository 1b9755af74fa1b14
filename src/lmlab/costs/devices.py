"""Devices that a plan can name: their speed and memory, by their data sheets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """A device by name.

    peak: operations per second of dense products in 16 bits, by its data sheet. memory: bytes. kind: what it is built
    like, since devices of one kind reach about the same share of their peak.
    """

    name: str
    peak: float
    memory: float
    kind: str


DEVICES = {
    device.name: device
    for device in (
        Device("V100", 125e12, 32e9, "V100"),
        Device("A100-40GB", 312e12, 40e9, "A100"),
        Device("A100", 312e12, 80e9, "A100"),
        Device("H100", 989.4e12, 80e9, "H100"),
        Device("H800", 989.4e12, 80e9, "H100"),
        Device("H200", 989.4e12, 141e9, "H100"),
        Device("B200", 2250e12, 180e9, "B200"),
        Device("TPUv4", 275e12, 32e9, "TPUv4"),
    )
}
