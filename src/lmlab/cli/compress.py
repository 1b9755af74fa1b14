"""`lmlab compress` and `lmlab decompress`: a text in as few bytes as a model claims, and back."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Self

import typer

from lmlab.cli import options

PLAIN_EVERY_S = 15.0

Model = Annotated[Path, typer.Option("--model", help="The folder of a trained model.")]


def compress(
    file: Annotated[str, typer.Argument(help="A text in UTF-8, plain or gzip (then its content), or - for stdin.")],
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="The compressed file to write.")],
    streams: Annotated[
        int, typer.Option(help="Code so many pieces side by side: faster for neural models, and a little larger.")
    ] = 1,
    check: Annotated[bool, typer.Option("--check", help="Decompress again and compare before writing.")] = False,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Compress a text with a trained model, by arithmetic coding, to the bits that `lmlab eval` claims.

    Opening it again takes the same run, lmlab, torch and kind of processor; anything else is noticed and refused.
    """
    options.refuse_if_taken(out, force)
    text = _read_text(file)
    from lmlab import compression as coding
    from lmlab.compression.container import unpack
    from lmlab.learn.run import load_run
    from lmlab.text.files import write_atomically

    run = load_run(model)
    loaded, tokenizer = run.model, run.tokenizer
    claimed = coding.claimed_bits(loaded, tokenizer, text)
    started = time.perf_counter()
    with _TokenLine("compress") as line:
        data = coding.compress(loaded, tokenizer, text, streams=streams, progress=line.update)
    seconds = time.perf_counter() - started
    if check:
        with _TokenLine("check") as line:
            if (
                coding.decompress(loaded, tokenizer, data, progress=line.update) != text
            ):  # not an assert: -O must not skip it
                raise RuntimeError("what was compressed does not come back; nothing was written")
    write_atomically(out, data)
    header, parts = unpack(data)
    facts = _facts(header.text_bytes, len(data), claimed)
    facts |= {"tokens": header.tokens, "streams": len(parts), "checked": check, "seconds": seconds}
    facts |= {"model": loaded.name, "tokenizer": tokenizer.spec, "fingerprint": header.fingerprint.hex()}
    if json:
        options.print_json({"file": file, "output": str(out), **facts})
    else:
        print(_summary(file, out, facts))


def decompress(
    file: Annotated[Path, typer.Argument(help="A file that `lmlab compress` wrote.")],
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="The text file to write.")],
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Bring back a text that `lmlab compress` made small, byte for byte, with the run it was compressed with."""
    options.refuse_if_taken(out, force)
    data = file.read_bytes()
    from lmlab import compression as coding
    from lmlab.compression.container import unpack
    from lmlab.learn.run import load_run
    from lmlab.text.files import write_atomically

    with _naming(file):
        header, _ = unpack(data)
    run = load_run(model)
    loaded, tokenizer = run.model, run.tokenizer
    started = time.perf_counter()
    with _naming(file), _TokenLine("decompress") as line:
        text = coding.decompress(loaded, tokenizer, data, progress=line.update)
    seconds = time.perf_counter() - started
    write_atomically(out, text.encode())
    facts = _facts(header.text_bytes, len(data), None) | {"tokens": header.tokens, "seconds": seconds}
    if json:
        options.print_json({"file": str(file), "output": str(out), **facts})
    else:
        print(f"{out}: {header.text_bytes:,} bytes, as they were (their hash matches), from {len(data):,}")


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """What is wrong with the compressed file is said with its name."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def _read_text(file: str) -> str:
    """The whole text, checked to be UTF-8. An empty file is a text here, though not one to learn from."""
    from lmlab.text import intake

    path = Path(file).expanduser()
    if file == "-":
        document = intake.gather("-")[1][0]
    elif not path.exists():
        raise ValueError(f"there is no file {file}; name the text to compress, or - for standard input")
    elif path.is_file() and path.stat().st_size == 0:
        return ""
    else:
        document = intake.checked(path)
    return "".join(document.pieces())


def _facts(original: int, compressed: int, claimed_bits: float | None) -> dict[str, Any]:
    """The sizes and their relations; None where there is none (an empty text, an infinite claim)."""
    facts: dict[str, Any] = {"original_bytes": original, "compressed_bytes": compressed}
    facts["bits_per_byte"] = 8 * compressed / original if original else None
    facts["ratio"] = original / compressed
    if claimed_bits is None:
        return facts
    finite = math.isfinite(claimed_bits)
    facts["claimed_bits"] = claimed_bits if finite else None
    facts["claimed_bits_per_byte"] = claimed_bits / original if original and finite else None
    facts["excess"] = 8 * compressed / claimed_bits - 1.0 if claimed_bits and finite else None
    return facts


def _summary(file: str, out: Path, facts: dict[str, Any]) -> str:
    sizes = f"{file}: {facts['original_bytes']:,} bytes -> {out}: {facts['compressed_bytes']:,} bytes"
    if not facts["original_bytes"]:
        return sizes
    lines = [sizes, f"  {facts['bits_per_byte']:.4f} bits per byte, {_times(facts['ratio'])}"]
    if facts["claimed_bits"] is None:
        lines.append(
            f"  {facts['model']} holds some of it impossible (infinite bits); such a token was sent in 32 bits"
        )
    else:
        lines.append(
            f"  {facts['model']} claims {facts['claimed_bits']:,.0f} bits ({facts['claimed_bits_per_byte']:.4f} per byte):"
            f" the file is {abs(facts['excess']):.2%} {'larger' if facts['excess'] >= 0 else 'smaller'}"
            + (f", coded as {facts['streams']} streams" if facts["streams"] > 1 else "")
        )
    speed = facts["tokens"] / max(facts["seconds"], 1e-9)
    lines.append(f"  {facts['tokens']:,} tokens in {facts['seconds']:.1f} s, {speed:,.0f} a second")
    return "\n".join(lines)


def _times(ratio: float) -> str:
    """How much smaller (or, where the model does not suit the text, larger) the compressed file is."""
    return f"{ratio:.2f} times smaller" if ratio >= 1 else f"{1 / ratio:.2f} times larger"


class _TokenLine:
    """How many tokens are done, on stderr: a bar on a terminal, a plain line now and then elsewhere."""

    def __init__(self, name: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        self.name = name
        self._said_at = time.monotonic()
        console = Console(stderr=True)
        self._plain = not console.is_terminal
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=self._plain)
        self._task = self._bar.add_task(name, total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, done: int, total: int) -> None:
        """Called after every step; shown ten times a second at most."""
        now = time.monotonic()
        if now - self._said_at < (PLAIN_EVERY_S if self._plain else 0.1):
            return
        self._said_at = now
        if self._plain:
            print(f"{self.name}: {done:,} of {total:,} tokens", file=sys.stderr, flush=True)
        else:
            self._bar.update(self._task, completed=done, total=total)
