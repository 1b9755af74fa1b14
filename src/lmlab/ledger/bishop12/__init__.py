"""The claims of "bishop12", in the order of the document."""

from lmlab.ledger.bishop12 import weights  # noqa: F401, I001  (claims register in the order of the document)
from lmlab.ledger.bishop12 import attention  # noqa: F401
from lmlab.ledger.bishop12 import positions  # noqa: F401
from lmlab.ledger.bishop12 import counting  # noqa: F401
from lmlab.ledger.bishop12 import search  # noqa: F401
from lmlab.ledger.bishop12 import bert  # noqa: F401
from lmlab.ledger.bishop12.book import BOOK

__all__ = ["BOOK"]
