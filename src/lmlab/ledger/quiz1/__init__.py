"""The claims of "quiz1", in the order of the document."""

from lmlab.ledger.quiz1 import inference  # noqa: F401, I001  (claims register in the order of the document)
from lmlab.ledger.quiz1 import attention  # noqa: F401
from lmlab.ledger.quiz1.book import BOOK

__all__ = ["BOOK"]
