"""A result as JSON on standard output."""

from __future__ import annotations

import json
import sys
from typing import Any


def print_json(document: Any) -> None:
    """Print one JSON document on stdout."""
    json.dump(document, sys.stdout, indent=2, allow_nan=False)
    print()
