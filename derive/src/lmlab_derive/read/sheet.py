"""Text to statements, each with the names it can see."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lmlab_derive.limits import Refusal
from lmlab_derive.read.cursor import sizes_in_builders, splits_claim
from lmlab_derive.read.expressions import RELATIONS
from lmlab_derive.read.notation import free_letters
from lmlab_derive.read.prose import claims_in, has_words
from lmlab_derive.read.statements import StatementParser, source
from lmlab_derive.read.subscripts import entries
from lmlab_derive.read.tokens import (
    KEYWORDS,
    RawStatement,
    Token,
    split_statements,
    starts_statement,
    tokenize,
)
from lmlab_derive.shapes.scope import Definition, Scope
from lmlab_derive.text import to_text
from lmlab_derive.tree import Claim, Condition, Node, NotUnderstood, Step

_STEP = re.compile(r"\s*(?:=|<=|>=|<|>|≤|≥|\\le|\\ge)")
_OWN_RELATION = r"(?:[=<>≤≥]|\\[lg]eq?(?![a-z]))"
_GOES_ON = rf"[-+*/@·^&)\]}}–]|{_OWN_RELATION}|\\(?:cdot|times)\b"
_ANEW = re.compile(rf"\s*(?!{_GOES_ON}).*{_OWN_RELATION}")  # a formula of its own
_SIGNED = re.compile(rf"\s*[-+*•–].*{_OWN_RELATION}")  # one that goes on with the row above, or starts with a sign
_UNENDED = re.compile(r"[-=+*/@^<>≤≥,(\[{]\s*$")
_ITEM = re.compile(r"\s*(?:[-*•>]\s|\*\*\w{1,3}[).]+\*\*).*[=<>≤≥]")  # a line of a list
_COLUMN = re.compile(r"^column \d+: ")
_DEFINES = re.compile(r"\s*(?:given|let)\s+([^\W\d]\w*'*)")


@dataclass(frozen=True)
class ScopedClaim:
    """A claim with everything it can see."""

    claim: Claim
    scope: Scope


@dataclass(frozen=True)
class Sheet:
    """A parsed text: its claims and its mistakes in the order of the lines, and the final scope."""

    entries: tuple[ScopedClaim | NotUnderstood, ...]
    scope: Scope
    notes: tuple[str, ...] = ()


def parse_claim(raw: RawStatement, tokens: list[Token], scope: Scope) -> ScopedClaim:
    """claim or derive: the where clause is read first, since the sides use its names."""
    keyword, body = tokens[0].text, tokens[1:]
    depth, end = 0, len(body) - 1
    cut = stop = end
    for i, token in enumerate(body):
        depth += token.nesting
        if depth == 0 and splits_claim(body, i):
            cut, stop = i, _next_step(body, i)
            break
    masks: tuple[Condition, ...] = ()
    if cut < end:
        letters = free_letters(entries(body, scope.known), scope.known)
        reader, conditions = _where([*body[cut + 1 : stop], body[end]], letters, scope)
        masks = tuple(c for c in conditions if c.left.free_letters | c.right.free_letters)
        scope = replace(reader.scope, conditions=scope.conditions + tuple(c for c in conditions if c not in masks))
    scope = replace(scope, sizes=scope.sizes | sizes_in_builders(body, scope.known))
    reader = StatementParser([*body[:cut], *body[stop:]], scope)
    sides = reader.steps(masks)
    said = said_again(sides) if reader.forgave or masks or raw.plain != raw.text else ""
    if len(sides) < 2:
        steps = "steps on lines of their own, each starting with ="
        wanted = steps if keyword == "derive" else "a relation: ==, <=, >=, < or >"
        raise Refusal(f"the {keyword} has only one side; it needs {wanted}", code="claim-with-one-side")
    where_text = source(body[cut:stop])
    claim = Claim(
        steps=sides, where_text=where_text, line=raw.line, text=raw.text, derive=keyword == "derive", read=said
    )
    return ScopedClaim(claim, reader.scope)


def _where(tokens: list[Token], letters: set[str], scope: Scope) -> tuple[StatementParser, tuple[Condition, ...]]:
    """The conditions of a where clause; the letters of the claim are known in it unless it defines them otherwise."""
    reader = StatementParser(tokens, scope)
    try:
        return reader, reader.where()
    except Refusal:
        reader = StatementParser(tokens, scope)
        reader.letters |= dict.fromkeys(letters, 1)
        return reader, reader.where()


def read_again(scope: Scope, *sides: Node) -> tuple[Node, Node]:
    """Two sides of an equation as they come out when what is shown of them is read; a Refusal if it cannot be."""
    text = "claim " + " = ".join(map(to_text, sides))
    raw = RawStatement(line=0, rows=((0, text),))
    first, second = parse_claim(raw, tokenize(raw), scope).claim.steps
    return first.value, second.value


def said_again(steps: Sequence[Step]) -> str:
    """A claim as it was read, in the signs of the language."""
    return " ".join(f"{step.relation} {to_text(step.value)}".strip() for step in steps)


def _next_step(body: Sequence[Token], cut: int) -> int:
    """Where the steps of a derivation go on after a where clause on its first line."""
    for i in range(cut + 1, len(body) - 1):
        if body[i].text in RELATIONS and body[i].line != body[i - 1].line:
            return i
    return len(body) - 1


def parse(text: str, scope: Scope | None = None, locked: frozenset[str] = frozenset(), *, prose: bool = False) -> Sheet:
    """Parse a whole text. A statement that is not understood becomes a `NotUnderstood`; the rest is still read.

    `scope` holds definitions from before, such as the setting that a grading key lays down; the `locked` ones among
    them stay what they are, and a statement that would change one is noted. In `prose`, lines without a keyword are
    searched for claims.
    """
    scope = replace(scope or Scope(), locked=locked)
    entries: list[ScopedClaim | NotUnderstood] = []
    notes: list[str] = []
    broken: dict[str, int] = {}
    statements = split_statements(text)
    later = _defined_later(statements)
    for raw in statements:
        defines = _DEFINES.match(raw.text)
        name = defines[1] if defines else None
        try:
            tokens = tokenize(raw)
            keyword = tokens[0].text
            if keyword not in KEYWORDS:
                raise Refusal(_no_statement(tokens), code="no-statement")
            if keyword in ("given", "let"):
                scope = _define(keyword, tokens, raw, scope, notes)
            elif keyword == "assume":
                conditions = StatementParser(tokens[1:], scope).conditions()
                scope = replace(scope, conditions=scope.conditions + conditions)
            else:
                entry = parse_claim(raw, tokens, scope)
                entries.append(replace(entry, claim=replace(entry.claim, joined=_joined(raw))))
        except Refusal as refusal:
            rest = _readable_steps(raw, scope) if raw.text.lstrip().startswith("derive") else None
            if rest is not None:
                entries.append(rest)
                continue
            reason = _blame(str(refusal), broken, later.get(raw.line, {}))
            if raw.plain != raw.text:
                reason += f" (read as: {raw.plain})"
            for row in _items(raw) if prose and not starts_statement(raw.text) else [raw]:
                claims, fault = _in_prose(row, scope) if prose and not starts_statement(raw.text) else ([], "")
                entries += claims or [NotUnderstood(line=row.line, text=row.text, reason=fault or reason)]
            if name:
                broken[name] = raw.line
    return Sheet(tuple(entries), scope, tuple(notes))


def _readable_steps(raw: RawStatement, scope: Scope) -> ScopedClaim | None:
    """A derivation without its lines that are not understood; None where nothing is left, or no line is to blame."""
    steps: list[list[tuple[int, str]]] = []
    for row in raw.rows:
        if not steps or _STEP.match(row[1]):
            steps.append([row])
        else:
            steps[-1].append(row)
    kept, skipped = [*steps[0]], []
    for rows in steps[1:]:
        try:
            alone = RawStatement(raw.line, (*steps[0], *rows))
            parse_claim(alone, tokenize(alone), scope)
            kept += rows
        except Refusal as refusal:
            text = " ".join(row.strip() for _, row in rows)
            skipped.append(NotUnderstood(line=rows[0][0], text=text, reason=str(refusal)))
    if not skipped or len(kept) == len(steps[0]):
        return None
    try:
        rest = RawStatement(raw.line, tuple(kept))
        entry = parse_claim(rest, tokenize(rest), scope)
    except Refusal:
        return None
    return replace(entry, claim=replace(entry.claim, text=raw.text, skipped=tuple(skipped)))


def _joined(raw: RawStatement) -> bool:
    """Whether a row that starts with a sign, as -KL(p, q) = ..., was taken to go on with a relation above it."""
    above = ""
    for _, row in raw.rows:
        if _SIGNED.match(row) and re.search(_OWN_RELATION, above):
            return True
        above += row
    return False


def _items(raw: RawStatement) -> list[RawStatement]:
    """A statement without a keyword, or its parts: items of a list, and rows of an align with a relation of their own."""
    titled = re.search(_OWN_RELATION, raw.rows[0][1]) is None  # My answers: above a list
    if len(raw.rows) > 1 and all(_ITEM.match(row) for _, row in raw.rows[titled:]):
        return [RawStatement(line, ((line, row),)) for line, row in raw.rows]
    items = [[raw.rows[0]]]
    for row in raw.rows[1:]:
        above = " ".join(text for _, text in items[-1])
        open_still = sum(map(above.count, "([{")) > sum(map(above.count, ")]}")) or _UNENDED.search(above)
        if _ANEW.match(row[1]) and not open_still:
            items.append([row])
        else:
            items[-1].append(row)
    return [RawStatement(rows[0][0], tuple(rows)) for rows in items]


def _in_prose(raw: RawStatement, scope: Scope) -> tuple[list[ScopedClaim], str]:
    """The claims of a line without a keyword: all of it, or what of it stands among words; else what is wrong with it."""
    found: list[ScopedClaim] = []
    fault = ""
    unclear = any(_SIGNED.match(row) for _, row in raw.rows[1:])
    for text, among_words in claims_in("\n".join(row for _, row in raw.rows), scope.known):
        if found and not (among_words and found[-1].claim.in_prose):
            break
        rows = tuple((raw.line + k, row) for k, row in enumerate(f"claim {text}".split("\n")))
        statement = RawStatement(line=raw.line, rows=rows)
        try:
            entry = parse_claim(statement, tokenize(statement), scope)
        except Refusal as refusal:
            fault = fault or ("" if among_words else str(refusal))
            continue
        if all(entry.claim.steps != other.claim.steps for other in found):
            claim = replace(entry.claim, text=raw.text, in_prose=among_words or unclear, joined=unclear)
            found.append(replace(entry, claim=claim))
    return found, "" if has_words(raw.text, scope.known) else _COLUMN.sub("", fault)


def _define(keyword: str, tokens: list[Token], raw: RawStatement, scope: Scope, notes: list[str]) -> Scope:
    """The scope after a given or a let."""
    if keyword == "given":
        reader = StatementParser(tokens[1:], scope)
        for given in reader.givens():
            notes += _changes(given, scope, raw.line)
        return reader.scope
    wider = replace(scope, sizes=scope.sizes | sizes_in_builders(tokens, scope.known))
    reader = StatementParser(tokens[1:], wider)
    let = reader.let()
    if let is None:
        return reader.scope
    notes += _changes(let, scope, raw.line)
    return scope if let.name in scope.locked else reader.scope.define(let)


def _changes(definition: Definition, scope: Scope, line: int) -> list[str]:
    """A note, where a definition would change one that is locked."""
    old = scope.definitions.get(definition.name)
    same = old is not None and replace(old, line=definition.line) == definition
    note = f"line {line} defines {definition.name} anew; the key's definition is used"
    return [note] if definition.name in scope.locked and not same else []


def _no_statement(tokens: list[Token]) -> str:
    """What a line without a keyword was probably meant to be."""
    first = tokens[0].text
    starts = f"a statement starts with {', '.join(KEYWORDS)}; {first!r} does not"
    if first.lower() in KEYWORDS:
        return f"{starts}; write {first.lower()}"
    if tokens[0].kind == "name" and len(tokens) > 1 and tokens[1].text == "=":
        return f"{starts}; did you mean let {first} = ...?"
    if any(token.text in RELATIONS for token in tokens):
        return f"{starts}; did you mean claim {first}...?"
    return starts


def _defined_later(statements: Sequence[RawStatement]) -> dict[int, dict[str, int]]:
    """For every statement, by its line: the names that are defined below it, and on which line."""
    below: dict[str, int] = {}
    found = {}
    for raw in reversed(statements):
        found[raw.line] = dict(below)
        if defines := _DEFINES.match(raw.text):
            below[defines[1]] = raw.line
    return found


def _blame(reason: str, broken: dict[str, int], later: dict[str, int]) -> str:
    """Point at the definition when a missing name comes from one that is broken, or that stands further down."""
    for name, line in broken.items():
        if f" {name} is not defined" in reason:
            return f"{name} is not defined, because line {line} is not understood"
    for name, line in later.items():
        if f" {name} is not defined" in reason:
            return f"{name} is defined on line {line} only; move that line above this one"
    return reason
