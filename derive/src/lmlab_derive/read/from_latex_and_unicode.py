r"""What people type that is not the language: powers with ^, 2x, unicode, and LaTeX of the common kind, said again in it.

    2x^2 + \frac{1}{2}|y|   is read as   2*x**2 + ((1)/(2))*|y|
    \frac{\partial J}{\partial W_{ij}}   as   dJ/dW[i,j]       \sum_{i=1}^n x_i   as   sum_(i=1..n) x[i]

Only letters are exchanged for letters here; what they mean is the parser's business.
"""

from __future__ import annotations

import re

from lmlab_derive.read.fractions_of_latex import fraction, inline_seconds

_SIGNS = {
    "−": "-", "–": "-", "—": "-", "≤": "<=", "≥": ">=", "≠": "!=", "’": "'", "′": "'", "⊙": "*", "∘": "*", "×": "*", "∗": "*",
    "⋅": "·", "÷": "/", "∂": "d", "π": "pi", "ᵀ": ".T", "⊤": ".T", "√": " sqrt", "∑": " Σ", "∏": " Π", "∣": "|",
    "⟨": " dot(", "⟩": ")", "𝔼": "E", "ℙ": "P", "…": "..", "∼": "~",
}  # fmt: skip
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ", "0123456789n", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₙₜ", "0123456789ijknt", strict=True))
_WORDS = {
    "cdot": "·", "times": "*", "odot": "*", "circ": "*", "ast": "*", "div": "/", "le": "<=", "leq": "<=", "leqslant": "<=",
    "ge": ">=", "geq": ">=", "geqslant": ">=", "ne": "!=", "neq": "!=", "lt": "<", "gt": ">", "partial": "d", "mid": "|",
    "vert": "|", "lvert": "|", "rvert": "|", "Vert": "‖", "lVert": "‖", "rVert": "‖", "top": "T", "intercal": "T",
    "ln": "log", "sum": " Σ", "prod": " Π", "sigma": "σ", "lbrace": "{", "rbrace": "}", "ldots": "..",
    "quad": " ", "qquad": " ", "left": "", "right": "", "big": "", "Big": "", "bigl": "", "bigr": "", "Bigl": "", "Bigr": "",
    "displaystyle": "", "limits": "", "nonumber": "", "varepsilon": "eps", "epsilon": "eps", "sim": "~", "colon": ":",
    "dots": "..", "cdots": "..",
    "equiv": "=", "hat": "hat", "lambda": "lam", "nabla": "∇", "langle": " dot(", "rangle": ")",
    "infty": "inf", "Pr": "P", "forall": "∀",
}  # fmt: skip
_STYLES = "mathbf|boldsymbol|bm|mathrm|mathit|mathsf|mathcal|text|textbf|operatorname|mathbb|vec|overline|mathop"
_IN = re.compile(r"(?:\\in|∈)\s*(?:\\mathbb\{R\}|\\R|ℝ|R)(?:\^\{([^{}]*)\}|\^(\w+))?")  # x \in \mathbb{R}^{n \times m}
_BETWEEN = re.compile(r"\s*(?:\\times|×)\s*")
_NAME = r"\\?[^\W\d_]\w*'*"
GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "eps", "ζ": "zeta", "η": "eta", "θ": "theta", "ι": "iota",
    "κ": "kappa", "λ": "lam", "μ": "mu", "µ": "mu", "ν": "nu", "ξ": "xi", "ρ": "rho", "τ": "tau", "υ": "upsilon", "φ": "phi",
    "ϕ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi",
    "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
