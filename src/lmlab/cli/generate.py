"""`lmlab generate`: text from a trained model, streamed."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from lmlab.cli import options
from lmlab.config import Mistake

# What messages about decoding call a setting, and what it is called here; the others have one name.
OPTIONS = {"max_tokens": "tokens", "beam_width": "beam", "n_best": "best"}


def command(
    run: Annotated[Path, typer.Argument(help="The folder of a trained model.")],
    prompt: Annotated[str, typer.Option(help="What the text begins with.")] = "",
    method: Annotated[str, typer.Option(help="sample, greedy, beam or, for tiny vocabularies, exhaustive.")] = "sample",
    tokens: Annotated[int, typer.Option(help="At most so many tokens.")] = 200,
    temperature: Annotated[float, typer.Option(help="Below 1 safer, above 1 wilder, 0 greedy.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Only the k likeliest tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Only the likeliest tokens that together have this mass.")] = None,
    min_p: Annotated[float | None, typer.Option(help="Only tokens at least this likely relative to the best.")] = None,
    beam: Annotated[int, typer.Option(help="Width of the beam.")] = 4,
    best: Annotated[int, typer.Option(help="How many of the beam's results to show.")] = 1,
    length_penalty: Annotated[float, typer.Option(help="Exponent of length normalisation in beam search.")] = 1.0,
    stop: Annotated[list[str], typer.Option(help="Stop where this string would begin. May be repeated.")] = [],  # noqa: B006
    samples: Annotated[int, typer.Option(help="How many texts to draw.")] = 1,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Generate text from a trained model."""
    from lmlab.decode import generate, stream
    from lmlab.learn.run import load_run

    loaded = load_run(run)
    model, tokenizer = loaded.model, loaded.tokenizer
    choices = {"max_tokens": tokens, "method": method, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    choices |= {"min_p": min_p, "stop": stop, "seed": seed, "samples": samples}
    choices |= {"beam_width": beam, "n_best": best, "length_penalty": length_penalty}
    try:
        if samples == best == 1 and method != "beam" and not json:
            _write(prompt, stream(model, tokenizer, prompt, **choices))
            return
        results = generate(model, tokenizer, prompt, **choices)
    except Mistake as error:
        raise Mistake(error.written(_as_option)) from None
    if json:
        options.print_json([result.to_json() for result in results])
        return
    for number, result in enumerate(results, start=1):
        if len(results) > 1:
            print(f"--- {number} · {result.nats:.2f} nats ---")
        print(prompt + result.text)


def _write(prompt: str, pieces: Iterable[str]) -> None:
    """The prompt and what follows it, as it comes."""
    sys.stdout.write(prompt)
    for piece in pieces:
        sys.stdout.write(piece)
        sys.stdout.flush()
    print()


def _as_option(name: str, value: object) -> str:
    option = f"--{OPTIONS.get(name, name).replace('_', '-')}"
    return option if value is None else f"{option} {value}"
