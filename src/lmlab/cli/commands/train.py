"""`lmlab train`: trains one model on one text."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

import lmlab
from lmlab.cli import completion, options
from lmlab.cli.commands import Section
from lmlab.config import Aside, Budget, Mistake, an, parse_settings
from lmlab.disk.files import as_typed
from lmlab.hardware.memory import keep_memory
from lmlab.learn.interrupt import exit_code
from lmlab.learn.run_advice import how_to_resume, how_to_use
from lmlab.learn.run_folder import record_file
from lmlab.learn.settings import parse_learning
from lmlab.models import registry
from lmlab.page.numbers import short
from lmlab_derive.shared.help import print_so_far

if TYPE_CHECKING:
    from lmlab.learn.run import Run
    from lmlab.learn.world import World

SECTION: Section = "Train"
NOTHING_LEARNED = 2  # exit code of a user's mistake, since another learning rate may help


class WithSettings(typer.core.TyperCommand):
    """The command `lmlab train`, whose `--help` after a model's name also lists the settings of that model."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, then the settings of the model among the arguments, which are not parsed yet."""
        super().format_help(ctx, formatter)
        print_so_far(formatter)
        if name := next((word for word in sys.argv[1:] if word in registry.KINDS), None):
            from lmlab.cli.show.settings import print_settings

            print_settings(lmlab.settings(name))


COMMAND_CLASS = WithSettings


def command(
    ctx: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(help="One of: " + ", ".join(registry.trainable()) + ".", autocompletion=completion.models),
    ] = None,
    text: options.TextOrNone = None,
    out: Annotated[Path | None, typer.Option(help="A new folder for the run.", show_default="runs/MODEL-TEXT")] = None,
    tokenizer: options.TokenizerOrNone = None,
    budget: Annotated[str, typer.Option(help="Training budget: 90s, 3m, 1h, 500steps, 2Mtokens or 2epochs.")] = "3m",
    split: options.Split = options.DEFAULT_SPLIT,
    split_by: options.SplitBy = "auto",
    documents: options.Documents = "auto",
    valid: options.Valid = None,
    test: options.Test = None,
    settings: options.Settings = [],  # noqa: B006 (typer copies it)
    learning: options.Learning = [],  # noqa: B006
    columns: Annotated[
        str | None, typer.Option(help="Columns of text and label in a table of labelled texts, such as review,stars.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --out; with --budget +10m for 10 minutes longer.")
    ] = False,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Start from the weights and the tokenizer of this run: lmlab train --from RUN TEXT."
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A recipe: a TOML file of these options, such as the recipe.toml of a run.")
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(help="A folder for an event file, which TensorBoard reads while training runs.")
    ] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
    json: options.Json = False,
) -> None:
    """Train one model on a text and save it as a run. With a model's name --help lists its settings too.

    Example: lmlab train gpt mytext.txt --tokenizer char --budget 3m --out runs/mine
    """
    known = registry.KINDS.get(model or "")  # None with --from, where the first word is the text
    if known is None or known.way is not registry.Way.COUNTS:
        keep_memory()  # steps reuse the same memory; counting needs it only once
    given = {key: value for key, value in ctx.params.items() if _is_given(ctx, key)}
    # ctx.params holds the parsed arguments; some versions of typer have not converted paths yet.
    asked = {**ctx.params, "out": out, "from_": from_, "split": options.parse_split(split, valid, test), "recipe": {}}
    if config is not None:
        if resume:
            raise Mistake(
                "a run that goes on does so as it began; leave {config} out", code="config-beside-resume", config=None
            )
        asked = _with_recipe(config, asked, given)
        from_ = asked["from_"]
    if budget.startswith("+") and not resume:
        raise Mistake(
            "a {budget} with a plus is for going on with a run: {resume}",
            code="plus-without-resume",
            budget=None,
            resume=True,
        )
    with _world() as world, _only_the_writer_prints(world):
        if from_ is not None:
            run = _fine_tune(from_, asked, given, world)
        elif resume:
            run = _go_on(asked, given, world)
        else:
            run = _train(asked, given, world)
        _print(run, json)
    if run.learned_nothing:
        raise typer.Exit(NOTHING_LEARNED)
    if run.status == "unfinished":
        raise typer.Exit(exit_code())


@contextmanager
def _world() -> Iterator[World]:
    """Yield the world of this process; torch is imported only if a launcher started it beside others."""
    from lmlab.learn.world import SINGLE_PROCESS, is_launched

    if not is_launched():
        yield SINGLE_PROCESS
        return
    from lmlab.learn.process_group import connected

    with connected() as world:
        yield world


