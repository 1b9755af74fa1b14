"""`lmlab eval`: measures the bits per byte of a text under a trained model, with a certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section

SECTION: Section = "Use a trained model"


def command(
    run: options.Run,
    text: Annotated[
        str | None, typer.Argument(help="Another text, scored as a whole.", show_default="the run's own test part")
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="Part of the run's own corpus: train, valid or test.", show_default="test")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="For a translator: another run to compare with, sentence by sentence.")
    ] = None,
    per_token: Annotated[Path | None, typer.Option(help="Write the bits of every token into this CSV file.")] = None,
    documents: Annotated[
        str | None,
        typer.Option(
            help="What the documents of TEXT are: lines, blank, jsonl:FIELD, files or none.",
            show_default="as in the run",
        ),
    ] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    verbose: Annotated[bool, typer.Option("--verbose", help="Show every check of the certificate.")] = False,
    json: options.Json = False,
) -> None:
    """Measure how well a model predicts a text, in bits per byte, and certify the measurement.

    The exit code is 1 if a check of the certificate fails, such as that the text was held out.
    """
    from lmlab.cli.show.progress import ProgressLine
    from lmlab.measure import Result
    from lmlab.models.registry import kind_of

    with ProgressLine("eval") as line:
        result = lmlab.evaluate(
            run,
            text,
            part=part,
            documents=documents,
            seed=seed,
            device=device,
            against=against,
            per_token=per_token,
            watch=line.measuring,
        )
    if isinstance(result, Result):
        from lmlab.cli.show.result import print_result

        options.answer(json, result, print_result, verbose=verbose)
    else:
        task = kind_of(result.model).task
        assert task is not None, "a language model has a Result"
        options.answer(json, result, task.show)
    failures = result.certificate.failures if isinstance(result, Result) else result.failures
    # a requested training part is no failure, but the output still marks the result
    if [name for name in failures if name != "held_out" or part != "train"]:
        raise typer.Exit(1)
