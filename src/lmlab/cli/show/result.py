"""Terminal output of an evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from lmlab.config import Aside
from lmlab.measure.near_copies import how_much
from lmlab.measure.result import called
from lmlab.page import numbers
from lmlab_derive.shared.console import result_console, say

if TYPE_CHECKING:
    from lmlab.measure import Result


def print_result(result: Result, *, verbose: bool = False) -> None:
    """Print the bits per byte with their interval, perplexities, and the certificate. verbose: also list the passed checks."""
    console = result_console()
    data, scored = result.data, result.scored
    low, high = result.interval.low, result.interval.high
    known = low is not None and high is not None and numbers.finite(low)
    spread = f"  (95% interval {low:.4f} to {high:.4f})" if known else ""
    seen = result.held_out.verdict == "not held out"
    mark = (
        f"  [bold red]NOT HELD OUT: the model was trained on {how_much(result.held_out.copied)}[/bold red]"
        if seen
        else ""
    )
    console.print(f"[bold]{numbers.bits(result.bits_per_byte)} bits per byte[/bold]{spread}{mark}", soft_wrap=True)
    where = data["name"] if data["part"] == "whole" else f"the {data['part']} part of {data['name']}"
    if known:
        say(console, f"  that interval is {result.interval.note}")
    sizes = f"{numbers.counted(data['bytes'], 'byte')}, {numbers.counted(scored.tokens, 'token')}"
    in_bytes = scored.fallback_tokens
    fallen = f", {in_bytes:,} ({in_bytes / scored.tokens:.2%}) single bytes of characters without a token"
    unknown = f"{scored.unknown_tokens:,} unknown{fallen if in_bytes else ''}"
    say(console, f"  {result.model['name']} on {where}: {sizes}, {unknown}")
    for unit, value in result.perplexity.items():
        if unit == "word" and scored.words and not result.has_words:
            say(console, f"  {called(unit)}: none, for this text has no spaces between words")
        elif "share" in unit:
            say(console, f"  {unit.replace('_', ' ')}: {value:.2%}")
        elif value > numbers.NO_MORE:
            say(console, f"  {called(unit)}: above a million, too many to be read as a number of choices")
        elif numbers.finite(value):
            say(console, f"  {called(unit)}: {value:.4g}")
    for note in result.notes:
        if verbose or not isinstance(note, Aside):
            say(console, f"  note: {note}")
    if result.held_out.is_worth_telling:
        say(console, f"  note: {result.held_out.detail}; of what was copied, the number shows what was remembered")
    certificate = result.certificate
    colour = "green" if certificate.passed else "bold red" if certificate.failures else "yellow"
    more = " (--verbose shows them)" if certificate.passed and not verbose else ""
    console.print(f"  [{colour}]{certificate.verdict}[/{colour}]{more}", soft_wrap=True)
    for check in certificate.checks:
        if verbose or not check.passed:
            colour = {True: "green", False: "bold red", None: "yellow"}[check.passed]
            console.print(f"  [{colour}]{check.word}[/{colour}]  {check.name}: {escape(check.detail)}", soft_wrap=True)
    say(console, f"  measured in {result.seconds:.2f} s, {result.certificate.seconds:.2f} s of it for the checks")
