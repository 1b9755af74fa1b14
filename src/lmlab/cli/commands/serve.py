"""`lmlab serve`: serves trained models over HTTP."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section

SECTION: Section = "Use a trained model"


def command(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of trained language models; the first answers where none is named.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0: a free one.")] = 8000,
    api_key: Annotated[
        str | None,
        typer.Option(
            help="What clients must send as a bearer token. The variable LMLAB_API_KEY hides it from other users."
        ),
    ] = None,
    without_key: Annotated[
        bool, typer.Option("--without-key", help="Let other computers use the models without a key.")
    ] = False,
    max_rows: Annotated[int, typer.Option(help="Completions of one model that are decoded side by side.")] = 64,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of one completion.")] = 1 << 14,
    max_prompt: Annotated[int, typer.Option(help="Most tokens of one prompt.")] = 1 << 17,
    queue: Annotated[int, typer.Option(help="Completions that may wait or run, of all clients.")] = 1 << 12,
    timeout: Annotated[float, typer.Option(help="Seconds that one request may take.")] = 600.0,
    precision: Annotated[str, typer.Option(help="Precision of decoding: float32 or bf16.")] = "float32",
    device: options.Device = "auto",
) -> None:
    """Serve models over HTTP, in the protocol of OpenAI's completions.

    The log-probabilities of an echoed prompt are those of `lmlab eval`. Ctrl-C or SIGTERM ends it after running requests.

    Example: lmlab serve runs/mine runs/ngram --port 8000
    """

    def ready(url: str) -> None:
        print(f"serving at {url}/v1 (a page at {url}/); Ctrl-C ends it", file=sys.stderr, flush=True)

    lmlab.serve(
        runs,
        host=host,
        port=port,
        api_key=os.environ.get("LMLAB_API_KEY") if api_key is None else api_key,
        without_key=without_key,
        max_rows=max_rows,
        max_tokens=max_tokens,
        max_prompt=max_prompt,
        queue=queue,
        timeout=timeout,
        device=device,
        precision=precision,
        ready=ready,
    )
