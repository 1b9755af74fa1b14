"""`lmlab compare`: trains and ranks every model on one text."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import completion, options
from lmlab.cli.commands import Section
from lmlab.config import Mistake, named_once, parse_settings
from lmlab.hardware.memory import keep_memory
from lmlab.learn.interrupt import exit_code
from lmlab.learn.run_folder import record_file, required_record_file
from lmlab.learn.settings import parse_learning
from lmlab.models import registry
from lmlab.models.registry import model_class

SECTION: Section = "Compare"


def command(
    text: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=completion.texts,
            help=f"{options.A_TEXT} Or finished runs, and a text to measure them on.",
            show_default="sotu",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Wall-clock time of the whole comparison, from reading the text on: 90s, 5m, 1h.", show_default="5m"
        ),
    ] = None,
    each: Annotated[
        str | None,
        typer.Option(help="Budget of each trained model, instead of --budget, such as 2m or 300steps."),
    ] = None,
    shares: Annotated[
        list[str],
        typer.Option(help="Training time of a model relative to the others, such as gpt=3. May be repeated."),
    ] = [],  # noqa: B006 (typer copies it)
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the comparison; with the same folder it continues.",
            show_default="runs/compare-TEXT; -2, -3 … if that holds another",
        ),
    ] = None,
    models: Annotated[str | None, typer.Option(help="Models, separated by commas.", show_default="all")] = None,
    tokenizers: Annotated[
        str, typer.Option(help="Tokenizers, separated by commas; every model is trained with each.")
    ] = "char",
    split: options.Split = options.DEFAULT_SPLIT,
    split_by: options.SplitBy = "auto",
    documents: options.Documents = "auto",
    valid: options.Valid = None,
    test: options.Test = None,
    settings: Annotated[
        list[str], typer.Option("--set", help="A setting of one model, as model.key=value. May be repeated.")
    ] = [],  # noqa: B006 (typer copies it)
    learning: Annotated[
        list[str],
        typer.Option(
            "--learn",
            help="A training setting, as model.key=value, or key=value for all models that learn. May be repeated.",
        ),
    ] = [],  # noqa: B006
    seed: options.Seed = 0,
    seeds: Annotated[
        int, typer.Option(help="Number of seeds per trained model; all of these runs share the budget.")
    ] = 1,
    executor: Annotated[
        str,
        typer.Option(
            help="Where models are trained: here or, with --each in steps or tokens, processes:N or ray:ADDRESS."
        ),
    ] = "here",
    differences: Annotated[
        bool, typer.Option("--differences", help="Print the paired differences of all models too.")
    ] = False,
    csv: Annotated[
        Path | None, typer.Option(help="Write the paired differences of all models into this CSV file.")
    ] = None,
    device: options.Device = "auto",
    beside: Annotated[
        list[Path],
        typer.Option(
            "--with",
            help="A trained run or a Hugging Face folder, measured on the same bytes without a rank. May be repeated.",
        ),
    ] = [],  # noqa: B006
    logs: Annotated[
        list[Path],
        typer.Option("--logs", help="Instead of a text: samples_….jsonl files of lm-eval, of two models or more."),
    ] = [],  # noqa: B006
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print every remark, not the most important ones alone.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Compare every kind of language model on one text: a ranked table and an HTML report.

    A model that fails, or whose score fails a check, is shown below the ranking with the reason. The exit code is 1 if a score
    fails a check, or if all models fail. Runs that are finished are compared without training: name them, then a text or
    nothing for their own test part.

    Example: lmlab compare mytext.txt --budget 5m

    Example: lmlab compare runs/gpt runs/ngram other.txt --differences
    """
    if logs:
        others = {"budget": budget, "each": each, "out": out, "models": models, "valid": valid, "test": test}
        _compare_logs([*logs, *map(Path, text or ())], others, json)
        return
    if text is not None and len(text) > 1 and any(record_file(Path(name)) is not None for name in text):
        keep_memory()
        asked = {"budget": budget, "each": each, "models": models, "out": out}
        _compare_runs(text, asked, seed=seed, device=device, differences=differences, csv=csv, json=json)
        return
    if len(text or ()) > 1:
        raise Mistake(
            f"one text is compared on, not {len(text or ())}; put several files into a folder, or name them by a pattern in"
            " quotes",
            code="several-texts",
        )
    (named,) = text or ("sotu",)
    keep_memory()
    chosen = None if models is None else options.words(models)
    if chosen == []:
        raise Mistake(
            f"{{models}} names no model; there are: {', '.join(registry.ladder())}", code="no-models", models=None
        )
    for folder in beside:
        options.checked_run(folder)
    for name in chosen or ():
        options.check_language_model(name)
    options.check_text(named)
    parts = options.parse_split(split, valid, test)
    from lmlab.cli.show.comparison import LiveTable, print_comparison
    from lmlab.cli.show.differences import print_differences
    from lmlab.comparison.differences import write_differences
    from lmlab.comparison.folder import kept_in

    with LiveTable() as watch:
        comparison = lmlab.compare(
            named,
            out=out,
            budget=budget,
            each=each,
            shares=_shares_by_model(shares),
            models=chosen,
            tokenizers=[t.strip() for t in tokenizers.split(",") if t.strip()],
            split=parts,
            split_by=split_by,
            documents=documents,
            valid=valid,
            test=test,
            seed=seed,
            seeds=seeds,
            settings=_settings_by_model(settings),
            learning=_learning_by_model(learning, chosen or registry.ladder()),
            device=device,
            executor=executor,
            beside=beside,
            watch=watch,
            command=options.as_typed(),
        )
    if json:
        document = comparison.to_json()
        for entry in document["entries"]:
            entry.pop("excerpt", None)  # thousands of tokens; the details have them
        details = comparison.report.with_name("comparison.json")
        options.print_json(document | {"report": str(comparison.report), "details": str(details)})
    else:
        print_comparison(comparison.findings, verbose=verbose)
        if differences:
            print_differences(comparison.findings.ranking)
        for other in comparison.beside:
            print(other.sentence)
        print(f"Report: {comparison.report.resolve()}")
    if csv is not None and comparison.findings.ranking is not None:
        write_differences(comparison.findings.ranking, csv)
    if all(entry.status == "failed" for entry in comparison.entries):
        print("lmlab: every model failed; the report says how", file=sys.stderr)
        raise typer.Exit(1)
    if comparison.stopped:
        print(f"lmlab: stopped; {kept_in(comparison.report.parent)}", file=sys.stderr)
        raise typer.Exit(exit_code())
    if comparison.failed_checks:
        print(f"lmlab: a check failed, so not ranked: {', '.join(comparison.failed_checks)}", file=sys.stderr)
        raise typer.Exit(1)


