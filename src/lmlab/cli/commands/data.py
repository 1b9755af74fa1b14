"""`lmlab data`: lists the named corpora, and describes a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section
from lmlab.page.numbers import counted

if TYPE_CHECKING:
    from lmlab.text.corpus import Corpus

SECTION: Section = "Housekeeping"


def command(
    action: Annotated[str, typer.Argument(help="list, get or show.")] = "list",
    text: Annotated[str | None, typer.Argument(help="For get: a named corpus. For show: any text.")] = None,
    split: options.Split = options.DEFAULT_SPLIT,
    split_by: options.SplitBy = "auto",
    documents: options.Documents = "auto",
    valid: options.Valid = None,
    test: options.Test = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """List the named corpora, download one ahead of time, or describe a text.

    lmlab data · lmlab data get sotu · lmlab data show mytext.txt
    """
    if action == "show" and text is not None:
        shares = options.parse_split(split, valid, test)
        corpus = lmlab.data(
            "show", text, split=shares, split_by=split_by, documents=documents, valid=valid, test=test, seed=seed
        )
        _show(corpus, json)
    elif action == "list":
        found = lmlab.data()
        if json:
            options.print_json(found)
        else:
            from lmlab_derive.shared.table import print_list

            print_list(found)
    else:
        lmlab.data(action, text)  # type: ignore[call-overload]  # which says what is wrong, if anything is
        if json:
            options.print_json({"name": text, "ready": True})
        else:
            print(f"{text} is ready")


def _show(corpus: Corpus, json: bool) -> None:
    overlap = corpus.overlap()
    if json:
        parts = {
            name: {
                "documents": len(part.documents),
                "bytes": part.bytes,
                "characters": part.chars,
                "words": part.words,
                "sha256": part.sha256,
            }
            for name, part in corpus.parts.items()
        }
        shared = {name: vars(found) for name, found in overlap.items()}
        options.print_json({"name": corpus.name, "divided_by": corpus.divided_by, "parts": parts, "overlap": shared})
        return
    from lmlab.text.plain_words import are_words
    from lmlab_derive.shared.console import result_console, say
    from lmlab_derive.shared.table import Column, print_table

    console = result_console()
    say(console, f"{corpus.name}: {counted(corpus.documents, 'document')}")
    columns = [Column("part", left=True), Column("bytes"), Column("words"), Column("sha256", left=True, expendable=1)]
    rows = [
        [name, f"{part.bytes:,}", f"{part.words:,}" if are_words(part.chars, part.words) else "–", part.sha256]
        for name, part in corpus.parts.items()
    ]
    print_table(console, columns, rows)
    say(console, f"  {corpus.division}")
    for found in overlap.values():
        say(console, f"  {found}")
