"""`lmlab generate`: text from a trained model, streamed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lmlab.cli import options
from lmlab.cli.show.plain import visible
from lmlab.config import Mistake


def command(
    run: options.Run,
    prompt: Annotated[str | None, typer.Option(help="What the text begins with.")] = None,
    prompt_file: Annotated[
        str | None, typer.Option(help="A file with what the text begins with; - is standard input.")
    ] = None,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="A prompt that stays: texts, /retry, /more, /temperature 0.7.")
    ] = False,
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
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Generate text from a trained model, once or in a conversation."""
    if prompt is not None and prompt_file is not None:
        raise Mistake(
            "{prompt} and {prompt_file} both say how the text begins; leave one out", prompt=None, prompt_file=None
        )
    prompt = prompt or ("" if prompt_file is None else _read(prompt_file))
    if interactive:
        if json or prompt or samples > 1 or best > 1:
            raise Mistake(
                "{interactive} asks for prompts itself and shows one text each; leave the rest out", interactive=True
            )
        from lmlab.cli.interactive import converse
        from lmlab.decode.conversation import Conversation

        chosen = {"method": method, "max_tokens": tokens, "temperature": temperature, "top_k": top_k, "top_p": top_p}
        chosen |= {
            "min_p": min_p,
            "beam_width": beam,
            "length_penalty": length_penalty,
            "stop": tuple(stop),
            "seed": seed,
        }
        opened = options.opened(run)
        converse(Conversation(opened.load(device), opened.tokenizer, **chosen))
        return
    from lmlab import face

    writer = _Writer(prompt)
    streamed = samples == best == 1 and method != "beam" and not json
    results = face.generate(
        options.opened(run),
        prompt,
        method=method,
        tokens=tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        beam=beam,
        best=best,
        length_penalty=length_penalty,
        stop=stop,
        samples=samples,
        seed=seed,
        device=device,
        watch=writer if streamed else None,
    )
    if json:
        options.print_json([result.to_json() for result in results])
    elif streamed:
        print(_shown(writer.before))
    else:
        for number, result in enumerate(results, start=1):
            if len(results) > 1:
                print(f"--- {number} · {result.nats:.2f} nats ---")
            print(_shown(prompt + result.text))


def _read(file: str) -> str:
    """The prompt in a file; the line break that ends the file is the editor's."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return content.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise Mistake(f"{file} is not UTF-8 at byte {error.start}; give text in UTF-8") from None


def _shown(text: str) -> str:
    """On a terminal no control characters; a file gets what was generated."""
    return visible(text) if sys.stdout.isatty() else text


class _Writer:
    """Writes the prompt and what follows it, as it comes; nothing before the first piece is there."""

    def __init__(self, prompt: str) -> None:
        self.before = prompt  # what is still to be written before the next piece

    def __call__(self, piece: str) -> None:
        sys.stdout.write(_shown(self.before + piece))
        sys.stdout.flush()
        self.before = ""
