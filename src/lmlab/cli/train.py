"""`lmlab train`: one model on one text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmlab.cli import options
from lmlab.config import Budget, Mistake, parse_settings
from lmlab.hardware.memory import keep_memory
from lmlab.models import registry

if TYPE_CHECKING:
    from lmlab.learn.run import Run


def command(
    ctx: typer.Context,
    model: Annotated[str | None, typer.Argument(help="One of: " + ", ".join(registry.names()) + ".")] = None,
    text: options.Text = "sotu",
    out: Annotated[Path | None, typer.Option(help="A new folder for the run.", show_default="runs/MODEL-TEXT")] = None,
    tokenizer: options.Tokenizer = "char",
    budget: Annotated[str, typer.Option(help="How long: 90s, 3m, 1h, 500steps or 2Mtokens.")] = "3m",
    split: options.Split = options.DEFAULT_SPLIT,
    valid: options.Valid = None,
    test: options.Test = None,
    settings: options.Settings = [],  # noqa: B006 (typer copies it)
    learning: Annotated[
        list[str], typer.Option("--learn", help="A setting of the training loop, as key=value. May be repeated.")
    ] = [],  # noqa: B006
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the interrupted run in --out.")] = False,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
    json: options.Json = False,
) -> None:
    """Train one model on a text and save it as a run.

    Example: lmlab train gpt mytext.txt --tokenizer char --budget 3m --out runs/mine
    """
    keep_memory()
    going_on = resume and out is not None and (out / "config.json").exists()
    if resume and out is None:
        raise Mistake("{resume} needs {out}: the folder of the run to go on with", resume=True, out="RUN")
    if not going_on and model is None:
        lacking = f"{out} holds no run to go on with; " if resume else ""
        raise Mistake(f"{lacking}name a model to train: {', '.join(registry.names())}")
    if model is not None:
        options.check_model_name(model)
    shares = options.parse_split(split, valid, test)
    from lmlab import face
    from lmlab.cli.show.progress import ProgressLine
    from lmlab.learn.loop import TrainConfig

    with ProgressLine() as watch:
        if going_on:
            assert out is not None
            begun = face.load(out)
            name = begun.record.model.name
            if model not in (None, name):
                raise Mistake(f"{out} is a run of {name}, not of {model}; leave the model out to go on with it")
            _refuse_changes(begun, {key: value for key, value in ctx.params.items() if _is_given(ctx, key)})
            watch.name = out.name
            run = face.resume(out, watch=watch)
        else:
            assert model is not None
            watch.name = model
            run = face.train(
                model,
                text,
                out=out or free_folder(model, text),
                tokenizer=tokenizer,
                budget=budget,
                split=shares,
                valid=valid,
                test=test,
                seed=seed,
                settings=parse_settings(registry.model_class(model).Config, settings, model),
                learning=parse_settings(TrainConfig, learning, "training"),
                device=device,
                precision=precision,
                watch=watch,
            )
    if json:
        options.print_json({"run": str(run.folder), **run.record.to_json()})
    elif run.status == "unfinished":
        print(f"Stopped, and saved. Go on with: lmlab train --resume --out {quote(str(run.folder))}")
    else:
        print(_summary(run))
    if run.status == "unfinished":
        raise typer.Exit(130)


def _is_given(ctx: typer.Context, key: str) -> bool:
    source = ctx.get_parameter_source(key)
    return source is not None and source.name == "COMMANDLINE"


def _refuse_changes(run: Run, given: Mapping[str, Any]) -> None:
    """A run goes on as it began: a Mistake for an option that says otherwise, which would have no effect."""
    from lmlab.learn.loop import TrainConfig

    model, corpus, training = run.record.model, run.record.inputs.corpus, run.record.training
    began: dict[str, Any] = {"tokenizer": run.record.inputs.tokenizer, "split": tuple(corpus["split"])}
    began |= {"budget": training.budget, "seed": training.seed}
    began |= {"device": training.device, "precision": training.precision}
    began |= {key: corpus[key] for key in ("text", "valid", "test")}
    wanted = {key: value for key, value in given.items() if key in began}
    for key in {"text", "valid", "test"} & set(wanted):
        if wanted[key] != began[key]:  # files are kept under their whole path
            wanted[key] = str(Path(wanted[key]).expanduser().resolve())
    if "split" in wanted:
        wanted["split"] = options.parse_split(wanted["split"])
    if "budget" in wanted:
        wanted["budget"] = str(Budget.parse(wanted["budget"]))
    settings = parse_settings(registry.model_class(model.name).Config, given.get("settings", ()), model.name)
    learning = parse_settings(TrainConfig, given.get("learning", ()), "training")
    began |= {f"set {key}": model.config.get(key) for key in settings}
    began |= {f"learn {key}": training.learning.get(key) for key in learning}
    wanted |= {f"set {key}": value for key, value in settings.items()}
    wanted |= {f"learn {key}": value for key, value in learning.items()}
    for key, value in wanted.items():
        if value != began[key]:
            option = "the text" if key == "text" else f"--{key}"
            began_so = f"{run.folder} began otherwise, and goes on as it began"
            raise Mistake(f"{began_so}: leave {option} out, or train into a new folder")


def free_folder(model: str, text: str) -> Path:
    """runs/MODEL-TEXT, or the first of runs/MODEL-TEXT-2, -3, … that is free."""
    name = f"{registry.file_name(model)}-{options.text_stem(text)}"
    folder, number = Path("runs") / name, 2
    while folder.exists():
        folder, number = Path("runs") / f"{name}-{number}", number + 1
    return folder


def _summary(run: Run) -> str:
    """What a user wants to know of a finished run, and what to do next."""
    model, result = run.record.model, run.record.result
    lines = [f"{model.name}: {run.status}, {model.parameters:,} parameters, {result.seconds:.1f} s"]
    lines += [f"  note: {note}" for note in run.model.notes]
    lines.append(f"Saved in {run.folder}. Next: lmlab eval {quote(str(run.folder))}")
    return "\n".join(lines)
