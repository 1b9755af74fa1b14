"""`lmlab compare`: every model on one text, ranked."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from lmlab.cli import options
from lmlab.models.registry import MODELS


def command(
    text: options.Text = "sotu",
    budget: Annotated[str, typer.Option(help="Wall-clock time for everything: 90s, 5m, 1h.")] = "5m",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the comparison; the same folder again goes on.", show_default="runs/compare-TEXT"),
    ] = None,
    models: Annotated[str, typer.Option(help="Which models, separated by commas.", show_default="all")] = "",
    tokenizers: Annotated[
        str, typer.Option(help="Which tokenizers, separated by commas; models are crossed with them.")
    ] = ("char"),
    split: options.Split = options.DEFAULT_SPLIT,
    valid: options.Valid = None,
    test: options.Test = None,
    settings: Annotated[
        list[str], typer.Option("--set", help="A setting of one model, as model.key=value. May be repeated.")
    ] = [],  # noqa: B006 (typer copies it)
    seed: options.Seed = 0,
    seeds: Annotated[
        int, typer.Option(help="How often each learned model is trained; the budget is shared by all of these runs.")
    ] = 1,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Compare every kind of language model on one text: a ranked table and an HTML report.

    A model that fails is shown with the reason beside the others; the exit code is 1 only if all of them do.

    Example: lmlab compare mytext.txt --budget 5m
    """
    from lmlab.cli.train import check_model_name

    started = time.perf_counter()  # loading torch is part of the wait
    chosen = [name.strip() for name in models.split(",") if name.strip()] or None
    for name in chosen or ():
        check_model_name(name)
    shares = options.parse_split(split, valid, test)
    from lmlab.cli.comparison import LiveTable, print_table
    from lmlab.comparison import compare
    from lmlab.comparison.report import write_report

    folder = out or Path("runs") / f"compare-{options.text_stem(text)}"
    with LiveTable() as display:
        comparison = compare(
            text,
            out=folder,
            budget=budget,
            models=chosen,
            tokenizers=[t.strip() for t in tokenizers.split(",") if t.strip()],
            split=shares,
            valid=valid,
            test=test,
            seed=seed,
            seeds=seeds,
            settings=_settings_by_model(settings),
            device=device,
            display=display,
            started=started,
            command="lmlab " + shlex.join(sys.argv[1:]),
        )
    report = write_report(comparison.to_json(), folder / "report.html")
    if json:
        options.print_json(comparison.to_json() | {"report": str(report)})
    else:
        print_table(comparison)
        luck = comparison.to_json()["luck"]
        if luck["sentence"]:
            print(luck["sentence"] + ("" if luck["measured"] else " --seeds 3 measures it."))
        print(f"Report: {report.resolve()}")
    if all(entry.status == "failed" for entry in comparison.entries):
        print("lmlab: every model failed; the report says how", file=sys.stderr)
        raise typer.Exit(1)


def _settings_by_model(assignments: list[str]) -> dict[str, dict[str, object]]:
    """Read model.key=value settings, typed by each model's config."""
    from lmlab.config import nearest, parse_settings
    from lmlab.models.registry import model_class

    found: dict[str, dict[str, object]] = {}
    for assignment in assignments:
        model, dot, rest = assignment.partition(".")
        if not dot or model not in MODELS:
            raise ValueError(
                f"--set here is model.key=value, such as gpt.layers=2; {model!r}: {nearest(model, MODELS)}"
            )
        found.setdefault(model, {}).update(parse_settings(model_class(model).Config, [rest], model))
    return found
