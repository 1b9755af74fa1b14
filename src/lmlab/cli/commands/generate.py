"""`lmlab generate`: generates text with a trained model and prints it as it is generated."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section
from lmlab.config import Mistake
from lmlab.learn.run_advice import weights_warning
from lmlab.page.raw_bytes import say_what_bytes_are
from lmlab_derive.shared.plain import visible

if TYPE_CHECKING:
    from lmlab.engine import Generated

SECTION: Section = "Use a trained model"


def command(
    run: options.Run,
    prompt: Annotated[str | None, typer.Option(help="The beginning of the text.")] = None,
    prompt_file: Annotated[
        str | None, typer.Option(help="A file with the beginning of the text; - is standard input.")
    ] = None,
    prompts: Annotated[
        str | None,
        typer.Option(
            help='A file with a prompt on every line, as JSON: "text" or {"prompt": "text"}, perhaps with an "id", which'
            " --json gives back; - is standard input."
        ),
    ] = None,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Read prompts and commands: /retry, /more, /temperature 0.7.")
    ] = False,
    method: Annotated[str, typer.Option(help="sample, greedy, beam or, for tiny vocabularies, exhaustive.")] = "sample",
    tokens: Annotated[int, typer.Option(help="Maximum number of tokens.")] = 200,
    temperature: Annotated[
        float, typer.Option(help="Sampling temperature: below 1 less random, above 1 more random, 0 greedy.")
    ] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Only the k likeliest tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Only the likeliest tokens that together have this mass.")] = None,
    min_p: Annotated[float | None, typer.Option(help="Only tokens at least this likely relative to the best.")] = None,
    beam: Annotated[int, typer.Option(help="Width of the beam.")] = 4,
    best: Annotated[int, typer.Option(help="Number of beam results to show.")] = 1,
    length_penalty: Annotated[float, typer.Option(help="Exponent of length normalisation in beam search.")] = 1.0,
    stop: Annotated[list[str], typer.Option(help="Stop where this string would begin. May be repeated.")] = [],  # noqa: B006
    samples: Annotated[int, typer.Option("--samples", "-n", help="Number of texts to sample.")] = 1,
    seed: options.Seed = 0,
    precision: Annotated[
        str, typer.Option(help="Precision of the weights: float32, or bf16, which is faster on a GPU.")
    ] = "float32",
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Generate text from a trained model: once, for many prompts in a batch, or interactively."""
    given = {"prompt": prompt, "prompt_file": prompt_file, "prompts": prompts}
    if len(both := [name for name, value in given.items() if value is not None]) > 1:
        raise Mistake(
            f"{{{both[0]}}} and {{{both[1]}}} both say how the text begins; leave one out",
            code="two-prompts",
            **dict.fromkeys(both),
        )
    prompt = prompt or ("" if prompt_file is None else _read(prompt_file))

    chosen: dict[str, Any] = {"method": method, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    chosen |= {"min_p": min_p, "length_penalty": length_penalty, "stop": tuple(stop), "seed": seed}
    if interactive:
        if json or prompt or prompts is not None or samples > 1 or best > 1 or precision != "float32":
            raise Mistake(
                "{interactive} asks for prompts itself and shows one text each; leave the rest out",
                code="interactive-beside-prompt",
                interactive=True,
            )
        from lmlab.cli.interactive import converse
        from lmlab.engine.conversation import Conversation

        chosen |= {"max_tokens": tokens, "beam_width": beam}
        opened = lmlab.load(run)
        conversation = Conversation(opened.load(device), opened.tokenizer, **chosen)
        if warning := weights_warning(opened):  # before the conversation, not after the result
            print(f"lmlab: {warning}", file=sys.stderr)
        converse(conversation)
        return
    chosen |= {"tokens": tokens, "beam": beam, "best": best, "samples": samples}
    chosen |= {"precision": precision, "device": device}
    if prompts is not None:
        many = read_prompts(prompts)
        _show_many(many, lmlab.generate_many(options.opened(run), [each.prompt for each in many], **chosen), json)
        return
    writer = _Writer(prompt)
    streamed = samples == best == 1 and method != "beam" and not json
    opened = options.opened(run)
    results = lmlab.generate(opened, prompt, **chosen, watch=writer if streamed else None)
    if json:
        options.print_json([result.to_json() for result in results])
        return
    if streamed:
        print(_shown(writer.before))
    else:
        for number, result in enumerate(results, start=1):
            if len(results) > 1 and opened.rule.mode != "lines":
                print(f"--- {number} · {result.nats / math.log(2):.1f} bits ---")
            print(_shown(prompt + result.text))
    say_what_bytes_are(result.text for result in results)


def _read(file: str) -> str:
    """Return the prompt in a file, without the line break at its end, which editors add."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return content.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except (FileNotFoundError, IsADirectoryError):
        raise Mistake(
            f"there is no file {file}; name one with what the text begins with, or - for standard input",
            code="prompt-file-not-found",
        ) from None
    except UnicodeDecodeError as error:
        raise Mistake(
            f"{file} is not UTF-8 at byte {error.start}; give text in UTF-8", code="prompt-file-not-utf8"
        ) from None


@dataclass(frozen=True)
class Prompt:
    """One line of a file of prompts. id: the user's identifier, of any JSON type; None: none."""

    prompt: str
    id: Any = None

    def named(self) -> dict[str, Any]:
        """Return the prompt and its id as JSON, to precede its results."""
        return {"prompt": self.prompt} if self.id is None else {"prompt": self.prompt, "id": self.id}


def read_prompts(file: str) -> list[Prompt]:
    """Return the prompts in a file of JSON lines; empty lines are skipped."""
    prompts, where = [], "standard input" if file == "-" else file
    for number, line in enumerate(_read(file).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = loads(line)
            dumps(value, allow_nan=False)  # refuse NaN and the like, which the JSON output could not hold
        except (ValueError, RecursionError):
            value = None
        keys = {"prompt": value} if isinstance(value, str) else value
        if not isinstance(keys, dict) or not isinstance(keys.get("prompt"), str):
            raise Mistake(
                f"line {number} of {where} is no prompt; on every line write JSON:"
                ' "text", quotation marks included, or {"prompt": "text"}',
                code="prompt-line-not-json",
            )
        _refuse_other_keys(keys, f"line {number} of {where}")
        prompts.append(Prompt(**keys))
    if not prompts:
        raise Mistake(f"{where} holds no prompt; write one on every line, as JSON", code="prompt-file-empty")
    return prompts


def _refuse_other_keys(line: Mapping[str, object], where: str) -> None:
    """Raise a Mistake for any other key beside a prompt, such as an option, since it would have no effect."""
    if other := next((key for key in line if key not in ("prompt", "id")), None):
        keys = 'a line has "prompt" and perhaps "id", and options are of the command, for all lines'
        raise Mistake(f"{where} has {other!r} beside its prompt; {keys}: leave it out", code="prompt-line-unknown-key")


def _show_many(prompts: Sequence[Prompt], results: Sequence[Sequence[Generated]], json: bool) -> None:
    """Print every prompt with its continuations, or all of them as JSON."""
    together = list(zip(prompts, results, strict=True))
    if json:
        options.print_json([{**asked.named(), "results": [r.to_json() for r in found]} for asked, found in together])
        return
    for number, (asked, found) in enumerate(together, start=1):
        for result in found:
            print(f"--- {number} · {result.nats / math.log(2):.1f} bits ---")
            print(_shown(asked.prompt + result.text))
    say_what_bytes_are(result.text for found in results for result in found)


def _shown(text: str) -> str:
    """Return the text without control characters on a terminal; unchanged for a file."""
    return visible(text) if sys.stdout.isatty() else text


class _Writer:
    """Writes each generated piece as it comes, with the prompt before the first one."""

    def __init__(self, prompt: str) -> None:
        self.before = prompt  # text to write before the next piece

    def __call__(self, piece: str) -> None:
        sys.stdout.write(_shown(self.before + piece))
        sys.stdout.flush()
        self.before = ""
