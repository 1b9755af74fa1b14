"""What one must know to repeat a measurement: versions, and the machine in words."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib import metadata
from pathlib import Path

from lmlab.version import __version__

PACKAGES = ("torch", "numpy", "tokenizers", "safetensors", "typer", "rich", "matplotlib", "sympy", "zstandard")


def versions() -> dict[str, str]:
    """Versions of lmlab and what its numbers depend on, the system and the processor."""
    import torch

    found = {"lmlab": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # run from a source tree beside what the system has
            found[name] = "not installed"
    threads = torch.get_num_threads()
    found["system"] = platform.platform(terse=True)
    found["processor"] = f"{processor()}, {usable_cores()} cores, {threads} thread{'' if threads == 1 else 's'}"
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def machine_name(device: str) -> str:
    """Name everything that decides the last bits of a result besides the plan: processor, cores, torch, and any GPU.

    Args:
        device: the kind of device that computes.
    """
    import torch

    found = f"{fingerprint()}, {usable_cores()} cores, torch {torch.__version__}"
    return f"{found}, {torch.cuda.get_device_name()}" if device == "cuda" else found


def processor() -> str:
    """In its maker's words, for people; nothing is concluded from it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def fingerprint() -> str:
    """Whatever the system says that tells one processor from another; it is compared, never interpreted."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return f"{platform.machine()} {processor()}"
    telling = ("model name", "cpu family", "model", "stepping", "flags", "features", "cpu implementer", "cpu part")
    said = {line.partition(":")[0].strip().lower(): line.partition(":")[2].strip() for line in lines if ":" in line}
    text = " ".join(f"{name}={said[name]}" for name in telling if name in said)
    return f"{platform.machine()} {processor()} {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def usable_cores() -> int:
    """Cores this process may use, which a container or a batch system may have made fewer than there are."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # macOS and Windows
        return os.cpu_count() or 1
