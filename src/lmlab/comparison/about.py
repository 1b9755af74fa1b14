"""What one must know to repeat a measurement: versions and the machine."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

from lmlab.version import __version__


def versions() -> dict[str, str]:
    """Versions of lmlab and what its numbers depend on, and the machine in words."""
    import torch

    found = {"lmlab": __version__, "python": platform.python_version()}
    found |= {name: metadata.version(name) for name in ("torch", "numpy", "tokenizers")}
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["processor"] = f"{_processor()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
