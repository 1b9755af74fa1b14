"""LaTeX formulas as MathML, which browsers show without scripts or network. The subset that the lab writes; no more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

TOKEN = re.compile(r"\\(?:[A-Za-z]+|.)|[0-9]+(?:\.[0-9]+)?|\s+|.", re.DOTALL)

LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "eta": "η", "theta": "θ",
    "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "varphi": "φ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Lambda": "Λ", "Sigma": "Σ", "nabla": "∇",
    "partial": "∂", "infty": "∞", "top": "⊤", "ell": "ℓ", "dots": "…", "cdots": "⋯", "vdots": "⋮",
}  # fmt: skip
OPERATORS = {
    "cdot": "⋅", "times": "×", "otimes": "⊗", "odot": "⊙", "circ": "∘", "le": "≤", "ge": "≥", "ne": "≠", "ll": "≪",
    "gg": "≫", "approx": "≈", "sim": "∼", "mapsto": "↦", "propto": "∝", "to": "→", "Rightarrow": "⇒", "iff": "⟺",
    "in": "∈", "forall": "∀", "exists": "∃", "nexists": "∄", "perp": "⊥", "downarrow": "↓", "uparrow": "↑", "mid": "∣",
    "|": "‖", "lVert": "‖", "rVert": "‖", "{": "{", "}": "}", "%": "%", "#": "#",
}  # fmt: skip
NAMES = {"log", "ln", "exp", "sin", "cos", "tanh", "max", "min", "arg", "lim", "det", "Pr"}
SUMS = {"sum": "∑", "prod": "∏"}
ESCAPED = {"_", "{", "}", "%", "#", "&"}  # \\_ is an underscore in text
SPACES = {"quad": "1em", "qquad": "2em", ",": "0.17em", ";": "0.28em", " ": "0.3em", "!": "0", ":": "0.22em"}
ACCENTS = {"hat": "^", "tilde": "~", "bar": "¯"}
NEGATED = {"⇒": "⇏", "<": "≮", "≤": "≰", "∈": "∉", "=": "≠"}
FENCES = {"pmatrix": ("(", ")"), "bmatrix": ("[", "]"), "cases": ("{", ""), "aligned": ("", ""), "matrix": ("", "")}
DOUBLE = {"R": "ℝ", "N": "ℕ", "E": "𝔼", "P": "ℙ", "1": "𝟙", "Z": "ℤ"}
SCRIPT = {"N": "𝒩", "L": "ℒ", "O": "𝒪"}


MARKED = ' class="wrong"'


class UnknownCommand(ValueError):
    """LaTeX that this converter does not know."""


@dataclass
class Reader:
    """A cursor over the tokens of a formula."""

    tokens: list[str]
    at: int = 0

    @property
    def next(self) -> str:
        """The token under the cursor; empty at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        """The token under the cursor, which is then passed."""
        token = self.next
        self.at += 1
        return token

    def skip_space(self) -> None:
        """Pass white space, which means nothing in mathematics."""
        while self.next and self.next.isspace():
            self.at += 1


def to_mathml(latex: str) -> str:
    """A <math> element; the LaTeX itself is kept inside as an annotation, for those who copy it."""
    return _math(row(Reader(TOKEN.findall(latex)), stop=()), latex)


def derivation(steps: Sequence[tuple[str, str]], wrong: int | None = None) -> str:
    """Steps of (relation, expression), one below the other; the wrong one, if any, is marked."""
    rows = []
    for index, step in enumerate(steps):
        cells = "".join(f"<mtd>{row(Reader(TOKEN.findall(latex)), stop=())}</mtd>" for latex in step)
        rows.append(f"<mtr{MARKED if index == wrong else ''}>{cells}</mtr>")
    lines = r" \\ ".join(f"{relation} & {latex}" for relation, latex in steps)
    table = f'<mtable displaystyle="true" class="steps">{"".join(rows)}</mtable>'
    return _math(table, rf"\begin{{aligned}} {lines} \end{{aligned}}")