_GREEK_NAME = re.compile(rf"(?<![^\W\d])(d?)([{''.join(GREEK)}])(?![^\W\d_])")  # α, dα and α_i, but not αx
_BY = re.compile(
    rf"\\[dt]?frac\s*{{\s*(?:\\partial|d|∂)\s*({_NAME})\s*((?:_{{[^{{}}]*}}|_\w)?)\s*}}"
    rf"\s*{{\s*(?:\\partial|d|∂)\s*({_NAME})\s*((?:_{{[^{{}}]*}}|_\w)?)\s*}}"
)
_TWICE = re.compile(
    rf"\\[dt]?frac\s*{{\s*(?:\\partial|d|∂)\s*\^\s*{{?2}}?\s*({_NAME})\s*}}"
    rf"\s*{{\s*(?:\\partial|d|∂)\s*({_NAME})\s*\^\s*{{?2}}?\s*}}"
)
_NABLA = re.compile(r"∇\s*(\^2)?\s*_(?:\[\s*([^\W\d]\w*)\s*\]|([^\W\d]\w*))\s*(\^2)?\s*")
_DIVERGENCE = re.compile(r"(?<!\w)(?:D_)?KL\s*\(([^()|‖]*)(?:\|\||‖)([^()|‖]*)\)")  # KL(p || q)
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_ENDS = re.compile(r"(?:[\w)\]}|‖'⊤ᵀ]|\\\|)(?:\s|\\[,;: ])*[.,;]\s*$")  # punctuation behind a formula
_PARTIAL = r"(?:\\partial|∂)"
_OF_PARTIAL = re.compile(rf"{_PARTIAL}\s*(?=\\?[^\W\d_])")  # ∂ J is ∂J
_BY_PARTIAL = re.compile(rf"{_PARTIAL}\s*_(?:\{{({_NAME}(?:_\w|_\{{\w+\}})?)\}}|({_NAME}))(?!\s*/)")  # ∂_x f
_SECOND = re.compile(r"[d∂](?:²|\^2)\s*(?=(?:[^\W\d]|\().*/\s*[d∂]\s*[^\W\d])")  # d²J/dx² is d2J/dx2
_SECOND_BY = re.compile(r"(/\s*[d∂]\s*[^\W\d]\w*)(?:²|\^2)")


def plain(row: str) -> str:
    """One row of a sheet in the signs of the language; the row itself where nothing is to be said anew."""
    row = inline_seconds(without_typesetting(row))
    row = _OF_PARTIAL.sub("∂", _BY_PARTIAL.sub(r"d/d\1\2 ", row))
    row = _IN.sub(lambda m: ": " + _BETWEEN.sub(", ", m[1] or m[2] or ""), row)
    row = re.sub(r"(:[^=<>]*)", lambda m: m[1].replace("×", ","), row)  # sizes; among factors it is a product
    row = re.sub(r"(?<![\\\w])(sum|prod)(?=\s*_(?:\{|\w\b))", r"\\\1", row)  # sum_{i=1}^n, without its backslash
    if "\\" in row.rstrip("\\") or "_{" in row or "^{" in row:
        row = _latex(row)
    if _SECOND.search(row):
        row = _SECOND_BY.sub(r"\g<1>2", _SECOND.sub("d2", row))
    row = re.sub(rf"⁻([{''.join(_RAISED)}])", lambda m: f"^(-{_RAISED[m[1]]})", row)
    row = re.sub(rf"[{''.join(_RAISED)}]+", lambda m: "^" + "".join(_RAISED[c] for c in m[0]), row)
    row = re.sub(rf"[{''.join(_LOWERED)}]+", lambda m: _lowered("".join(_LOWERED[c] for c in m[0])), row)
    row = _NABLA.sub(lambda m: f"nabla{'2' * bool(m[1] or m[4])}/d{m[2] or m[3]} ", row)
    row = _DIVERGENCE.sub(r"KL(\1, \2)", row)
    row = re.sub(r"√\s*(\w+)", r" sqrt(\1)", row)
    row = re.sub(r"\^?\s*([ᵀ⊤])(?=([^\W_])?)", lambda m: m[1] + " " * bool(m[2]), row)  # wᵀv, and w^⊤ v
    row = "".join(_SIGNS.get(char, char) for char in row)
    row = _GREEK_NAME.sub(lambda m: m[1] + GREEK[m[2]], row)
    row = re.sub(r"(?:(?<=\|\|)|(?<=‖))_(?:F|2)(?!\w)", "", row)
    row = re.sub(r"((?<=\.T)|(?<=[)\]]))_([^\W\d_]+)", lambda m: f"_[{','.join(m[2])}]", row)
    row = re.sub(r"\^\s*(?:\(\s*T\s*\)|\{\s*T\s*\}|(?:T|⊤|top)(?!\w))", ".T", row)
    row = re.sub(r"(?<=[\w)\]])\s*,\s*['\"]fro['\"]\s*\)", ")", row)
    return row


