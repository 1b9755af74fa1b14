"""Labels, scores and mistakes of classifiers in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab_derive.shared.console import result_console, say, say_notes
from lmlab_derive.shared.table import Column, print_table

if TYPE_CHECKING:
    from lmlab.tasks.classification.misclassified import Explanation
    from lmlab.tasks.classification.scores import ClassifierResult, Scores
    from lmlab.tasks.classification.verbs import Label

WORDS = 4  # shown for and against
EXCERPT = 240  # characters of a text


def print_labels(labels: Sequence[Label]) -> None:
    """One line a text."""
    columns = [Column("label", left=True), Column("probability"), Column("text", left=True)]
    print_table(result_console(), columns, [[one.label, f"{one.p[one.label]:.3f}", one.text] for one in labels])


def print_scores(result: ClassifierResult) -> None:
    """The classifier and what it must beat, in one table; then what a reader should know."""
    console = result_console()
    say(console, f"{result.model} on {result.where}: {result.examples:,} examples, {len(result.classes)} classes")
    columns = [Column("", left=True), Column("accuracy"), Column("macro F1", expendable=2)]
    columns += [Column("bits per label", expendable=1), Column("calibration error", expendable=3)]
    rows = [(result.model, result.scores), ("bag of words", result.bag_of_words), ("majority", result.majority)]
    print_table(console, columns, [[name, *_figures(scores)] for name, scores in rows], "--json has all")
    sure = "ahead of" if result.gain.low > 0 else "behind" if result.gain.high < 0 else "not told apart from"
    say(
        console,
        f"In accuracy it is {sure} the bag of words: {result.gain.shown(4, '+')} (95% intervals over examples).",
    )
    if result.copied is not None and result.copied.number:
        without = result.accuracy_without_copies
        rest = "" if without is None else f"; without them the accuracy is {without.shown(4)}"
        if result.failures:
            say(console, f"NOT HELD OUT: {result.copied}{rest}.", style="bold red")
        else:
            say(console, f"Note: {result.copied}{rest}.")
    say_notes(console, result.notes)


def print_mistakes(found: Sequence[Explanation], part: str, html: Path | None) -> None:
    """Each with what speaks for the wrong label and against it."""
    console = result_console()
    if not found:
        say(console, f"It makes no mistakes on the {part} part.")
    for one in found:
        excerpt = one.text if len(one.text) <= EXCERPT else one.text[:EXCERPT] + " …"
        say(
            console,
            f"Example {one.example}: {one.right}, taken for {one.predicted} (p = {one.p_predicted:.2f})",
            style="bold",
        )
        say(console, f"  {excerpt}")
        _print_ends([(c.word, c.nats) for c in one.contributions], "")
        if one.pairs:
            _print_ends([(f"“{pair.words}”", pair.nats) for pair in one.pairs], ", pairs")
        for sentence in one.sentences:
            say(console, f"  {sentence}")
    if html is not None:
        say(console, f"As a page: {html}")


def _print_ends(contributions: Sequence[tuple[str, float]], what: str) -> None:
    """The largest contributions for the label, then those against it."""
    ends = [c for c in contributions if c[1] > 0][:WORDS], [c for c in contributions[::-1] if c[1] < 0][:WORDS]
    for title, largest in zip(("for it", "against"), ends, strict=True):
        say(result_console(), f"  {title}{what}: " + ", ".join(f"{words} {nats:+.2f}" for words, nats in largest))


def _figures(scores: Scores) -> list[str]:
    return [str(figure) for figure in (scores.accuracy, scores.macro_f1, scores.bits, scores.calibration)]
