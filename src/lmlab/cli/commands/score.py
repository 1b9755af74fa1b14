"""`lmlab score`: prints the bits of strings under a trained model, by token, word or line."""

from __future__ import annotations

import os
import sys
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section
from lmlab.config import Mistake

if TYPE_CHECKING:
    from lmlab.measure.strings import ScoredText, ScoredTexts

SECTION: Section = "Use a trained model"


def command(
    run: options.Run,
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts to score, each separately; - reads lines of standard input.")
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option(help="Score each line of this file separately, without its line end; - is standard input."),
    ] = None,
    end: Annotated[
        bool, typer.Option("--end/--no-end", help="Score the end of each text too, if the model predicts ends.")
    ] = True,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Score strings: their bits under a trained model, token by token and word by word.

    With --lines one line of output for each: its bits, its bits per word, and the text, with tabs between them.

    Examples: lmlab score runs/mine "a sentence" · lmlab score runs/mine --lines file.txt
    """
    if texts == ["-"] and lines is None:
        texts, lines = None, "-"
    if lines is not None and texts:
        raise Mistake(
            "a text in quotes and {lines} are both given; one of the two is scored: leave the other out",
            code="text-beside-lines",
            lines=None,
        )
    if lines is None and not texts:
        raise Mistake("name what to score: a text in quotes, or {lines}", code="nothing-to-score", lines="FILE")
    if "" in (texts or []):
        raise Mistake(
            "a text to score is empty, and has no bits a byte; give it some words", code="text-to-score-empty"
        )

    given = list(texts or []) if lines is None else options.lines_of(lines)
    if lines is None and (named := next((text for text in given if os.path.isfile(text)), None)):
        note = f"{named} is scored as it stands here, not what is in the file: --lines {quote(named)} scores its lines"
        print(f"lmlab: note: {note}", file=sys.stderr)
    scored = lmlab.score(options.opened(run), given, end=end, device=device)
    if json:
        options.print_json([text.to_json() for text in scored])
    elif lines is None:
        for text in scored:
            _print_text(text)
    else:
        _print_lines(given, scored)


def _print_text(scored: ScoredText) -> None:
    """Print one row per word with its tokens, or one row per token if the text has no spaces, and then the total."""
    from lmlab.cli.show.inside import seen
    from lmlab.page.numbers import bits
    from lmlab.text.plain_words import has_spaces
    from lmlab_derive.shared.console import result_console, say
    from lmlab_derive.shared.table import Column, print_table

    console = result_console()
    unit = "word" if has_spaces(scored.text) else "token"
    is_split = unit == "word" and any(len(word.tokens) > 1 for word in scored.words)
    rows = []
    for word in scored.words if unit == "word" else ():
        parts = "  ".join(f"{seen(token.text)} {bits(token.bits, 2)}" for token in word.tokens)
        rows.append([word.text, bits(word.bits, 2), *([parts] if is_split else [])])
    for token in () if unit == "word" else scored.tokens:
        rows.append([seen(token.text), bits(token.bits, 2)])
    columns = [Column(unit, left=True), Column("bits"), *([Column("tokens", left=True)] if is_split else [])]
    print_table(console, columns, rows)
    number = len(rows) - (scored.separator_bytes > 0)  # the end is no word
    per = f"{bits(scored.bits / max(1, number), 2)} a {unit}, {bits(scored.bits / max(1, scored.bytes))} a byte"
    ended = ", its end included" if scored.separator_bytes else ""
    say(console, f"{bits(scored.bits, 2)} bits in all{ended}: {per}")


def _print_lines(lines: list[str], scored: ScoredTexts) -> None:
    """Print one tab-separated row per line, for other programs to read."""
    found = (
        f"{bits:.4f}\t{bits / max(1, len(line.split())):.4f}\t{line}\n"
        for line, bits in zip(lines, scored.bits, strict=True)
    )
    sys.stdout.writelines(found)
