"""What general compressors make of the test text after seeing the training text: yardsticks in the same unit.

A compressor that has read `train` needs about size(train + test) - size(train) bytes for `test`. How much of `train` it can
still use is its own limit: 32 kB for gzip, one block for bzip2, everything for xz and zstd.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import time
from collections.abc import Callable
from dataclasses import dataclass

TRAIN_BYTES = 8 << 20  # of training text that is shown, the end of it: xz takes a second or more per megabyte


@dataclass(frozen=True, kw_only=True)
class Yardstick:
    """One compressor's result."""

    name: str
    bits_per_byte: float
    seconds: float
    detail: str


def measure_yardsticks(train: bytes, test: bytes) -> list[Yardstick]:
    """gzip, bzip2, xz and zstd, each at its best setting, best last."""
    train = train[-TRAIN_BYTES:]
    compressors: list[tuple[str, str, Callable[[bytes, bytes], int]]] = [
        ("gzip", "remembers the last 32 kB", _gzip),
        ("bzip2", "remembers within blocks of 900 kB", _bzip2),
        ("xz", "remembers all it was shown", _xz),
        ("zstd", "the training text as its dictionary", _zstd),
    ]
    found = []
    for name, memory, size in compressors:
        started = time.perf_counter()
        bits = 8 * size(train, test) / len(test)
        shown = f"{memory}; shown the last {len(train):,} bytes of the training part"
        found.append(Yardstick(name=name, bits_per_byte=bits, seconds=time.perf_counter() - started, detail=shown))
    return found


def _gzip(train: bytes, test: bytes) -> int:
    near = train[-(1 << 16) :]  # more than it can look back on
    return len(gzip.compress(near + test, 9)) - len(gzip.compress(near, 9))


def _bzip2(train: bytes, test: bytes) -> int:
    # Blocks of 900 kB: as much training text as shares a block with the beginning of the test text.
    near = train[-max(0, 900_000 - len(test) % 900_000) :]
    return min(len(bz2.compress(near + test)) - len(bz2.compress(near)), len(bz2.compress(test)))


def _xz(train: bytes, test: bytes) -> int:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": max(1 << 20, len(train) + len(test))}]
    packed = [lzma.compress(text, format=lzma.FORMAT_RAW, filters=filters) for text in (train + test, train)]
    return len(packed[0]) - len(packed[1])


def _zstd(train: bytes, test: bytes) -> int:
    import zstandard

    dictionary = zstandard.ZstdCompressionDict(train, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    parameters = zstandard.ZstdCompressionParameters.from_level(19, window_log=27, enable_ldm=True)
    return len(zstandard.ZstdCompressor(dict_data=dictionary, compression_params=parameters).compress(test))
