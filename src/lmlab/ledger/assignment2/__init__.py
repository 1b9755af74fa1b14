"""The claims of "assignment2", in the order of the document."""

from lmlab.ledger.assignment2 import gradients  # noqa: F401, I001  (claims register in the order of the document)
from lmlab.ledger.assignment2 import characters  # noqa: F401
from lmlab.ledger.assignment2 import perplexity  # noqa: F401
from lmlab.ledger.assignment2 import averaging  # noqa: F401
from lmlab.ledger.assignment2 import copying  # noqa: F401
from lmlab.ledger.assignment2 import noise  # noqa: F401
from lmlab.ledger.assignment2 import heads  # noqa: F401
from lmlab.ledger.assignment2.book import BOOK

__all__ = ["BOOK"]
