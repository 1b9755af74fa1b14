"""Modules of bench/ are imported by their names, as its scripts do."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
