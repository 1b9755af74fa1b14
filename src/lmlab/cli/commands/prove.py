"""`lmlab prove`: runs the claims of the course documents and shows the verdicts with their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section

SECTION: Section = "Mathematics"

DETAILED = 8  # most claims that are shown with all their evidence; more are shown as a table


def command(
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Claims, such as lab11.6b, or a common beginning (lab11.6).", show_default="all"),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="One document: week2, quiz1, assignment2, lab11 or bishop12.")
    ] = None,
    json: options.Json = False,
    html: Annotated[
        Path | None, typer.Option(help="A folder to write pages into, one for each document and an index.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Show the evidence of every claim.")] = False,
) -> None:
    """Check the claims of the course documents by running them: verdict, evidence, and a correction if needed."""
    raise typer.Exit(run_prove(ids or [], source, json=json, html=html, full=full))


def run_prove(
    ids: Sequence[str] = (),
    source: str | None = None,
    *,
    json: bool = False,
    html: Path | None = None,
    full: bool = False,
) -> int:
    """Run claims and print the verdicts.

    Returns:
        The exit code: 0 if every check reached a verdict, 1 if one failed to run.
    """
    from lmlab.cli.show.claims import print_claims
    from lmlab.cli.show.progress import ProgressLine
    from lmlab.coursework import choosing, running

    total, done = len(choosing.claims(ids, source)), 0
    with ProgressLine("checking") as line:

        def tell(entry: running.Entry) -> None:
            nonlocal done
            done += 1
            line.show(done / total, f"{done} of {total} · {entry.claim.id}", plain=False)

        entries = lmlab.prove(ids, source=source, html=html, watch=tell)
        if html is not None:
            line.say(f"wrote {html / 'index.html'} and a page for each document beside it")
    if json:
        options.print_json(running.to_json(entries))
    else:
        print_claims(entries, detailed=full or len(entries) <= DETAILED)
    return 1 if any(entry.outcome.verdict == "failed" for entry in entries) else 0
