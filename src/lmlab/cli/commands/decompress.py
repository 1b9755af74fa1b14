"""`lmlab decompress`: restores a text from its compressed file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section

SECTION: Section = "Use a trained model"


def command(
    file: Annotated[Path, typer.Argument(help="A file that `lmlab compress` wrote; - is standard input.")],
    model: options.Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="The text file to write; - is standard output.")],
    force: options.Force = False,
    device: options.Device = "cpu",
    json: options.Json = False,
) -> None:
    """Restore a text that `lmlab compress` compressed, byte for byte, with the run that compressed it."""
    from lmlab.cli.show.progress import ProgressLine

    with options.output(out, json) as (target, told), ProgressLine("decompress") as line:
        found = lmlab.decompress(file, model=model, out=target, force=force, device=device, watch=line.tokens)
    if json:
        options.print_json(found.to_json())
    else:
        sizes = f"{found.original_bytes:,} bytes, as they were (their hash matches), from {found.compressed_bytes:,}"
        print(f"{out}: {sizes}", file=told)
