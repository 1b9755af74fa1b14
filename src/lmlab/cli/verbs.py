"""Which verbs there are. Signatures are cheap to import; what a verb needs it imports when it runs."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add every verb to the command line."""
    from lmlab.cli import (
        check,
        compare,
        compress,
        contract,
        count,
        curves,
        data,
        evaluate,
        export,
        generate,
        machine,
        mix,
        plan,
        prove,
        settings,
        sweep,
        train,
    )

    app.command("compare")(compare.command)
    app.command("train", cls=train.WithSettings)(train.command)
    app.command("eval")(evaluate.command)
    app.command("generate")(generate.command)
    app.command("mix")(mix.command)
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
