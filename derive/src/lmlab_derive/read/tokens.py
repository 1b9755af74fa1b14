"""Characters to tokens, and lines to statements."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lmlab_derive.limits import MAX_STATEMENTS, MAX_TEXT, MAX_TOKENS, Refusal
from lmlab_derive.read.from_latex_and_unicode import plain, without_stop, without_typesetting

_TOKEN = re.compile(
    r"""\s+ | (?:np|numpy|jnp|torch)\.(?:linalg\.|special\.)?(?=[a-z])
    | (?P<number>(?:\d+(?:\.(?!\.)\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<name>(?!_\[)[^\W\d](?:\w*?(?=_\[)|\w*'*))
    | (?P<symbol>_\[|\*\*|\^|==|<=|>=|!=|!|\.\.|\|\||~|\.m?T(?!\w)|\.(?=[^\W\d]\w*\()|[-+*/@·()\[\]{},:=<>|‖])""",
    re.VERBOSE,
)
_WRITE_INSTEAD = {
    ";": "a new line",
    "∇": "dJ/dx",
    "∈": "a colon, as in `given x: n`",
    "∀": "nothing: a claim is for all",
    "?": "where(c, a, b)",
    "%": "# before a comment, a - b * floor(a / b) for a remainder",
    "&": "one claim a line",
}
_WRITE_INSTEAD |= dict.fromkeys("'\"", "@, sum and .T in place of einsum")
KEYWORDS = ("given", "let", "assume", "claim", "derive")
_STARTS = re.compile(rf"\s*({'|'.join(KEYWORDS)})(?!\w)")
_GOES_ON = re.compile(r"\s*([-−=<>≤≥+*/@·)\]}]|where(?!\w)|\.T)")
_OPEN_END = re.compile(r"[-−=<>≤≥+*/@·,\\]$")  # a row that ends so goes on in the next one


ENDS = "\x1f"  # before a line that goes on with no statement above it


@dataclass(frozen=True)
class Token:
    """One word of a statement; `kind` is number, name, symbol or end."""

    kind: str
    text: str
    line: int
    column: int  # of the first character, counted from 1
    glued: bool = False  # no space before it
    paper: bool = False  # written as on paper: of a subscript, which belongs to the name that it stands on; ^ for **

    @property
    def nesting(self) -> int:
        """1 where it opens a bracket, -1 where it closes one."""
        return (self.text in ("(", "[", "{")) - (self.text in (")", "]", "}"))


@dataclass(frozen=True)
class RawStatement:
    """The physical lines of one statement, comments removed."""

    line: int
    rows: tuple[tuple[int, str], ...]

    @property
    def text(self) -> str:
        """The statement on one line, for reports."""
        return " ".join(row.strip() for _, row in self.rows if row.strip())

    @property
    def plain(self) -> str:
        """The same in the signs of the language."""
        return " ".join(plain(row).replace("^", "**").strip() for _, row in self.rows if row.strip())


def starts_statement(text: str) -> bool:
    """Whether a line starts with a word that statements start with."""
    return bool(_STARTS.match(text))


def split_statements(text: str) -> list[RawStatement]:
    """Group lines into statements. One goes on while a bracket is open, or if a line ends or begins with an operator.

    A line that starts with a keyword always begins a new statement, so that one forgotten bracket spoils one statement.
    """
    if len(text) > MAX_TEXT:
        raise Refusal(f"the sheet has {len(text)} characters; at most {MAX_TEXT} are read", code="sheet-too-long")
    groups: list[list[tuple[int, str]]] = []
    ended: list[list[tuple[int, str]]] = []
    depth = 0
    continued = False
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if line.startswith(ENDS):  # a statement does not go on below the name of a question
            groups, ended, depth, continued = [], [*ended, *groups], 0, False
        row = line.removeprefix(ENDS).split("#", 1)[0].rstrip()
        bare = without_typesetting(row)
        if not bare.strip():
            continue
        goes_on = (depth > 0 or continued or bool(_GOES_ON.match(bare))) and not _STARTS.match(row)
        continued = bool(_OPEN_END.search(row))
        row = row.rstrip("\\")
        if goes_on and groups:
            groups[-1].append((number, row))
        else:
            groups.append([(number, row)])
            depth = 0
        depth = max(0, depth + sum(map(row.count, "([{")) - sum(map(row.count, ")]}")))
    groups = [*ended, *groups]
    if len(groups) > MAX_STATEMENTS:
        raise Refusal(
            f"the sheet has {len(groups)} statements; at most {MAX_STATEMENTS} are read", code="too-many-statements"
        )
    whole = [[*rows[:-1], (rows[-1][0], without_stop(rows[-1][1]))] for rows in groups]
    return [RawStatement(line=rows[0][0], rows=tuple(rows)) for rows in whole]


def tokenize(statement: RawStatement) -> list[Token]:
    """The tokens of a statement, ended by one of kind "end"."""
    tokens: list[Token] = []
    for number, raw in statement.rows:
        row = plain(raw)
        position = 0
        spaced = True
        while position < len(row):
            match = _TOKEN.match(row, position)
            if not match:
                char = row[position]
                advice = f"; write {_WRITE_INSTEAD[char]}" if char in _WRITE_INSTEAD else ""
                raise Refusal(
                    f"column {position + 1}: {char!r} is not part of the language{advice}",
                    code="character-not-in-language",
                )
            kind = match.lastgroup
            if kind:
                tokens.append(_token(kind, match.group(), number, position + 1, not spaced))
            spaced = kind is None
            position = match.end()
            if len(tokens) > MAX_TOKENS:
                raise Refusal(
                    f"the statement is too long; at most {MAX_TOKENS} words and signs are read",
                    code="statement-too-long",
                )
    tokens.append(Token("end", "", statement.rows[-1][0], len(statement.rows[-1][1]) + 1))
    return tokens


def _token(kind: str, text: str, line: int, column: int, glued: bool) -> Token:
    """A token; W_[i+1, j], as W_{i+1, j} is said, has the brackets of W[i+1, j], and x^2 the sign of x**2."""
    said = {"_[": "[", "^": "**"}.get(text, text) if kind == "symbol" else text
    return Token(kind, said, line, column, glued, said != text)
