"""Baselines: the size of the test text under general compressors that have read the training text.

gzip and xz read from left to right. After `train`, they need size(train + test) - size(train) bytes for `test`. Their
window limits how much of `train` they use. zstd takes the training text as a dictionary. bzip2 sorts whole blocks, so it
cannot be given any text beforehand.
"""

from __future__ import annotations

import bz2
import gzip
import importlib.util
import lzma
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from lmlab.comparison.findings import Baseline

TRAIN_BYTES = 8 << 20  # most training bytes to read, from the end: xz takes a second or more per megabyte
TRIED_BYTES = 1 << 18  # training bytes of the first attempt, if time is limited
SLOWER = 1.7  # growth of the time per byte for texts larger than the cache
LARGER = 2.0  # a second attempt must fit at least this many times as many bytes


def run_baselines(
    train: bytes, test: bytes, seconds: float = math.inf, *, of_bytes: int | None = None
) -> list[Baseline]:
    """Compress `test` with gzip, bzip2, xz and zstd at strong settings, after as much training text as the time allows.

    Args:
        train: the training text, or the end of it.
        test: the text to compress.
        seconds: the time for all compressors. With a limit, they first read a short end of `train`, then more if it fits.
        of_bytes: the size of the whole training text, if `train` is only its end.
    """
    of_bytes = len(train) if of_bytes is None else of_bytes
    train, shown = train[-TRAIN_BYTES:], TRIED_BYTES
    while seconds < math.inf and shown < len(train):
        started = time.perf_counter()
        found = _measured(train[-shown:], test, of_bytes)
        took_s = time.perf_counter() - started
        seconds -= took_s
        fits = int(shown * seconds / (SLOWER * took_s))
        if fits < LARGER * shown:
            return found
        shown = fits
    return _measured(train, test, of_bytes)


def _measured(train: bytes, test: bytes, of_bytes: int) -> list[Baseline]:
    shown = f"{'all' if len(train) == of_bytes else 'the last'} {len(train):,} training bytes"
    compressors: list[tuple[str, str, Callable[[bytes, bytes], int]]] = [
        ("gzip", "shown the training text; remembers 32 kB", _gzip),
        ("bzip2", "cannot be shown a text beforehand", _bzip2),
        ("xz", f"shown {shown}; remembers them", _xz),
        ("zstd", f"{shown} as its dictionary", _zstd),
    ]
    if importlib.util.find_spec("zstandard") is None:  # the package is optional
        compressors.pop()

    def measured(name: str, memory: str, size: Callable[[bytes, bytes], int]) -> Baseline:
        started = time.perf_counter()
        # if `train` contains the test text, both together may compress to less than `train` alone
        bits = 8 * max(0, size(train, test)) / len(test)
        return Baseline(name=name, bits_per_byte=bits, seconds=time.perf_counter() - started, detail=memory)

    with ThreadPoolExecutor() as pool:  # compressors release the interpreter lock
        return list(pool.map(lambda compressor: measured(*compressor), compressors))


def _gzip(train: bytes, test: bytes) -> int:
    near = train[-(1 << 16) :]  # longer than its window
    return len(gzip.compress(near + test, 9)) - len(gzip.compress(near, 9))


def _bzip2(train: bytes, test: bytes) -> int:
    return len(bz2.compress(test, 9))


def _xz(train: bytes, test: bytes) -> int:
    remembered = len(train) + len(test)
    with ThreadPoolExecutor() as pool:
        both, alone = pool.map(lambda text: _packed(text, remembered), (train + test, train))
    return both - alone


def _packed(text: bytes, remembered: int) -> int:
    """Return the number of bytes of a text compressed by xz with a window of at least `remembered` bytes."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": max(1 << 20, remembered)}]
    return len(lzma.compress(text, format=lzma.FORMAT_RAW, filters=filters))


def _zstd(train: bytes, test: bytes) -> int:
    import zstandard

    dictionary = zstandard.ZstdCompressionDict(train, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    parameters = zstandard.ZstdCompressionParameters.from_level(19, window_log=27, enable_ldm=True)
    return len(zstandard.ZstdCompressor(dict_data=dictionary, compression_params=parameters).compress(test))