def _math(body: str, latex: str) -> str:
    note = f'<annotation encoding="application/x-tex">{escape(latex)}</annotation>'
    space = "http://www.w3.org/1998/Math/MathML"
    return f'<math xmlns="{space}" display="block"><semantics>{body}{note}</semantics></math>'


def row(reader: Reader, stop: tuple[str, ...]) -> str:
    """Everything up to one of the stop tokens, which is left under the cursor."""
    parts: list[str] = []
    reader.skip_space()
    while reader.next and reader.next not in stop:
        if reader.next == r"\rm":  # {\rm dev}: the rest of the group is upright text
            reader.take()
            text = ""
            while reader.next and reader.next not in stop:
                text += reader.take()
            parts.append(f"<mtext>{escape(text.strip())}</mtext>")
            break
        parts.append(scripted(reader))
        reader.skip_space()
    return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"


def scripted(reader: Reader) -> str:
    """One atom with its sub- and superscripts."""
    name = reader.next.lstrip("\\")
    base = atom(reader)
    below, above = "", []
    while True:
        reader.skip_space()
        if reader.next == "_" and not below:
            reader.take()
            below = argument(reader)
        elif reader.next == "^":
            reader.take()
            above.append(argument(reader))
        elif reader.next == "'":
            reader.take()
            above.append("<mo>′</mo>")
        else:
            break
    kinds = ("munder", "mover", "munderover") if name in SUMS else ("msub", "msup", "msubsup")
    top = above[0] if len(above) == 1 else f"<mrow>{''.join(above)}</mrow>"
    space = '<mspace width="0.17em"/>' if name in NAMES else ""
    if below and above:
        return f"<{kinds[2]}>{base}{below}{top}</{kinds[2]}>{space}"
    if below or above:
        kind = kinds[0] if below else kinds[1]
        return f"<{kind}>{base}{below or top}</{kind}>{space}"
    return base + space


def argument(reader: Reader) -> str:
    """A group in braces, or one atom (of a number without braces, one digit: \\frac12 is one half)."""
    reader.skip_space()
    if reader.next == "{":
        reader.take()
        inner = row(reader, stop=("}",))
        _expect(reader, "}")
        return inner
    token = reader.next
    if token[:1].isdigit() and len(token) > 1:
        reader.tokens[reader.at : reader.at + 1] = [token[0], token[1:]]
    return atom(reader)


def _expect(reader: Reader, token: str) -> None:
    if reader.take() != token:
        raise UnknownCommand(f"{token!r} is missing in {''.join(reader.tokens)!r}")


def atom(reader: Reader) -> str:
    """One letter, number, sign, command or group."""
    if reader.next == "{":
        return argument(reader)
    token = reader.take()
    if not token:
        raise UnknownCommand(f"something is missing at the end of {''.join(reader.tokens)!r}")
    if token.startswith("\\"):
        return command(token[1:], reader)
    if token[0].isdigit():
        return f"<mn>{token}</mn>"
    if token.isalpha():
        return f"<mi>{token}</mi>"
    return sign({"-": "−", "*": "∗"}.get(token, token))


def sign(text: str, stretchy: bool = False) -> str:
    """An operator or bracket; brackets grow only where \\left and \\right ask for it."""
    bracket = text in ("(", ")", "[", "]", "{", "}", "|", "‖")
    attribute = f' stretchy="{"true" if stretchy else "false"}" lspace="0" rspace="0"' if bracket else ""
    return f"<mo{attribute}>{escape(text)}</mo>" if text else ""


