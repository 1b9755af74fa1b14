"""The topics of `lmlab explain` that inspect a trained model on a text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import options

OWN_TEXT = "a piece of its own test part"  # the text to read if none is given
TextOrOwn = Annotated[str | None, typer.Argument(help="Words in quotes, a file, or -.", show_default=OWN_TEXT)]
PageToLookAround = Annotated[Path | None, typer.Option(help="Write an interactive page.")]
APicture = Annotated[Path | None, typer.Option(help="Write a picture.")]
PageOfIt = Annotated[Path | None, typer.Option(help="Write a page.")]
ThePicture = Annotated[Path | None, typer.Option(help="Write the picture.")]


def attention(
    run: options.Run,
    text: TextOrOwn = None,
    to: Annotated[
        str | None, typer.Option(help="For a translator: the target language, such as de.", show_default="its first")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="For a translator: the translation.", show_default="the model's own")
    ] = None,
    html: PageToLookAround = None,
    svg: APicture = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Show where the attention heads of a model look, the likely role of each, and a page with every weight.

    For bert the text may have blanks, [MASK]. For a translator it is a sentence, and its alignments are shown.

    Example: lmlab explain attention runs/gpt "What say you, my lord?" --html heads.html
    """
    from lmlab.cli.show.inside import print_attention

    found = lmlab.explain_attention(
        options.opened(run), text, to=to, target=target, device=device, html=html, svg=svg, command=options.as_typed()
    )
    options.answer(json, found, print_attention, html)


def gates(
    run: options.Run,
    text: TextOrOwn = None,
    html: PageToLookAround = None,
    svg: APicture = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Show the gate activations of a gru or an lstm, how long each unit remembers, and what it correlates with.

    Example: lmlab explain gates runs/lstm "What say you, my lord?" --html gates.html
    """
    from lmlab.cli.show.inside import print_gates

    found = lmlab.explain_gates(
        options.opened(run), text, device=device, html=html, svg=svg, command=options.as_typed()
    )
    options.answer(json, found, print_gates, html)


def heads(
    run: options.Run,
    text: Annotated[
        str | None,
        typer.Argument(help="Words in quotes, a file, or -; for a translator a file of pairs.", show_default=OWN_TEXT),
    ] = None,
    html: PageOfIt = None,
    svg: ThePicture = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Ablate the attention heads of a model one at a time: the cost of each in bits, beside its likely role.

    The cost is in bits per byte of the text; per masked token for bert; per byte of the translation for a translator.

    Example: lmlab explain heads runs/gpt --html heads.html
    """
    from lmlab.cli.show.inside import print_heads

    found = lmlab.explain_heads(
        options.opened(run), text, device=device, html=html, svg=svg, command=options.as_typed()
    )
    options.answer(json, found, print_heads)


def matrix(
    run: options.Run,
    text: Annotated[str, typer.Argument(help="A few words in quotes.")],
    layer: Annotated[int, typer.Option(help="Layer number, from 1.")] = 1,
    head: Annotated[int, typer.Option(help="Head number, from 1.")] = 1,
    html: PageOfIt = None,
    svg: ThePicture = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Show an attention head as one matrix for a given text: blocks a_nm W, beside a dense layer, with both parameter counts.

    Example: lmlab explain matrix runs/gpt "To be" --layer 2 --head 1 --html matrix.html
    """
    from lmlab.cli.show.inside import print_matrix

    opened = options.opened(run)
    found = lmlab.explain_matrix(
        opened, text, layer=layer, head=head, device=device, html=html, svg=svg, command=options.as_typed()
    )
    options.answer(json, found, print_matrix)


def search(
    run: options.Run,
    prompt: Annotated[str, typer.Argument(help="The prompt; it may be empty.")] = "",
    tokens: Annotated[int, typer.Option(min=1, help="Number of tokens to add.")] = 5,
    beam: Annotated[int, typer.Option(min=1, help="Width of the beam.")] = 3,
    html: PageOfIt = None,
    svg: ThePicture = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Show how greedy, beam and exhaustive search continue a prompt, as a tree, and where greedy search loses.

    Example: lmlab explain search runs/gpt "My lord" --tokens 6 --html tree.html
    """
    from lmlab.cli.show.inside import print_search

    opened = options.opened(run)
    found = lmlab.explain_search(
        opened, prompt, tokens=tokens, beam=beam, device=device, html=html, svg=svg, command=options.as_typed()
    )
    options.answer(json, found, print_search)
