"""`lmlab vectors`: word vectors: nearest neighbours, analogies, a map of words, and export to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import lmlab
from lmlab.cli import completion, options
from lmlab.cli.commands import Section
from lmlab.cli.completion import ACTIONS
from lmlab.config import Mistake, nearest

SECTION: Section = "Other tasks"


def command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="A run of glove, or a GloVe text file (plain or .gz).", autocompletion=completion.runs
        ),
    ],
    action: Annotated[str, typer.Argument(help="neighbours, analogy, map or save.", autocompletion=completion.actions)],
    words: Annotated[
        list[str] | None, typer.Argument(help="Words: any number for neighbours, three for analogy.")
    ] = None,
    number: Annotated[int, typer.Option(min=1, help="Number of words to show.")] = 10,
    around: Annotated[int, typer.Option(min=0, help="For map: neighbours shown with each word.")] = 6,
    out: Annotated[
        Path | None, typer.Option(help="For map: the picture (.svg) or page (.html); for save: the file.")
    ] = None,
    force: options.Force = False,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Query word vectors: neighbours WORD, analogy A B C (A is to B as C is to ?), map [WORDS], save --out FILE.

    Example: lmlab vectors runs/glove neighbours king
    """
    if action not in ACTIONS:
        raise Mistake(
            f"vectors can be asked for neighbours, analogy, map or save; {nearest(action, ACTIONS)}",
            code="vectors-action-unknown",
        )
    given = words or []
    if action in ("neighbours", "analogy") and out is not None:
        raise Mistake("{out} is of a map or of save; leave it away", code="out-without-map", out=None)
    from lmlab.tasks.word_vectors import show

    found = lmlab.vectors(source, device=device)
    if action == "neighbours":
        if not given:
            raise Mistake("name a word, such as: lmlab vectors RUN neighbours king", code="no-word")
        near = {word: lmlab.neighbours(found, word, number=number) for word in given}
        _print(
            json, {word: [one.to_json() for one in ones] for word, ones in near.items()}, show.print_neighbours, near
        )
    elif action == "analogy":
        if len(given) != 3:
            raise Mistake(
                "an analogy has three words, as in: lmlab vectors RUN analogy man king woman",
                code="analogy-needs-three-words",
            )
        best = lmlab.analogy(found, *given, number=number)
        _print(json, [one.to_json() for one in best], show.print_analogy, given, best)
    elif action == "map":
        target = out or Path("map.svg")
        places = lmlab.word_map(found, given, around=around, out=target)
        document = {"out": str(target), "places": [place.to_json() for place in places]}
        _print(json, document, show.print_written, len(places), target)
    else:
        if out is None or given:
            raise Mistake(
                "save writes all vectors to a file: lmlab vectors RUN save {out}",
                code="save-without-out",
                out="vectors.txt",
            )
        written = found.save(out, force=force)
        _print(json, {"out": str(written), "words": len(found.words)}, show.print_written, len(found.words), written)


def _print(json: bool, document: Any, shown: Any, *things: Any) -> None:
    if json:
        options.print_json(document)
    else:
        shown(*things)
