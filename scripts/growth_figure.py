"""Draw how the operations of attention grow with length and width: the figure of docs/costs.md.

python scripts/growth_figure.py docs/costs/growth.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

from lmlab.costs.figures import growing
from lmlab.costs.growth import growths
from lmlab.page.figures import standalone


def main() -> None:
    """Write the figure."""
    Path(sys.argv[1]).write_text(standalone(growing(growths())), encoding="utf-8")


if __name__ == "__main__":
    main()