def _derivative(found: re.Match[str], text: str) -> str:
    """A derivative in place of a fraction; in brackets before a place, which is one of the whole."""
    placed = re.match(r"\s*_|\[", found.string[found.end() :])
    return f"({text})" if placed else f"{text} "


def _subscript(text: str) -> str:
    """What stands in the braces of x_{...}: a word is part of the name until it is seen that it is none."""
    return f"_{text}" if text.isalnum() else f"_[{text}]"


def _lowered(letters: str) -> str:
    """x₁ is a name, xᵢ an entry."""
    return letters if letters.isdigit() else f"_{letters}"


_TYPESETTING = re.compile(
    r"\\(?:begin|end)\{(?!cases)[a-z]+\*?\}|\\(?:label|tag)\{[^{}]*\}|(?<!\\)\\[()\[\]]|\$|\\(?:nonumber|notag)(?!\w)"
)
_SQUARE = re.compile(r"(\\(?:left|[bB]igl?|[bB]iggl?)\s*)\[|(\\(?:right|[bB]igr?|[bB]iggr?)\s*)\]")


def without_typesetting(row: str) -> str:
    """A row without what LaTeX needs around a formula, and without its comment."""
    if "\\" in row or row.lstrip().startswith("%"):
        row = re.sub(r"(?<!\\)%.*", "", row)
    if "\\" in row or "$" in row or re.search(r"&\s*=", row):
        row = re.sub(r"&(?=\s*=)", " ", _TYPESETTING.sub(" ", row))
    return row


def without_stop(row: str) -> str:
    """The last row of a statement without the comma or stop behind the formula."""
    return re.sub(r"(?:\s|\\[,;: ])*[.,;]\s*$", "", row) if _ENDS.search(row) else row