def command(name: str, reader: Reader) -> str:
    """A command with its arguments."""
    if name in LETTERS:
        return f"<mi>{LETTERS[name]}</mi>"
    if name in OPERATORS:
        return sign(OPERATORS[name])
    if name in NAMES:
        return f'<mi mathvariant="normal">{name}</mi>'
    if name in SUMS:
        return f'<mo largeop="true" movablelimits="false">{SUMS[name]}</mo>'
    if name in SPACES:
        return f'<mspace width="{SPACES[name]}"/>'
    if name in ACCENTS:
        return f'<mover accent="true">{argument(reader)}<mo>{ACCENTS[name]}</mo></mover>'
    if name in ("frac", "tfrac", "dfrac"):
        return f"<mfrac>{argument(reader)}{argument(reader)}</mfrac>"
    if name == "sqrt":
        return f"<msqrt>{argument(reader)}</msqrt>"
    return _text_or_structure(name, reader)


def _text_or_structure(name: str, reader: Reader) -> str:
    if name in ("text", "texttt", "mathrm", "operatorname", "mathbf", "mathbb", "mathcal"):
        return _styled(name, _plain(reader))
    if name == "left":  # a row of its own: its brackets are as high as what stands between them
        opening, inner = _fence(reader), row(reader, stop=("\\right",))
        _expect(reader, "\\right")
        return f"<mrow>{opening}{inner}{_fence(reader)}</mrow>"
    if name in ("big", "bigl", "bigr"):
        return _fence(reader)
    if name == "not":
        reader.skip_space()
        inner = re.sub("<[^>]*>", "", atom(reader))
        shown = inner.replace("&lt;", "<")
        return sign(NEGATED.get(shown, shown + "\u0338"))
    if name == "begin":
        return _table(_plain(reader), reader)
    raise UnknownCommand(f"\\{name} is not known to the converter")


def _fence(reader: Reader) -> str:
    reader.skip_space()
    token = reader.take()
    shown = OPERATORS.get(token[1:], "") if token.startswith("\\") else token
    return sign("" if shown == "." else shown, stretchy=True)


def _plain(reader: Reader) -> str:
    """The argument as text, commands of spacing dropped."""
    reader.skip_space()
    if reader.next != "{":
        return reader.take().lstrip("\\")
    reader.take()
    depth, text = 1, ""
    while reader.next:
        token = reader.take()
        depth += (token == "{") - (token == "}")
        if depth == 0:
            return text
        text += " " if token in ("\\ ", "~") else token.lstrip("\\") if token[1:] in ESCAPED else token
    raise UnknownCommand("a brace is not closed")


def _styled(name: str, text: str) -> str:
    if name in ("text", "texttt"):
        spaced = escape(text).replace(" ", "\u00a0")  # browsers drop plain spaces at the ends of <mtext>
        return f"<mtext>{spaced}</mtext>"
    if name == "mathbf":
        return f"<mi>{''.join(_bold(c) for c in text)}</mi>"
    if name in ("mathbb", "mathcal"):
        table = DOUBLE if name == "mathbb" else SCRIPT
        return f"<mi>{''.join(table.get(c, c) for c in text)}</mi>"
    return f'<mi mathvariant="normal">{escape(text)}</mi>'


def _bold(letter: str) -> str:
    """The mathematical bold letter of Unicode."""
    if "a" <= letter <= "z":
        return chr(0x1D41A + ord(letter) - ord("a"))
    if "A" <= letter <= "Z":
        return chr(0x1D400 + ord(letter) - ord("A"))
    return escape(letter)


def _table(kind: str, reader: Reader) -> str:
    if kind not in FENCES:
        raise UnknownCommand(f"\\begin{{{kind}}} is not known to the converter")
    rows: list[list[str]] = [[]]
    while True:
        rows[-1].append(row(reader, stop=("&", "\\\\", "\\end")))
        token = reader.take()
        if token == "\\\\":
            rows.append([])
        elif token != "&":
            break
    _plain(reader)
    cells = "".join("<mtr>" + "".join(f"<mtd>{cell}</mtd>" for cell in line) + "</mtr>" for line in rows)
    left, right = FENCES[kind]
    return f"<mrow>{sign(left, stretchy=True)}<mtable>{cells}</mtable>{sign(right, stretchy=True)}</mrow>"
