"""Where to compute and in which precision: chosen once, in one place."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

LARGE_PAGES_BYTES = 512 << 20  # of heap: what the buffers of a training step on a CPU amount to, or most of it


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """A device, the precision of matrix products in training, and a rough speed to plan with."""

    device: torch.device
    dtype: torch.dtype
    training_flops: float  # per second, in training steps of small models: a planning figure, not a promise
    batch: int = 1  # how many times the batch that suits a CPU; a GPU takes the same time for four times as much

    def __str__(self) -> str:
        return f"{self.device.type}, {str(self.dtype).removeprefix('torch.')}"


def choose(device: str = "auto", precision: str = "auto") -> Hardware:
    """The device and precision asked for, or by themselves the fastest that are sure to work.

    auto: CUDA if there is any, else the CPU (mps only when asked for); bf16 where the processor has units for it (CUDA, or
    AMX on a CPU).
    """
    if device not in ("auto", "cpu", "cuda", "mps"):
        raise ValueError(f"device is auto, cpu, cuda or mps; got {device!r}")
    if precision not in ("auto", "bf16", "float32"):
        raise ValueError(f"precision is auto, bf16 or float32; got {precision!r}")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("this torch sees no CUDA device; use --device cpu")
    if device == "mps" and not torch.backends.mps.is_available():
        raise ValueError("this torch sees no MPS device; use --device cpu")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    fast_bf16 = (device == "cuda" and torch.cuda.is_bf16_supported()) or (device == "cpu" and cpu_has_amx())
    bf16 = precision == "bf16" or (precision == "auto" and fast_bf16)
    speed = 2e13 if device == "cuda" else torch.get_num_threads() * (1.6e11 if bf16 and fast_bf16 else 0.7e11)
    dtype = torch.bfloat16 if bf16 else torch.float32
    return Hardware(device=torch.device(device), dtype=dtype, training_flops=speed, batch=1 if device == "cpu" else 4)


def cpu_has_amx() -> bool:
    """Whether this CPU multiplies bf16 matrices in hardware (several times the speed of float32)."""
    info = Path("/proc/cpuinfo")
    return sys.platform == "linux" and info.exists() and "amx_bf16" in info.read_text()


def keep_memory() -> None:
    """Ask the C library to keep freed memory, and the kernel to hold it in large pages.

    Every step frees and takes the same large buffers. By default glibc unmaps them each time and the kernel zeroes fresh
    pages, which costs a training step on a CPU a tenth of its time; and in pages of 4 kB the processor spends as much again
    on looking up where they are. Elsewhere than on Linux with glibc this does nothing.
    """
    if sys.platform != "linux" or os.environ.get("LD_PRELOAD"):
        return
    try:
        libc = ctypes.CDLL("libc.so.6")
        trim_threshold, mmap_threshold = -1, -3
        libc.mallopt(mmap_threshold, 1 << 30)
        libc.mallopt(trim_threshold, (1 << 31) - 1)
        _prefer_large_pages(libc)
    except (OSError, AttributeError):  # another C library: its own habits then
        return


def _prefer_large_pages(libc: ctypes.CDLL) -> None:
    """Take a stretch of the heap, mark it for large pages, and give it back to the heap: what is never used costs nothing."""
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    page, madv_hugepage = mmap.PAGESIZE, 14
    address = libc.malloc(LARGE_PAGES_BYTES)
    if address is None:
        return
    first = -(-address // page) * page
    libc.madvise(first, (address + LARGE_PAGES_BYTES - first) // page * page, madv_hugepage)
    libc.free(address)