def _compare_runs(
    named: list[str],
    asked: Mapping[str, object],
    *,
    seed: int,
    device: str,
    differences: bool,
    csv: Path | None,
    json: bool,
) -> None:
    """Compare finished runs on a text, or on the test part that they share."""
    *runs, last = named
    is_text = record_file(Path(last)) is None
    runs = runs if is_text else named
    for run in runs:
        required_record_file(Path(run))
    if is_text:
        options.check_text(last)
    if given := [name for name, value in asked.items() if value is not None]:
        raise Mistake(
            f"finished runs are measured, and nothing is trained: leave {{{given[0]}}} out",
            code="training-of-finished-runs",
            **{given[0]: None},
        )
    from lmlab.cli.show.differences import print_differences, print_runs
    from lmlab.comparison.differences import write_differences

    found = lmlab.compare_runs(
        runs,
        last if is_text else None,
        seed=seed,
        device=device,
        watch=lambda run: print(f"measuring {run}", file=sys.stderr),
    )
    if json:
        options.print_json(found.to_json())
    else:
        print_runs(found)
        if differences:
            print_differences(found.ranking)
    if csv is not None and found.ranking is not None:
        write_differences(found.ranking, csv)
    if found.refused:
        raise typer.Exit(1)


def _compare_logs(logs: Sequence[Path], others: Mapping[str, object], json: bool) -> None:
    """Compare the logs of lm-eval. No other option says anything about them."""
    if given := next((name for name, value in others.items() if value is not None), None):
        raise Mistake(f"{{{given}}} says nothing about logs; leave it out", code="option-beside-logs", **{given: None})
    from lmlab.cli.show.logs import print_logs

    options.answer(json, lmlab.compare_logs(logs), print_logs)


def _shares_by_model(assignments: list[str]) -> dict[str, float]:
    """Parse time shares such as gpt=3; several may be separated by commas."""
    found: dict[str, float] = {}
    for assignment in (a.strip() for given in assignments for a in given.split(",")):
        model, _, number = assignment.rpartition("=")
        options.check_model_name(model.strip() or assignment)
        try:
            found[model.strip()] = float(number)
        except ValueError:
            message = f"{{shares}} is a model and a number above 0, such as gpt=3; got {assignment!r}"
            raise Mistake(message, code="shares-not-understood", shares=None) from None
    return found


def _settings_by_model(assignments: list[str]) -> dict[str, dict[str, object]]:
    """Parse model.key=value settings, with the types of each model's config."""
    found: dict[str, dict[str, object]] = {}
    for assignment in named_once(assignments):
        model, dot, rest = _divided(assignment)
        if not dot:
            raise Mistake(
                f"{{settings}} here is model.key=value, such as gpt.layers=2; got {assignment!r}",
                code="model-setting-not-understood",
                settings=None,
            )
        found.setdefault(model, {}).update(parse_settings(model_class(model).Config, [rest], model))
    return found


def _learning_by_model(assignments: list[str], models: Sequence[str]) -> dict[str, dict[str, object]]:
    """Parse training settings: model.key=value for one model, key=value for all models that learn."""
    found: dict[str, dict[str, object]] = {}
    for assignment in named_once(assignments):
        model, dot, rest = _divided(assignment)
        learn = [name for name in models if registry.kind_of(name).way is registry.Way.LEARNS]
        if not dot and not learn:
            counted = f"{{learning}} is of models that learn, and none of these does: {', '.join(models)}"
            raise Mistake(f"{counted}; leave it out", code="learning-of-a-counting-model", learning=None)
        for name in [model] if dot else learn:
            options.check_model_name(name)
            found.setdefault(name, {}).update(parse_learning([rest]))
    return found


def _divided(assignment: str) -> tuple[str, str, str]:
    """Split an assignment into the model, the dot, and key=value. The name of a plugin class may contain dots itself."""
    named, equals, value = assignment.partition("=")
    model, dot, key = named.rpartition(".")
    return model, dot, key + equals + value
