"""A writer of TensorBoard event files.

A file is a sequence of records [length, its checksum, data, its checksum]. The data is an `Event` message in protocol buffers.
Four of its fields are used: wall_time (1), step (2), file_version (3) and summary (5). A summary has values (1) of tag (1) and
number (2). Checksums are CRC-32C, rotated and shifted by a constant. Writing the format needs no package; reading it needs
TensorBoard.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmlab.disk.files import write_atomically

NAME = "events.out.tfevents.0.lmlab"  # TensorBoard looks for "tfevents"
CASTAGNOLI = 0x82F63B78  # the polynomial of CRC-32C, bits reversed
MASK = 0xA282EAD8


def write_events(folder: Path, metrics: Sequence[Mapping[str, Any]]) -> Path:
    """Write the lines of metrics to one event file in the folder, and return its path. Values that are None are omitted."""
    records = [file_header(), *(event(line, wall_time=line["seconds"]) for line in metrics)]
    write_atomically(folder / NAME, b"".join(records))
    return folder / NAME


def file_header() -> bytes:
    """Return the first record of an event file."""
    return _record(_double(1, 0.0) + _bytes(3, b"brain.Event:2"))


def event(line: Mapping[str, Any], *, wall_time: float) -> bytes:
    """Return the record of one line of metrics. wall_time: in seconds."""
    values = {key: value for key, value in line.items() if key not in ("step", "seconds") and value is not None}
    summary = b"".join(_bytes(1, _bytes(1, tag.encode()) + _float(2, value)) for tag, value in values.items())
    return _record(_double(1, wall_time) + _whole(2, line["step"]) + _bytes(5, summary))


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", _masked(length)) + data + struct.pack("<I", _masked(data))


def _masked(data: bytes) -> int:
    checksum = crc32c(data)
    return ((checksum >> 15 | checksum << 17) + MASK) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """Return the CRC-32C checksum, computed bit by bit because the files are small."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (CASTAGNOLI if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _whole(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _double(field: int, number: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", number)


def _float(field: int, number: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", number)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
