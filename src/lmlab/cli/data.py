"""`lmlab data`: the named corpora, and what is in a text."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lmlab.cli import options


def command(
    action: Annotated[str, typer.Argument(help="list, get or show.")] = "list",
    text: Annotated[str | None, typer.Argument(help="For get: a named corpus. For show: any text.")] = None,
    split: options.Split = options.DEFAULT_SPLIT,
    valid: options.Valid = None,
    test: options.Test = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """List the named corpora, fetch one ahead of time, or show what is in a text.

    lmlab data · lmlab data get sotu · lmlab data show mytext.txt
    """
    from lmlab.text import sources

    if action == "list":
        found = sources.available()
        if json:
            options.print_json(found)
        else:
            width = max(map(len, found))
            print("\n".join(f"{name:{width}}  {about}" for name, about in found.items()))
    elif action == "get":
        if text is None:
            raise ValueError(f"name the corpus to fetch: {', '.join(sources.available())}")
        sources.get(text)
        if json:
            options.print_json({"name": text, "ready": True})
        else:
            print(f"{text} is ready")
    elif action == "show":
        if text is None:
            raise ValueError("name the text to show, such as: lmlab data show mytext.txt")
        _show(text, split, valid, test, seed, json)
    else:
        raise ValueError(f"data takes list, get or show; got {action!r}")


def _show(text: str, split: str, valid: str | None, test: str | None, seed: int, json: bool) -> None:
    from lmlab.text.corpus import read

    corpus = read(text, valid=valid, test=test, split=options.parse_split(split, valid, test), seed=seed)
    parts: dict[str, Any] = {
        name: {
            "documents": len(part.documents),
            "bytes": part.bytes,
            "characters": part.chars,
            "words": part.words,
            "sha256": part.sha256,
        }
        for name, part in corpus.parts.items()
    }
    overlap = corpus.overlap()
    if json:
        found = {name: vars(shared) for name, shared in overlap.items()}
        options.print_json({"name": corpus.name, "parts": parts, "overlap": found})
        return
    print(f"{corpus.name}: {corpus.documents} document{'s' if corpus.documents != 1 else ''}")
    for name, part in parts.items():
        print(f"  {name:5} {part['bytes']:>13,} bytes {part['words']:>11,} words  sha256 {part['sha256'][:16]}…")
    for shared in overlap.values():
        print(f"  {shared}")
