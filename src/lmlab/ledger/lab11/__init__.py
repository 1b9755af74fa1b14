"""The claims of "lab11", in the order of the document."""

from lmlab.ledger.lab11 import flow  # noqa: F401, I001  (claims register in the order of the document)
from lmlab.ledger.lab11 import gates  # noqa: F401
from lmlab.ledger.lab11 import memory  # noqa: F401
from lmlab.ledger.lab11 import recurrent  # noqa: F401
from lmlab.ledger.lab11 import scaling  # noqa: F401
from lmlab.ledger.lab11 import transformer  # noqa: F401
from lmlab.ledger.lab11 import costs  # noqa: F401
from lmlab.ledger.lab11.book import BOOK

__all__ = ["BOOK"]
