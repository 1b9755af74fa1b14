"""`lmlab count`: counts the parameters and operations of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import lmlab
from lmlab.cli import completion, options
from lmlab.cli.commands import Section
from lmlab.models import registry

SECTION: Section = "Look inside"


def command(
    model: Annotated[
        str,
        typer.Argument(
            help="A run, a config.json, package.module:Class, or one of: " + ", ".join(registry.trainable()) + ".",
            autocompletion=completion.models_and_runs,
        ),
    ],
    text: Annotated[
        str | None,
        typer.Argument(help="For a count model: the text to fit it to."),
    ] = None,
    settings: options.Settings = [],  # noqa: B006 (typer copies it)
    vocab: Annotated[
        int | None, typer.Option(help="Vocabulary size, for a model that learns.", show_default="256")
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(help="Length in tokens of the sequence whose operations are counted.", show_default="as trained"),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="For a count model: byte, char, words, words:N or bpe:N.",
            autocompletion=completion.tokenizers,
            show_default="char",
        ),
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Bytes of a training step, predicted and measured on --device.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda or mps; for --memory.")] = "cpu",
    svg: Annotated[Path | None, typer.Option(help="Write a picture of the parts.")] = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print the formulas as LaTeX.")] = False,
    json: options.Json = False,
) -> None:
    """Count the parameters and operations of a model, part by part: by formula, on an instance, and with PyTorch.

    The exit code is 1 if the three counts disagree.

    A config.json of Hugging Face transformers is counted without that package: GPT-2 to Qwen 3, mixtures of experts, BERT, T5.

    Example: lmlab count gpt --set layers=12 --set width=768 --set context=1024 --vocab 50257
    """
    if svg is not None:
        from lmlab_derive.shared.html import refuse_names

        refuse_names(svg=svg)
    is_file = model.endswith(".json")
    is_kind = not is_file and (model in registry.KINDS or not model or not Path(model).is_dir())
    if is_kind:
        options.check_model_name(model)
    from lmlab.cli.show.costs import print_count
    from lmlab.config import named_once, parse_settings

    chosen: dict[str, Any] = dict(pair.partition("=")[::2] for pair in named_once(settings))
    if is_kind:
        chosen = parse_settings(registry.model_class(model).Config, settings, model)
    found = lmlab.count(
        model,
        text,
        settings=chosen,
        vocab=vocab,
        length=length,
        tokenizer=tokenizer,
        memory=memory,
        device=device,
    )
    options.answer(json, found, print_count, latex=latex)
    if svg is not None:
        from lmlab.costs.figures import where
        from lmlab.page.figures import standalone
        from lmlab_derive.shared.html import write

        write(svg, standalone(where(found)))
    if not found.agrees:
        raise typer.Exit(1)
