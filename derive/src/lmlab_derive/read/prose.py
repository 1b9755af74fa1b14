"""Mathematics among words: what of a line without a keyword may be a claim."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from lmlab_derive.functions import NAMES, OTHER_NAMES, WRITTEN_OUT
from lmlab_derive.read.from_latex_and_unicode import GREEK

_MARK = r"\s*(?:[-*•>]\s+|\\item\s+)?"
_LABEL = re.compile(rf"{_MARK}(?:[^=<>≤≥\\$:]{{0,30}}:(?!=))?\s*")  # Answer:
_NUMBERED = re.compile(  # 1a) and 2. and (2) and 2.) and Exercise 2. before a formula
    rf"{_MARK}\**(?:[A-Z][a-z]+ )?[(\[]?(?P<name>\w{{1,3}})[).\]]+\**(?:\s+|$)"
)
_BULLET = re.compile(r"^\s*(?:[-*•>–]|\d+\s+[-–—]|\d+(?:\.\d+)+)\s+")  # a label, or a part of the formula
_WORD = re.compile(r"(?<![\\\w.{])[^\W\d_]{2,}(?:['’-][^\W\d_]+)?(?![\w(\[{])")
_PIECE = re.compile(r"\0|(?<=[\w)\]}])\s*[.;,](?=\s|$|\0)")
_RELATION = re.compile(r"[=<>≤≥]|\\(?:le|ge|leq|geq)(?![a-z])")
_WORDS_OF_FORMULAS = {"where", "pi", "inf", "np", "frac", "partial", "sum", "prod", "Var", "Cov", "KL", "and"}


def claims_in(text: str, known: Collection[str]) -> Iterator[tuple[str, bool]]:
    """What may be claims in a line, each with whether a person has to say that it is one.

    A label before it is none. What may be a bullet or a sign, as in - H(p) <= 1 and 4 - H(p) <= 1, is for a person.
    """
    numbered = _NUMBERED.match(text)
    if numbered and numbered["name"] not in known:
        readings = [text[numbered.end() :], text]
    else:
        readings = [text, _LABEL.sub("", text, count=1)]
    for whole in dict.fromkeys(filter(_RELATION.search, readings)):
        unclear = _BULLET.sub("", whole, count=1)
        if unclear != whole:
            yield unclear.strip().rstrip(".,;"), True
        yield whole.strip().rstrip(".,;"), unclear != whole
    bare = readings[0] if numbered else readings[1]
    formulas = _words_of_formulas(known)

    def kept(found: re.Match[str]) -> str:
        return found[0] if found[0] in formulas else "\0"

    for piece in _PIECE.split(_WORD.sub(kept, bare)):
        if piece and _RELATION.search(piece):
            yield piece.strip(" ()\t:–—"), True
            yield piece.strip(), True


def has_words(text: str, known: Collection[str]) -> bool:
    """Whether a line has words beside its formulas."""
    return any(found[0] not in _words_of_formulas(known) for found in _WORD.finditer(_LABEL.sub("", text, count=1)))


def _words_of_formulas(known: Collection[str]) -> set[str]:
    formulas = {*known, *NAMES, *OTHER_NAMES, *WRITTEN_OUT, *GREEK.values(), *_WORDS_OF_FORMULAS}
    return formulas | {f"d{name}" for name in known}
