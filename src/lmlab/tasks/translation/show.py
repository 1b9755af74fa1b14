"""Translations and their scores in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lmlab_derive.shared.console import result_console, say, say_notes
from lmlab_derive.shared.table import Column, print_each

if TYPE_CHECKING:
    from lmlab.results import Figure
    from lmlab.tasks.translation.scores import Into, TranslationResult
    from lmlab.tasks.translation.verbs import Translated


def print_translations(found: Sequence[Translated]) -> None:
    """Under each text its translations, a line each."""
    console, last = result_console(), None
    several = len({one.text for one in found}) > 1
    for one in found:
        if several and one.text != last:
            say(console, one.text, style="bold")
        last = one.text
        say(console, f"{one.language}: {one.translation}{'' if one.ended else ' … (cut: it did not end)'}")


def print_scores(result: TranslationResult) -> None:
    """A row for each language; then what a reader should know."""
    console = result_console()
    say(console, f"{result.model} on {result.where}: {result.sentences:,} sentences from {result.source}")
    columns: list[tuple[Column, Callable[[Into], str]]] = [
        (Column("into", left=True), lambda one: one.language),
        (Column("BLEU"), lambda one: _figure(one.bleu, 1)),
        (Column("chrF"), lambda one: _figure(one.chrf, 1)),
        (Column("bits per byte"), lambda one: _figure(one.bits_per_byte, 4)),
        (
            Column("copied BLEU", expendable=1),
            lambda one: f"{one.copied_bleu:.1f}" if one.copied_bleu is not None else "",
        ),
    ]
    print_each(console, result.into, columns, "--json has all")
    say(
        console,
        f"Beam of {result.beam}, log p / tokens^{result.length_penalty:g}. Bits are of the target given the source, its end"
        " included. 95% intervals over sentences. Copied: the sources as they are.",
    )
    for one in result.into:
        if one.against is not None:
            bleu, chrf = (figure.shown(2, "+") for figure in (one.against.bleu, one.against.chrf))
            bits = one.against.bits_per_byte.shown(4, "+")
            say(
                console,
                f"{one.language} against {result.against}: BLEU {bleu} (p = {one.against.bleu_p:.3f}), chrF"
                f" {chrf} (p = {one.against.chrf_p:.3f}), bits per byte {bits};"
                " paired over sentences",
            )
        if one.unended:
            say(console, f"Note: {one.unended} translations into {one.language} did not end and were cut.")
    if result.copied.number and result.copied.is_held_out:
        say(console, f"Note: of the sources, {result.copied}.")
    for one in result.into:
        if (rest := one.without_copies) is not None:
            bleu = "" if rest.bleu is None else f"BLEU {rest.bleu.shown(1)}, "
            say(
                console,
                f"Without copied sources, into {one.language}: {bleu}{rest.bits_per_byte.shown(4)} bits per byte.",
            )
    for name, signature in result.signatures.items():
        say(console, f"{name}: {signature}")
    certificate = result.certificate
    if certificate.passed:
        say(console, f"certified: all {len(certificate.checks)} checks hold")
    for check in certificate.checks:
        if not check.passed:
            say(console, f"FAILS {check.name}: {check.detail}", style="bold red")
    say_notes(console, result.notes)


def _figure(figure: Figure | None, digits: int) -> str:
    if figure is None:
        return "–"
    return figure.shown(digits)
