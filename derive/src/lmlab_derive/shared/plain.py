"""What becomes of characters that a console does not know: their likeness in ASCII, so that nothing fails."""

from __future__ import annotations

import codecs
import io
import sys

PLAIN = {
    "–": "-", "—": "-", "−": "-", "…": "...", "±": "+/-", "→": "->", "·": "-", "×": "x", "µ": "u", "²": "2",
    "␣": "_", "↵": "|", "⇥": ">",
    "✓": "v", "✗": "x", "━": "=", "┈": ".", "─": "-", "│": "|", "“": '"', "”": '"', "‘": "'", "’": "'",
}  # fmt: skip
CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def plain(text: str) -> str:
    """The text in ASCII: what has a likeness there is written so, the rest as question marks."""
    return text.encode("ascii", errors="lmlab.plain").decode("ascii")


def visible(text: str) -> str:
    r"""Control characters, which could do anything to a terminal, as \x1b and the like; line breaks and tabs stay."""
    return text.translate(CONTROL)


def print_what_can_be_printed() -> None:
    """A console that knows fewer characters than we print shows their likeness, and nothing fails."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and (stream.errors == "strict" or not _is_unicode(stream.encoding)):
            stream.reconfigure(errors="lmlab.plain")


def _is_unicode(encoding: str) -> bool:
    return codecs.lookup(encoding).name.startswith("utf")


def _likeness(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError), "only what is printed is made plain"
    return "".join(PLAIN.get(character, "?") for character in error.object[error.start : error.end]), error.end


codecs.register_error("lmlab.plain", _likeness)
