"""Which verbs there are. Signatures are cheap to import; what a verb needs it imports when it runs."""

from __future__ import annotations

import typer

GROUPS = {  # of `lmlab --help`, in its order: what one wants to do
    "Compare": ("compare", "sweep", "curves"),
    "Train": ("train", "settings"),
    "Use a trained model": ("eval", "score", "generate", "mix", "compress", "decompress", "serve", "export", "import"),
    "Look inside": ("explain", "count", "plan"),
    "Other tasks": ("fill", "classify", "translate", "vectors", "combine", "latent"),
    "Mathematics": ("check", "prove"),
    "Housekeeping": ("data", "machine", "contract"),
}


def register(app: typer.Typer) -> None:
    """Add every verb to the command line."""
    from lmlab.cli import (
        check,
        classify,
        combine,
        compare,
        compress,
        contract,
        count,
        curves,
        data,
        evaluate,
        explain,
        export,
        fill,
        generate,
        latent,
        machine,
        mix,
        plan,
        prove,
        score,
        settings,
        sweep,
        train,
        translate,
        vectors,
    )
    from lmlab.cli.explaining import WithTopics

    app.command("compare")(compare.command)
    app.command("train", cls=train.WithSettings)(train.command)
    app.command("eval")(evaluate.command)
    app.command("score")(score.command)
    app.command("generate")(generate.command)
    app.command("explain", cls=WithTopics)(explain.command)
    app.command("mix")(mix.command)
    app.command("classify")(classify.command)
    app.command("fill")(fill.command)
    app.command("latent")(latent.command)
    app.command("translate")(translate.command)
    app.command("vectors")(vectors.command)
    app.command("combine")(combine.command)
    app.command("sweep")(sweep.command)
    app.command("compress")(compress.compress)
    app.command("decompress")(compress.decompress)
    app.command("export")(export.command)
    app.command("check")(check.command)
    app.command("prove")(prove.command)
    app.command("curves")(curves.command)
    app.command("settings")(settings.command)
    app.command("contract")(contract.command)
    app.command("count")(count.command)
    app.command("plan")(plan.command)
    app.command("data")(data.command)
    app.command("machine")(machine.command)
    _group(app)


def _group(app: typer.Typer) -> None:
    """The verbs in the order of the groups; one that is in none stands with the last."""
    last = list(GROUPS)[-1]
    for command in app.registered_commands:
        command.rich_help_panel = next((group for group, verbs in GROUPS.items() if command.name in verbs), last)
    order = [verb for verbs in GROUPS.values() for verb in verbs]
    app.registered_commands.sort(key=lambda c: order.index(c.name) if c.name in order else len(order))
