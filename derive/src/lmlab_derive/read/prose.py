"""Mathematics among words: what of a line without a keyword may be a claim."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from lmlab_derive.functions import NAMES, OTHER_NAMES, WRITTEN_OUT
from lmlab_derive.read.from_latex_and_unicode import GREEK

_LABEL = re.compile(r"\s*(?:[-*•]\s+)?(?:[^=<>≤≥\\$:]{0,30}:(?!=)|\(?\w{1,3}[).](?=\s))\s*")  # 1a) and Answer:
_WORD = re.compile(r"(?<![\\\w.{])[^\W\d_]{2,}(?:['’-][^\W\d_]+)?(?![\w(\[{])")
_PIECE = re.compile(r"\0|(?<=[\w)\]}])\s*[.;,](?=\s|$|\0)")
_RELATION = re.compile(r"[=<>≤≥]|\\(?:le|ge|leq|geq)(?![a-z])")
_WORDS_OF_FORMULAS = {"where", "pi", "inf", "np", "frac", "partial", "sum", "prod", "Var", "Cov", "KL", "and"}


def claims_in(text: str, known: Collection[str]) -> Iterator[tuple[str, bool]]:
    """What may be claims in a line, each with whether it stands among words; a label before it is none."""
    bare = _LABEL.sub("", text, count=1)
    for whole in dict.fromkeys((text, bare)):
        if _RELATION.search(whole):
            yield whole.strip().rstrip(".,;"), False
    formulas = {*known, *NAMES, *OTHER_NAMES, *WRITTEN_OUT, *GREEK.values(), *_WORDS_OF_FORMULAS}
    formulas |= {f"d{name}" for name in known}

    def kept(found: re.Match[str]) -> str:
        return found[0] if found[0] in formulas else "\0"

    for piece in _PIECE.split(_WORD.sub(kept, bare)):
        if piece and _RELATION.search(piece):
            yield piece.strip(" ()\t:–—"), True
            yield piece.strip(), True
