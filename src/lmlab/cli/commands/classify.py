"""`lmlab classify`: labels texts, or explains the misclassified examples of a classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section
from lmlab.config import Mistake

SECTION: Section = "Other tasks"


def command(
    run: options.Run,
    texts: Annotated[list[str] | None, typer.Argument(help="Texts to label; - reads lines of standard input.")] = None,
    errors: Annotated[int | None, typer.Option(min=1, help="Explain this many misclassified examples instead.")] = None,
    part: Annotated[str, typer.Option(help="Part with the misclassified examples: train, valid or test.")] = "test",
    html: Annotated[Path | None, typer.Option(help="Write a page of the misclassified examples.")] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Label texts with a trained classifier, or explain its misclassified examples.

    Example: lmlab classify runs/dan-reviews "not bad at all"
    """
    from lmlab.tasks.classification import show

    opened = options.opened(run)
    if errors is not None:
        if texts:
            raise Mistake(
                "{errors} are looked for in the run's own data; leave the texts out",
                code="errors-beside-texts",
                errors=errors,
            )
        found = lmlab.mistakes(opened, number=errors, part=part, device=device, html=html)
        options.answer(json, found, show.print_mistakes, part, html)
        return
    if html is not None:
        raise Mistake(
            "{html} is a page of mistakes: it needs {errors}", code="html-without-errors", html=None, errors=5
        )
    wanted = options.given_texts(texts, 'give texts to label, such as: lmlab classify RUN "not bad at all"')
    labels = lmlab.classify(opened, wanted, device=device)
    options.answer(json, labels, show.print_labels)