@contextmanager
def _only_the_writer_prints(world: World) -> Iterator[None]:
    """Discard the output of all processes of a distributed run but the writer; every process still reports its mistakes."""
    if world.is_writer:
        yield
        return
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def _print(run: Run, json: bool) -> None:
    """Print the result of a run, or how to resume it."""
    if json:
        options.print_json({"run": str(run.folder), **run.record.to_json()})
    elif run.status == "unfinished":
        print(
            f"Stopped, and saved. Go on with: {how_to_resume(run.folder)}\nOr use what it has learned so far: {how_to_use(run)}"
        )
    elif not run.learned_nothing:  # otherwise the error is already printed
        print(_summary(run))


def _train(asked: Mapping[str, Any], given: Mapping[str, Any], world: World) -> Run:
    """Train a new model on a text."""
    model = asked["model"]
    if model is None:
        raise Mistake(f"name a model to train: {', '.join(registry.trainable())}", code="no-model-to-train")
    options.check_model_name(model)
    options.budget_of(model, given.get("budget"), asked["budget"])
    options.check_text(asked["text"], model)
    text = asked["text"]
    if text is None:
        text = registry.kind_of(model).data
        print(f"No text is named: {model} learns {text} (lmlab data show {text} says what that is).", file=sys.stderr)
    from lmlab.cli.show.progress import ProgressLine

    with ProgressLine(model) as watch:
        return lmlab.train(
            model, text, tokenizer=asked["tokenizer"], **_as_asked(model, asked), watch=watch, world=world
        )


def _go_on(asked: Mapping[str, Any], given: Mapping[str, Any], world: World) -> Run:
    """Resume a run; a budget that begins with a plus extends its original budget."""
    out, model, more = asked["out"], asked["model"], str(given.get("budget", "")).startswith("+")
    if out is None:
        raise Mistake(
            "{resume} needs {out}: the folder of the run to go on with",
            code="resume-without-out",
            resume=True,
            out="RUN",
        )
    if world.decided(lambda: record_file(out)) is None:
        if model is None or more:
            raise Mistake(
                f"{out} holds no run to go on with; name a model to train: {', '.join(registry.trainable())}",
                code="nothing-to-resume",
            )
        return _train(asked, given, world)
    from lmlab.cli.show.progress import ProgressLine

    begun = lmlab.load(out)
    begun.record = world.broadcast(begun.record)
    name = begun.record.model.name
    if model not in (None, name):
        options.check_model_name(model)
        raise Mistake(
            f"{out} is a run of {name}, not of {model}; leave the model out to go on with it", code="resume-other-model"
        )
    _refuse_changes(begun, {key: asked[key] for key in given if not (more and key == "budget")})
    if begun.status != "unfinished" and not more:
        counts = registry.kind_of(name).way is registry.Way.COUNTS
        advice = "" if counts else f" For more: {how_to_resume(begun.folder)} --budget +10m"
        print(f"{out} came to its end before and is left as it was.{advice}", file=sys.stderr)
        return begun
    with ProgressLine(out.name) as watch:
        budget = asked["budget"] if more else None
        return lmlab.resume(out, budget=budget, tensorboard=asked["tensorboard"], watch=watch, world=world)


def _fine_tune(source: Path, asked: Mapping[str, Any], given: Mapping[str, Any], world: World) -> Run:
    """Train the model of a run on another text. `--from RUN TEXT` names no model: its first word is the text."""
    if asked["resume"]:
        raise Mistake(
            "{resume} goes on with a run, {from_} begins another; leave one out",
            code="resume-beside-from",
            resume=True,
            from_=None,
        )
    model, text = asked["model"], asked["text"]
    if not {"text"} & (set(given) | set(asked["recipe"])):
        model, text = None, model
    if text is None:
        raise Mistake("name the text to learn: lmlab train --from RUN TEXT", code="from-without-text")
    from lmlab.cli.show.progress import ProgressLine

    run = lmlab.load(source)
    name, tokenizer = run.record.model.name, run.tokenizer.spec
    if model is None and text in registry.KINDS and registry.KINDS[text].begins_with == name:
        raise Mistake(
            f"name the table that it learns from: lmlab train {text} DATA --from {source}", code="from-without-table"
        )
    if model not in (None, name) and registry.kind_of(model).begins_with != name:
        wanted = registry.kind_of(model).begins_with
        begins = f"begins with the weights of a {wanted}" if wanted else "begins with the weights of no other"
        raise Mistake(
            f"{source} is a run of {name}, not of {model}, which {begins}; to go on as {an(name)}, leave the model out",
            code="from-other-model",
        )
    from lmlab.text.tokenizers import plain_spec

    if "tokenizer" in given and plain_spec(given["tokenizer"]) != tokenizer:
        raise Mistake(
            f"{source} knows its {tokenizer} tokens; leave {{tokenizer}} out",
            code="from-other-tokenizer",
            tokenizer=None,
        )
    with ProgressLine(model or name) as watch:
        return lmlab.fine_tune(run, text, model=model, **_as_asked(model or name, asked), watch=watch, world=world)


