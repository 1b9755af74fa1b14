"""Filled blanks and the scores of an encoder in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmlab_derive.shared.console import result_console, say, say_notes
from lmlab_derive.shared.table import Column, print_table

if TYPE_CHECKING:
    from lmlab.measure.interval import Interval
    from lmlab.tasks.masked.measure import MaskedResult
    from lmlab.tasks.masked.verbs import Filled


def print_filled(found: Sequence[Filled]) -> None:
    """Each text filled; where it has several blanks, other ways to fill them all; and a line of candidates for every blank."""
    console = result_console()
    for one in found:
        several = len(one.blanks) > 1
        say(console, f"{one.filled}{f'  {one.wholes[0].p:.1%}' if several else ''}", style="bold")
        for whole in one.wholes[1:] if several else ():
            say(console, f"{whole.text}  {whole.p:.1%}")
        for number, candidates in enumerate(one.blanks, start=1):
            which = f"blank {number} by itself: " if several else ""
            say(console, f"  {which}" + "  ".join(f"{_shown(c.text)} {c.p:.1%}" for c in candidates))


def print_scores(result: MaskedResult) -> None:
    """What the blanks cost, beside what counting costs; then the pseudo-log-likelihood, and what it is not."""
    console = result_console()
    read = f"{result.masked_tokens:,} of {result.read_tokens:,} tokens masked"
    say(console, f"{result.model} on {result.where}: {read}, in {result.windows:,} windows")
    columns = [Column("", left=True), Column("bits per masked token"), Column("95% interval")]
    rows = [(result.model, result.masked), ("unigram", result.unigram), ("saved", result.saved)]
    print_table(console, columns, [[name, f"{i.estimate:.3f}", _interval(i)] for name, i in rows])
    pseudo = result.pseudo_bits_per_byte
    say(
        console,
        f"{pseudo.estimate:.4f} pseudo bits per byte, 95% interval {_interval(pseudo)}: every one of {result.pseudo_tokens:,}"
        " tokens hidden once. Each helped to guess the others, so this is no probability of the text, and is not ranked with"
        " the bits per byte of language models.",
    )
    note = result.masked.note
    say(console, f"Intervals are {note}." if note.startswith("for ") else f"{note.partition(' (')[0].capitalize()}.")
    if result.held_out.verdict != "held out":
        say(console, f"{result.held_out.verdict.capitalize()}: {result.held_out.detail}.", style="bold red")
    say_notes(console, result.notes)


def _interval(one: Interval) -> str:
    return "not known" if one.low is None or one.high is None else f"{one.low:.3f} to {one.high:.3f}"


def _shown(text: str) -> str:
    return text if text.strip() == text and text else repr(text)
