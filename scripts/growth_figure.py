"""Draw how the operations of attention grow with length and width: the figure of docs/costs.md.

python scripts/growth_figure.py docs/costs/growth.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

from lmlab.costs.figures import growing
from lmlab.costs.growth import growths
from lmlab.page.figures import standalone
from lmlab.page.html import write


def main() -> None:
    """Write the figure."""
    write(Path(sys.argv[1]), standalone(growing(growths())))


if __name__ == "__main__":
    main()
