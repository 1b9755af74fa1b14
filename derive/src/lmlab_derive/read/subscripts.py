"""Subscripts: x_i is x[i] where x is a name and x_i is none, and places in them that are no letters are asked about."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from lmlab_derive.limits import Refusal
from lmlab_derive.read.tokens import Token
from lmlab_derive.shapes.scope import Scope
from lmlab_derive.shapes.setting import build
from lmlab_derive.sizes import ONE, Shape
from lmlab_derive.small_formulas import minus, number
from lmlab_derive.text import to_text
from lmlab_derive.tree import Binary, Given, Node, Slice, constant_value

_NUMBERED = re.compile(r"([^\W\d_]*)_?(\d)(\d?)")  # x_1, x1 and W_12


def entries(tokens: Sequence[Token], known: Collection[str]) -> list[Token]:
    """x_i as x[i], where x is a name and x_i is none; x_ij is x[i, j]."""
    out: list[Token] = []
    for token in _with_its_d(_underscored(tokens, known), known):
        base, _, letters = token.text.partition("_")
        bare = base.removeprefix("d") if base not in known else base
        entry = token.kind == "name" and letters.isalpha() and len(letters) <= 3 and bare in known
        if not entry or token.text in known or (base != bare and token.text[1:] in known):
            out.append(token)
            continue
        parts = [base, "[", *",".join(letters), "]"]
        kinds = ["name", "symbol", *("symbol" if c == "," else "name" for c in ",".join(letters)), "symbol"]
        glued = [token.glued, *[True] * (len(parts) - 1)]
        named = zip(kinds, parts, glued, strict=True)
        out += [replace(token, kind=k, text=t, glued=g, paper=t != base) for k, t, g in named]
    return out


def _underscored(tokens: Sequence[Token], known: Collection[str]) -> list[Token]:
    """H_[i] as an entry of H_, where that is a name and H is none."""
    out = list(tokens)
    for at, (token, bracket) in enumerate(itertools.pairwise(tokens)):
        bare = token.text.removeprefix("d") if token.text not in known else token.text
        if token.kind == "name" and bracket.text == "[" and bracket.paper and bare not in known and f"{bare}_" in known:
            out[at : at + 2] = [replace(token, text=f"{token.text}_"), replace(bracket, paper=False, glued=True)]
    return out


def _with_its_d(tokens: Sequence[Token], known: Collection[str]) -> list[Token]:
    """d J as dJ, where d is no name."""
    out: list[Token] = []
    for token in tokens:
        before = out[-1].text if out and out[-1].kind == "name" and token.kind == "name" else ""
        if before in ("d", "d2") and before not in known and token.text.partition("_")[0] in known:
            out[-1] = replace(out[-1], text=before + token.text)
        else:
            out.append(token)
    return out


def in_the_only_row(tokens: Sequence[Token], scope: Scope) -> list[Token]:
    """x_j of a row x: 1, n as x[0, j]: a letter on an axis of size 1 would run over nothing."""
    out: list[Token] = []
    for at, token in enumerate(tokens):
        out.append(token)
        if token.text != "[" or not token.paper or not at:
            continue
        places = [inner.text for inner in tokens[at + 1 : _closing(tokens, at)]]
        letters = [text for text in places if text.isidentifier() and text not in scope.known]
        missing = len(shape := _shape(tokens[at - 1].text, scope)) - places.count(",") - 1
        if letters and missing > 0 and shape[:missing] == (ONE,) * missing and ONE not in shape[missing:]:
            zeros = [replace(token, kind="number", text="0"), replace(token, text=",")]
            out += zeros * missing
    return out


def _closing(tokens: Sequence[Token], at: int) -> int:
    """Where the bracket that opens here is closed."""
    depth = 0
    for end in range(at, len(tokens)):
        depth += (tokens[end].text in ("(", "[")) - (tokens[end].text in (")", "]"))
        if depth == 0:
            return end
    return len(tokens)


def _shape(name: str, scope: Scope) -> Shape:
    """The shape of x, which may also stand in dx; none for what has none."""
    name = name if name in scope.definitions else name.removeprefix("d")
    found = scope.definitions.get(name)
    if found is None:
        return ()
    return found.shape if isinstance(found, Given) else build(scope).shapes.names.get(name, ())


def refuse_numbers(places: Sequence[Node | Slice | None]) -> None:
    """Refuse the subscript of x_n and x_{n-1}: on paper it counts from 1, and what stands in brackets from 0."""
    named = [place for place in places if place is not None]
    if all(isinstance(place, Slice) or place.free_letters or constant_value(place) == 0 for place in named):
        return
    wanted = ", ".join(":" if isinstance(place, Slice) else _one_less(place) for place in named)
    raise Refusal(
        f"a subscript that is no letter could count from 1; write brackets, which count from 0: [{wanted}]",
        code="subscript-not-clear",
    )


def _one_less(place: Node) -> str:
    value = constant_value(place)
    if place.free_letters or value == 0:
        return to_text(place)
    if value is not None:
        return str(value - 1)
    step = constant_value(place.right) if isinstance(place, Binary) and place.op == "-" else None
    if isinstance(place, Binary) and step is not None:  # n - 2 for n - 1
        return to_text(minus(place.left, number(int(step) + 1)))
    return to_text(minus(place, number(1)))


def numbered_entry(name: str, scope: Scope) -> str:
    """What to write for x_1, which is no name: x[0], where x has entries."""
    found = _NUMBERED.fullmatch(name)
    if found is None or (found[1] and not _shape(found[1], scope)):
        return ""
    digits = [digit for digit in (found[2], found[3]) if digit]
    rank = len(_shape(found[1], scope)) or len(digits)
    places = digits if len(digits) == rank else ["".join(digits)]
    wanted = ", ".join(str(max(int(place) - 1, 0)) for place in places)
    return f"entries in brackets count from 0: write {found[1] or '(...)'}[{wanted}] if the first is called 1"