def _with_recipe(file: Path, asked: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Add the values of a recipe for options that the command line does not set.

    A model named on the command line starts from new weights, even if the recipe begins with a run.
    """

    found = lmlab.recipe(file)
    if "run" in found and "model" not in given:
        found["from_"] = Path(found["run"])
    if "split" in found:
        found["split"] = options.parse_split(",".join(map(str, found["split"])), found.get("valid"), found.get("test"))
    kept = {key: value for key, value in found.items() if key not in given and key not in ("settings", "learning")}
    return {**asked, **kept, "recipe": found}


def _as_asked(model: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a new run. Settings of the command line override those of the recipe."""
    settings = parse_settings(registry.model_class(model).Config, asked["settings"], model)
    found, columns = asked["recipe"], asked["columns"]
    return {
        "settings": {**found.get("settings", {}), **settings},
        "learning": {**found.get("learning", {}), **parse_learning(asked["learning"])},
        "columns": columns.split(",") if isinstance(columns, str) else columns,
        **{
            key: asked[key]
            for key in (
                "out",
                "budget",
                "split",
                "split_by",
                "documents",
                "valid",
                "test",
                "seed",
                "device",
                "precision",
                "tensorboard",
            )
        },
    }


def _is_given(ctx: typer.Context, key: str) -> bool:
    source = ctx.get_parameter_source(key)
    return source is not None and source.name == "COMMANDLINE"


def _refuse_changes(run: Run, given: Mapping[str, Any]) -> None:
    """Raise a Mistake for an option that differs from the resumed run, since it would have no effect."""
    model, corpus, training = run.record.model, run.record.inputs.corpus, run.record.training
    began: dict[str, Any] = {"tokenizer": run.record.inputs.tokenizer, "split": tuple(corpus["split"])}
    began |= {"split_by": corpus["divided_by"]} if "divided_by" in corpus else {}
    began |= {"documents": corpus.get("documents", "none")}
    began |= {"budget": training.budget, "seed": training.seed}
    began |= {"device": training.device, "precision": training.precision}
    began |= {key: corpus[key] for key in ("text", "valid", "test")}
    wanted = {key: value for key, value in given.items() if key in began}
    for key in {"text", "valid", "test"} & set(wanted):
        if wanted[key] != began[key]:  # the record holds absolute paths
            wanted[key] = str(Path(wanted[key]).expanduser().resolve())
    if "tokenizer" in wanted:
        from lmlab.text.tokenizers import plain_spec

        wanted["tokenizer"] = plain_spec(wanted["tokenizer"])
    if "budget" in wanted:
        wanted["budget"] = str(Budget.parse(wanted["budget"]))
    settings = parse_settings(registry.model_class(model.name).Config, given.get("settings", ()), model.name)
    learning = parse_learning(given.get("learning", ()))
    began |= {f"set {key}": model.config.get(key) for key in settings}
    began |= {f"learn {key}": training.learning.get(key) for key in learning}
    wanted |= {f"set {key}": value for key, value in settings.items()}
    wanted |= {f"learn {key}": value for key, value in learning.items()}
    for key, value in wanted.items():
        if value != began[key]:
            option = "the text" if key == "text" else f"--{key.replace('_', '-')}"
            began_so = f"{run.folder} began otherwise, and goes on as it began"
            raise Mistake(f"{began_so}: leave {option} out, or train into a new folder", code="option-beside-resume")


def _summary(run: Run) -> str:
    """Return the result of a finished run in a few lines, and the command to run next."""
    model, result = run.record.model, run.record.result
    flops = "" if result.training_flops is None else f" {short(result.training_flops)} FLOPs,"
    lines = [f"{model.name}: {run.status}, {model.parameters:,} parameters,{flops} {result.seconds:.1f} s"]
    lines += [f"  note: {note}" for note in run.saved.notes if not isinstance(note, Aside)]
    if (run.folder / "page.html").exists():
        lines.append(f"  its curve and samples: {run.folder / 'page.html'}")
    lines.append(f"Saved in {run.folder}. Next: {_next(run)}")
    return "\n".join(lines)


def _next(run: Run) -> str:
    """Return the command to suggest after training.

    It evaluates the test part, else the validation part. If both are empty, it uses the model.
    """
    sizes = {name: part.get("pairs", part["bytes"]) for name, part in run.record.inputs.corpus["parts"].items()}
    folder = as_typed(run.folder)
    if sizes["test"]:
        return f"lmlab eval {folder}"
    return f"lmlab eval {folder} --part valid" if sizes["valid"] else how_to_use(run)