def _latex(row: str) -> str:
    row = row.replace("\\|", "‖")
    row = _SQUARE.sub(lambda m: "(" if m[1] else ")", row)
    row = re.sub(r"(?<!uniform)(?<!finite)\\\{(.*?)\\\}", r"(\1)", row)
    row = re.sub(r"\\limits(?![A-Za-z])|\\left\s*\.|\\right\s*\.", "", row)
    row = re.sub(r"\\log\s*_\s*(?:\{\s*(2|10)\s*\}|(2))", r" log\1\2 ", row)
    row = re.sub(r"\\(?:overset|stackrel)\s*\{[^{}]*\}\s*\{\s*=\s*\}|\\(?:triangleq|coloneqq)(?![A-Za-z])", "=", row)
    row = re.sub(r"\\text\s*\{\s*for (?:all|every|any)\s*\}", "∀", row)
    row = re.sub(r"\\(?:mathbf|mathbb|bm|boldsymbol|mathds)\s*\{\s*1\s*\}", "ones", row)
    row = re.sub(r"\\mathbb\{V\}(?:\\(?:mathrm|text|operatorname)\{ar\}|ar)?", "Var", row)
    row = re.sub(rf"\\(?:{_STYLES})\s*(?=\\)", "", row)
    row = re.sub(r"\\sqrt\s*\[\s*(\d)\s*\]\s*\{([^{}]*)\}", r"((\2)**(1/\1))", row)
    row = re.sub(r"\\[,;:!> ]|\\\\|(?<!\\)&|\$|(?<!\s)~|~(?!\s)", " ", row)
    row = re.sub(r"[∑Σ](?=\s*_)", r"\\sum", re.sub(r"[∏Π](?=\s*_)", r"\\prod", row))
    row = re.sub(rf"\\(?:{_STYLES})\s*\{{([^{{}}]*)\}}", _apart, row)
    row = re.sub(rf"\\(?:{_STYLES})\s+(\w)", r"\1", row)
    row = re.sub(r"\\(hat|bar|tilde)\s*\{?\s*(\\?\w+)\s*\}?", r"\2\1", row)
    row = _TWICE.sub(lambda m: m[0] if re.search("_[a-z]$", m[2]) else _derivative(m, f"d2{m[1]}/d{m[2]}2"), row)
    row = _BY.sub(lambda m: _derivative(m, f"d{m[1]}{m[2]}/d{m[3]}{m[4]}"), row)
    row = re.sub(r"(\\[dt]?frac|\\sqrt)(?:\s*(\d)|\s+([A-Za-z]))", r"\1{\2\3}", row)  # \frac12, \frac1{n}
    row = re.sub(r"(\\[dt]?frac\s*\{[^{}]*\})\s*(\w)", r"\1{\2}", row)
    row = re.sub(r"\\(max|min)\s*_\s*\{\s*(\w)\s*\}", r"\\\1_\2 ", row)
    row = re.sub(r"(\\delta)\s*_\s*\{\s*(\w)\s*,?\s*(\w)\s*\}", r"\1_\2\3 ", row)
    for _ in range(40):  # from the innermost braces outwards
        before = row
        row = re.sub(r"(\\sum|\\prod)\s*_\s*\{([^{}]*)\}\s*\^\s*\{([^{}]*)\}", r"\1_(\2..\3)", row)
        row = re.sub(r"(\\sum|\\prod)\s*_\s*\{([^{}]*)\}\s*\^\s*(\w)", r"\1_(\2..\3)", row)
        row = re.sub(r"(\\sum|\\prod)\s*_\s*\{([^{}]*)\}", r"\1_(\2)", row)
        row = re.sub(r"\\sqrt\s*\{([^{}]*)\}", r" sqrt(\1)", row)
        row = re.sub(r"\\[dt]?binom\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r" binom(\1, \2)", row)
        row = re.sub(r"\^\s*\{\s*(?:\\top|T)\s*\}(?=(\w)?)", lambda m: ".T" + " " * bool(m[1] and m[1] != "_"), row)
        row = re.sub(r"\^\s*\{\s*(\d)\s*\}", r"^\1 ", row)
        row = re.sub(r"\^\s*\{([^{}]*)\}", r"^(\1)", row)
        row = re.sub(r"_\s*\{([^{}]*)\}", lambda m: _subscript(m[1]), row)
        row = _FRACTION.sub(lambda m: fraction(m[1], m[2]), row)
        row = re.sub(r"\)\s+(?=_\w|_\[)", ")", row)
        row = re.sub(r"(?<![\w}])(?<!uniform )(?<!finite )\{([^{}]*)\}", r"(\1)", row)  # {x_i}^2
        if row == before:
            break
    row = re.sub(r"\^\s*\\top", ".T", row)
    return re.sub(r"\\([A-Za-z]+)", lambda m: _WORDS.get(m[1]) or ("" if m[1] in _WORDS else _apart(m)), row)


def _apart(found: re.Match[str]) -> str:
    """The word inside what was found in its place, with spaces between it and its neighbours: Wx is another name than W x."""
    row, start, end = found.string, found.start(), found.end()
    of_d = row[start - 1 : start] == "d" and not row[max(0, start - 2) : start - 1].isalpha()  # dJ/d\alpha
    before = "" if start == 0 or of_d or not row[start - 1].isalnum() else " "
    return before + found[1] + (" " if row[end : end + 1].isalpha() or row[end : end + 1] == "\\" else "")
