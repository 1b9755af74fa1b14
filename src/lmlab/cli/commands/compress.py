"""`lmlab compress`: compresses a text to the size that a model's probabilities imply."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section

if TYPE_CHECKING:
    from lmlab.compression.compress_files import Compressed

SECTION: Section = "Use a trained model"


def command(
    file: Annotated[str, typer.Argument(help="A text in UTF-8, plain or gzip (then its content), or - for stdin.")],
    model: options.Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="The compressed file to write; - is standard output.")],
    streams: Annotated[
        int, typer.Option(help="Number of pieces coded in parallel: faster for neural models, and a little larger.")
    ] = 1,
    check: Annotated[bool, typer.Option("--check", help="Decompress and compare before writing.")] = False,
    force: options.Force = False,
    device: options.Device = "cpu",
    json: options.Json = False,
) -> None:
    """Compress a text with a trained model, by arithmetic coding, to the bits that `lmlab eval` reports.

    Decompression needs the same run. Unless the model is a count model, it also needs the same versions of lmlab and torch and
    the same type of processor. Anything else is detected and refused.
    """
    from lmlab.cli.show.progress import ProgressLine

    with options.output(out, json) as (target, told), ProgressLine("compress") as line:
        found = lmlab.compress(
            file, model=model, out=target, streams=streams, check=check, force=force, device=device, watch=line.tokens
        )
    if json:
        options.print_json(found.to_json())
    else:
        print(_summary(replace(found, output=str(out))), file=told)


def _summary(found: Compressed) -> str:
    sizes = f"{found.file}: {found.original_bytes:,} bytes -> {found.output}: {found.compressed_bytes:,} bytes"
    if found.bits_per_byte is None:
        return sizes
    ratio = found.ratio
    times = f"{ratio:.2f} times smaller" if ratio >= 1 else f"{1 / ratio:.2f} times larger"
    lines = [sizes, f"  {found.bits_per_byte:.4f} bits per byte, {times}"]
    if found.claimed_bits is None:
        lines.append(f"  {found.model} holds some of it impossible (infinite bits); such a token was sent in 32 bits")
    elif found.excess is None:
        lines.append(f"  {found.model} is certain of all of it and claims no bits: the file holds what must match")
    else:
        streams = f", coded as {found.streams} streams" if found.streams > 1 else ""
        lines.append(
            f"  {found.model} claims {found.claimed_bits:,.0f} bits ({found.claimed_bits_per_byte:.4f} per byte):"
            f" the file is {abs(found.excess):.2%} {'larger' if found.excess >= 0 else 'smaller'}{streams}"
        )
    speed = found.tokens / max(found.seconds, 1e-9)
    lines.append(f"  {found.tokens:,} tokens in {found.seconds:.1f} s, {speed:,.0f} a second")
    return "\n".join(lines)
